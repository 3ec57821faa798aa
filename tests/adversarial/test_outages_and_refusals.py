"""The price of an honest crash and of refusing an audit, against the program alone."""

from support.fields import assert_fields, assert_records
from support.program.audits import MISMATCH, OK, UNAVAILABLE, AuditDriver
from support.program.cases import FEE, STAKE, CaseDriver
from support.program.losses import REWARD, commit_all, penalties, seats_of, wealth
from support.program.refusals import LONG, TARGET, chosen_round, members, next_round, silent_refusal

from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_coordinator.chain import instructions as life
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import EntryFlag, Status

FIRST_PRICE = 12 * REWARD


def seated_twice(driver: CaseDriver, round_: int) -> tuple[int, list[int]]:
    """A witness on the first seats of two audits of a round, and their targets."""
    targets = list(bitmap.indices_of(driver.round(round_).sampled))
    for target in targets:
        driver.post(round_, target)
    seats = {target: seats_of(driver.of(round_, target)) for target in targets}
    held = {w: [t for t, seated in seats.items() if w in seated] for w in range(12) if w != TARGET}
    witness = max(held, key=lambda w: len(held[w]))
    assert len(held[witness]) >= 2
    return witness, held[witness][:2]


def fines_of_silence(driver: CaseDriver, witness: int, targets: list[int]) -> list[Event]:
    """Two audits of round 0 in which one seat says nothing; all that anybody pays for them."""
    says = {
        target: [None if seat == witness else OK for seat in seats_of(driver.of(0, target))]
        for target in targets
    }
    driver.take_all_verdicts(0, says)
    driver.run_to(max(driver.of(0, target).stage_end for target in targets))
    for target in targets:
        driver.extend(0, target)
    driver.take_all_verdicts(0, {target: [OK, OK] for target in targets})
    return [event for target in targets for event in penalties(driver.settle(0, target))]


def test_a_crash_before_the_commit_is_one_fine_however_many_seats_it_held() -> None:
    """A witness's machine goes down for a minute while it holds two seats.

    It commits to nothing in either audit. That is one outage: two fees in all, one step towards
    jail, and no further seat until it acts on chain again. Threat T47.
    """
    driver = members()
    witness, targets = seated_twice(driver, 0)
    paid = fines_of_silence(driver, witness, targets)
    mine = [event for event in paid if event.index == witness]
    assert_records(mine, [{"fault": 6, "unvested": 2 * FEE, "stake": 0}])
    entry = driver.entries[witness]
    assert_fields(entry, seat_faults=1, stake=STAKE, status=Status.ACTIVE)
    assert entry.flags & EntryFlag.SILENT
    back = [index for index in range(12) if index != witness]
    driver.commit_all(back)
    driver.attest_all(back)
    driver.close()
    assert not bitmap.has(driver.open.eligible, witness), "not seated until it acts"
    driver.commit_all()
    assert not driver.entries[witness].flags & EntryFlag.SILENT


PATIENT = {"commit_slots": 400, "vesting_slots": 9_000, "unbond_slots": 9_000}


def crashed_just_before(driver: AuditDriver) -> tuple[int, list[int]]:
    """A witness whose machine goes down thirty slots before three of its windows end."""
    seats = {}
    for target in range(6):
        driver.post(0, target)
        seats[target] = seats_of(driver.of(0, target))
    witness = max(range(6), key=lambda one: sum(one in held for held in seats.values()))
    targets = [target for target in range(6) if witness in seats[target]][:3]
    end, reveals = driver.of(0, targets[0]).stage_end, []
    for target in targets:
        audit = driver.of(0, target)
        for index in set(seats[target]) - {witness}:
            commit, reveal = driver.commit_instructions(audit, index, OK)
            driver.send(commit, driver.sessions[index])
            reveals.append((reveal, driver.sessions[index]))
    driver.chain.advance(end - 30 - driver.clock)
    driver.commit(witness)
    driver.run_to(end)
    for reveal, session in reveals:
        driver.send(reveal, session)
    return witness, targets


def test_a_crash_just_before_its_windows_end_is_one_fine_too() -> None:
    """The three audits are settled within the shortest window after its last action.

    Each of them used to be a fine and a step of its own, so that one crash of half a minute jailed.
    Threat T47.
    """
    driver = AuditDriver.started(6, **PATIENT)
    witness, targets = crashed_just_before(driver)
    assert len(targets) == 3
    fined = []
    for target in targets:
        driver.extend(0, target)
        driver.take_verdicts(0, target, [OK, OK])
        fined += [event.index for event in penalties(driver.settle(0, target))]
    entry = driver.entries[witness]
    assert driver.clock - entry.last_action < driver.params.verdict_commit_slots
    assert fined == [witness]
    assert_fields(entry, seat_faults=1, status=Status.ACTIVE)


def pause(driver: AuditDriver) -> None:
    """Pause the run between two rounds."""
    driver.send(life.pause_run(driver.at, driver.authority.pubkey()), driver.authority)
    driver.play(1)
    assert driver.run.phase == Phase.PAUSED


def test_a_refusal_decided_between_two_rounds_is_not_that_of_the_next_one() -> None:
    """It is decided while no round is open. The next round opens later: to refuse there is a step.

    Threat T36.
    """
    driver = AuditDriver.started(6, **PATIENT)
    driver.open_audit(0, TARGET)
    driver.run_to(driver.of(0, TARGET).stage_end)
    pause(driver)
    driver.settle(0, TARGET)
    number = driver.run.round
    assert_fields(driver.entries[TARGET], openings_step=1, openings_fault_round=number - 1)
    driver.send(life.resume_run(driver.at, driver.authority.pubkey(), number), driver.authority)
    driver.play(1)
    driver.draw(number)
    assert driver.entries[TARGET].probation_round == number
    driver.open_audit(number, TARGET)
    driver.run_to(driver.of(number, TARGET).stage_end)
    driver.settle(number, TARGET)
    assert_fields(driver.entries[TARGET], openings_step=2, openings_fault_round=driver.run.round)


def test_a_hidden_verdict_decided_between_two_rounds_is_not_that_of_the_next_one() -> None:
    """Hidden again in the round that opens then, it is the second one. Threat T46."""
    driver = AuditDriver.started(6, **PATIENT)
    driver.post(0, TARGET)
    audit = driver.of(0, TARGET)
    hiding, *others = seats_of(audit)
    commit_all(driver, audit, [OK] * 3)
    for index in others:
        _, reveal = driver.commit_instructions(audit, index, OK)
        driver.send(reveal, driver.sessions[index])
    driver.run_to(driver.of(0, TARGET).stage_end)
    driver.extend(0, TARGET)
    driver.take_verdicts(0, TARGET, [OK, OK])
    pause(driver)
    driver.settle(0, TARGET)
    entry = driver.entries[hiding]
    assert_fields(entry, seat_faults=1, reveal_fault_round=driver.run.round - 1)


def test_a_crash_between_commit_and_reveal_costs_fees_and_no_stake() -> None:
    """A machine dies with two hidden verdicts, which it can never show.

    Each costs two fees. The second is part of the same silence: no tenth of the stake, and one
    step towards jail. Hiding again later, when the first was decided, is another matter.
    Threat T46.
    """
    driver = members()
    witness, targets = seated_twice(driver, 0)
    audits = [driver.of(0, target) for target in targets]
    for audit in audits:
        commit_all(driver, audit, [OK] * 3)
    for audit in audits:
        for index in seats_of(audit):
            if index != witness:
                _, reveal = driver.commit_instructions(audit, index, OK)
                driver.send(reveal, driver.sessions[index])
    driver.run_to(max(driver.of(0, target).stage_end for target in targets))
    for target in targets:
        driver.extend(0, target)
    driver.take_all_verdicts(0, {target: [OK, OK] for target in targets})
    paid = [event for target in targets for event in penalties(driver.settle(0, target))]
    assert_records(paid, [{"index": witness, "unvested": 2 * FEE}] * 2)
    assert_fields(driver.entries[witness], seat_faults=1, stake=STAKE)


def test_refusing_every_audit_costs_twice_as_much_each_time_and_ends_in_jail() -> None:
    """A trainer that computed nothing shows nothing either, time after time.

    The reward of the round goes, then 12, 24 and 48 rewards, and the third step jails. In between
    its rewards wait, because it is on probation. Threat T18, T36.
    """
    driver = members(6, 2)
    prices = []
    round_ = 1
    for step in (1, 2, 3):
        before, withheld = wealth(driver, TARGET), driver.entries[TARGET].withheld
        landed = silent_refusal(driver, round_, TARGET)
        (fine,) = penalties(landed)
        taken = fine.claimable + fine.unvested + fine.stake + fine.unbonding
        prices.append(taken)
        entry = driver.entries[TARGET]
        assert_fields(entry, openings_step=step, withheld=0, work_faults=0)
        assert entry.flags & EntryFlag.PROBATION
        undone = 0 if withheld else REWARD
        assert wealth(driver, TARGET) == before - taken - undone
        assert withheld == (0 if step == 1 else 2 * REWARD), "the reward of the round is in it"
        if step < 3:
            round_ = chosen_round(driver)
    assert prices == [FIRST_PRICE, 2 * FIRST_PRICE, 4 * FIRST_PRICE]
    assert driver.entries[TARGET].status == Status.JAILED


def test_one_missed_window_leaves_an_honest_machine_what_it_has_earned() -> None:
    """A trainer has forty rewards that have not vested when its machine misses one window.

    One missed window used to take all of them. Now the reward of the round goes, and twelve more:
    out of the rewards, not a lamport of its stake. Threat T36.
    """
    driver = members(12, 40)
    before = driver.entries[TARGET]
    assert sum(before.bucket_amount) == 40 * REWARD
    landed = silent_refusal(driver, 39, TARGET)
    (fine,) = penalties(landed)
    assert_fields(fine, unvested=FIRST_PRICE, stake=0, claimable=0, shortfall=0)
    after = driver.entries[TARGET]
    assert sum(after.bucket_amount) == 40 * REWARD - REWARD - FIRST_PRICE
    assert_fields(after, stake=before.stake, status=Status.ACTIVE, frozen=0, work_faults=0)


def test_a_witness_that_never_acts_again_after_a_fine_gains_nothing_by_it() -> None:
    """It was fined for its silence. A running outage is one fine, so it stays silent for good.

    It is fined once, for all of its seats. But it sits nowhere from the next open on, and earns
    nothing. It loses its place with the absence fee, as anybody who is away. Threat T47.
    """
    driver = members()
    witness, targets = seated_twice(driver, 0)
    others = [index for index in range(12) if index != witness]
    start = wealth(driver, witness)
    fines = fines_of_silence(driver, witness, targets)
    assert [event.index for event in fines].count(witness) == 1
    for _ in range(3):
        driver.commit_all(others)
        driver.attest_all(others)
        driver.close()
        assert not bitmap.has(driver.open.eligible, witness)
    assert_fields(driver.entries[witness], seat_faults=1, status=Status.INACTIVE)
    assert wealth(driver, witness) == start - 2 * FEE - driver.params.absence_fee


def test_two_rounds_of_one_outage_cost_one_step() -> None:
    """A trainer is cut off while two of its rounds are sampled and not yet opened.

    Both refusals cost the first price: the second round was opened before the first was decided.
    Threat T36.
    """
    driver = members(6, 2)
    driver.draw(0)
    for round_ in (0, 1):
        driver.open_audit(round_, TARGET)
    driver.run_to(max(driver.of(round_, TARGET).stage_end for round_ in (0, 1)))
    for round_ in (0, 1):
        (fine,) = penalties(driver.settle(round_, TARGET))
        assert fine.claimable + fine.unvested + fine.stake == FIRST_PRICE
    assert_fields(driver.entries[TARGET], openings_step=1, status=Status.ACTIVE)


def test_an_audit_that_clears_ends_probation_and_pays_what_was_withheld() -> None:
    """An honest trainer lost its disk once. It shows its next work, and loses no further reward.

    Threat T36.
    """
    driver = members(6, 2)
    silent_refusal(driver, 1, TARGET)
    chosen = chosen_round(driver)
    later = next_round(driver)
    entry = driver.entries[TARGET]
    assert_fields(entry, withheld=3 * REWARD, probation_round=chosen)
    assert not bitmap.has(driver.round(later).probation, TARGET), "one audit at a time"
    unvested = sum(entry.bucket_amount)
    landed = driver.judge(chosen, TARGET, [OK, OK, OK])
    changed = landed.event("ProbationChanged")
    assert_fields(changed, index=TARGET, is_on=False, credited=3 * REWARD, returned=0)
    entry = driver.entries[TARGET]
    assert_fields(entry, withheld=0)
    assert not entry.flags & EntryFlag.PROBATION
    assert sum(entry.bucket_amount) == unvested + 3 * REWARD


def test_probation_goes_on_when_its_audit_ends_unproven() -> None:
    """Rewards that waited go back to the pool, and the next payload is drawn. Threat T36."""
    driver = members(6, 2)
    silent_refusal(driver, 1, TARGET)
    chosen = chosen_round(driver)
    pool = driver.run.reward_pool
    landed = driver.judge(chosen, TARGET, [OK, MISMATCH, OK, MISMATCH, None])
    assert landed.event("AuditSettled").outcome == AuditOutcome.UNPROVEN
    assert_fields(driver.entries[TARGET], withheld=0)
    assert driver.entries[TARGET].flags & EntryFlag.PROBATION
    settled = landed.event("AuditSettled")
    assert driver.run.reward_pool == pool + 2 * REWARD - settled.fee * settled.paid.bit_count()
    second = next_round(driver)
    assert bitmap.has(driver.round(second).probation, TARGET)


def test_an_audit_that_a_griefer_asked_for_costs_a_silent_target_one_reward() -> None:
    """A griefer sees a trainer fall silent after its commit, and asks for an audit of that payload.

    Without openings the target loses the reward of the round: no fine, no step, no probation. The
    pool keeps the seven fees, so the trick costs its author more than nothing. Threat T24.
    """
    driver = CaseDriver(6, **LONG, p_base_ppm=0, p_new_ppm=0)
    driver.start()
    driver.commit_all()
    driver.request(TARGET)
    driver.attest_all()
    driver.close()
    driver.draw(0)
    before = driver.entries[TARGET]
    landed = silent_refusal(driver, 0, TARGET)
    assert penalties(landed) == []
    assert_fields(landed.event("PrepaidRefunded"), refunded=0, kept=7 * FEE)
    entry = driver.entries[TARGET]
    assert_fields(entry, stake=before.stake, openings_step=0, flags=before.flags)
    assert sum(entry.bucket_amount) == sum(before.bucket_amount) - REWARD


def unheard(driver: CaseDriver, vote):
    """Three seats say that they were served nothing, and a jury decides unanimously."""
    landed = driver.judge(0, TARGET, [UNAVAILABLE] * 3 + [OK] * 2)
    settled = landed.event("AuditSettled")
    assert_fields(settled, outcome=AuditOutcome.UNAVAILABLE, reward_undone=0)
    assert settled.paid.bit_count() == 2, "no fee for a word that nobody has checked"
    assert driver.entries[TARGET].frozen == 0 and driver.run.accused == 0
    people = [TARGET] if vote is MISMATCH else []
    return driver.decide(driver.case(0, TARGET), vote, people).event("CaseSettled")


def test_three_colluders_who_say_unavailable_take_nothing_from_an_honest_target() -> None:
    """They sit in the audit of an honest trainer, and say that it serves nothing.

    A jury of others gets the openings and clears it: the reward stands, the three earn nothing.
    Threat T19, T23.
    """
    driver = members()
    before = wealth(driver, TARGET)
    settled = unheard(driver, OK)
    assert_fields(settled, outcome=CaseOutcome.ACQUITTED, seats_paid=0, reward_undone=0)
    assert wealth(driver, TARGET) == before
    assert_fields(driver.entries[TARGET], openings_step=0, frozen=0)


def test_seats_that_were_served_nothing_are_paid_once_the_jury_says_so_too() -> None:
    """A trainer posts a root and serves its openings to nobody: a refusal (P5). Threat T36."""
    driver = members()
    settled = unheard(driver, UNAVAILABLE)
    assert_fields(settled, outcome=CaseOutcome.NO_OPENINGS, fault=5, reward_undone=REWARD)
    assert settled.seats_paid.bit_count() == 3 and settled.seats_fee == FEE
    assert_fields(driver.entries[TARGET], openings_step=1, work_faults=0)


def test_work_that_only_the_jury_saw_is_judged_as_after_a_mismatch() -> None:
    """A cheat starves the seats, for a refusal is cheaper than a conviction: the jury convicts.

    Threat T45.
    """
    driver = members()
    settled = unheard(driver, MISMATCH)
    assert_fields(settled, outcome=CaseOutcome.CONVICTED, stake=(STAKE + 100 * REWARD) // 2)
    assert_fields(driver.entries[TARGET], work_faults=1, frozen=1)
    assert bitmap.has(driver.run.accused, TARGET), "it counts for the breaker now"
