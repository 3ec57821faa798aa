"""Witnesses that copy, collude, frame or sleep, against the rules of the program alone."""

import pytest
from support.fields import assert_fields, assert_records
from support.program.audits import LAZY, MISMATCH, OK, UNAVAILABLE
from support.program.cases import BOND, FEE, STAKE, WORK, CaseDriver
from support.program.losses import (
    RECOMPUTE,
    REWARD,
    TX_FEE,
    assert_untouched,
    balance,
    commit_all,
    fined_lamports,
    penalties,
    seats_of,
)

from troth_attestation import sampling
from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_coordinator.chain import audit_instructions as make
from troth_coordinator.chain import case_instructions as case_make
from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.audit_view import AuditStage, SeatFlag
from troth_coordinator.rules.view import Status

TARGET = 3


def test_a_copied_commitment_cannot_be_shown_and_is_fined() -> None:
    """A witness waits for another seat's commitment and sends the same hash, to save the work.

    The hash names its witness: neither the words of the other nor its own ones open it. By the
    time that it can read the other's sketch, all commitments are in. It has hidden a verdict (P6),
    for two fees the first time and the most that any verdict could have cost the second.
    Threat T21.
    """
    driver = CaseDriver.started(recompute_cost=300)
    driver.post(0, TARGET)
    audit = driver.of(0, TARGET)
    author, copier, late = seats_of(audit)
    commit, reveal = driver.commit_instructions(audit, author, OK)
    driver.send(commit, driver.sessions[author])
    seen = driver.of(0, TARGET).seats[0].commit
    session = driver.sessions[copier]
    copied = make.commit_verdict(driver.at, session.pubkey(), audit, copier, seen)
    driver.send(copied, session)
    driver.run_to(audit.stage_end)
    driver.send(reveal, driver.sessions[author])
    too_late, _ = driver.commit_instructions(audit, late, OK)
    assert driver.refused(too_late, driver.sessions[late]) == "WrongStage"
    words, _ = driver.statement(audit, author, OK)
    _, own = driver.commit_instructions(audit, copier, OK)
    stolen = make.reveal_verdict(driver.at, session.pubkey(), audit, copier, words)
    for shown in (stolen, own):
        assert driver.refused(shown, session) == "RevealMismatch"
    driver.run_to(audit.stage_end + driver.params.verdict_reveal_slots)
    driver.extend(0, TARGET)
    driver.take_verdicts(0, TARGET, [OK, OK])
    landed = driver.settle(0, TARGET)
    paid = {event.index: event for event in penalties(landed)}
    assert {index: event.fault for index, event in paid.items()} == {copier: 6, late: 6}
    assert [fined_lamports(paid[index]) for index in (copier, late)] == [2 * FEE, 2 * FEE]
    settled = landed.event("AuditSettled")
    assert settled.outcome == AuditOutcome.CLEARED
    assert settled.paid.bit_count() == 3
    assert driver.burned() == 2 * 2 * FEE
    assert_untouched(driver, [copier, late])


def test_three_colluders_clear_a_partner_and_a_stranger_has_them_all_convicted() -> None:
    """Three seats agree beforehand on an ok and on one made-up sketch for a partner's audit.

    Nobody contradicts them: the audit is cleared and they are paid. But whoever recomputes sees
    it, posts a bond, and five others who are drawn afterwards convict. The partner loses half and
    all that has not vested (P3), each of the three ten recomputations (P7), the challenger gets
    5 %, half of the rest burns. Threat T22, T08.
    """
    driver = CaseDriver.started()
    driver.judge(0, TARGET, [(OK, LAZY)] * 3)
    case = driver.case(0, TARGET)
    cartel = seats_of(case)
    assert_fields(case, stage=AuditStage.SETTLED, outcome=1)
    assert all(seat.flags & SeatFlag.PAID for seat in case.judging)
    unvested = sum(driver.entries[TARGET].bucket_amount)
    stranger = driver.outsider("diligent")
    before, pool = balance(driver, stranger), driver.run.reward_pool
    driver.challenge(stranger, 0, TARGET, WORK)
    seated = driver.seat_jury(driver.case(0, TARGET))
    jurors = [juror.index for juror in seated.jurors]
    assert not set(jurors) & {TARGET, *cartel}
    driver.take_votes(seated, [MISMATCH] * len(jurors))
    landed = driver.settle_case(seated)
    settled = landed.event("CaseSettled")
    assert_fields(
        settled, outcome=CaseOutcome.CONVICTED, fault=3, stake=STAKE // 2, unvested=unvested
    )
    assert_records(penalties(landed), [{"index": index, "fault": 7} for index in cartel])
    assert {fined_lamports(event) for event in penalties(landed)} == {10 * RECOMPUTE}
    closed = driver.release(case).event("AuditClosed")
    assert settled.juror_fees == len(jurors) * FEE
    taken, bounty = STAKE // 2 + unvested, (STAKE // 2 + unvested) * 5 // 100
    burned = taken - bounty - settled.juror_fees
    assert_fields(closed, challenger=bounty, burned=burned)
    assert driver.burned() == closed.burned + 3 * 10 * RECOMPUTE
    assert balance(driver, stranger) == before - TX_FEE + closed.challenger
    assert driver.run.reward_pool == pool, "what was taken paid the jurors"
    assert_untouched(driver, [TARGET, *cartel])


def test_a_cleared_partner_that_withholds_its_openings_pays_for_refusing_them() -> None:
    """The same three seats, and then the partner serves its openings to nobody any more.

    Only its friends have them. The jury cannot judge what it cannot see, and says so:
    that is a refusal (P5), the reward and twelve more, split at once. It is no
    conviction: no appeal, no place in the cap, and the friends who said ok are not shown to have
    lied. The bond pays the jurors and the rest comes back; nobody earns by it. Threat T22.
    """
    driver = CaseDriver.started()
    driver.judge(0, TARGET, [(OK, LAZY)] * 3)
    stranger = driver.outsider("diligent")
    before, pool = balance(driver, stranger), driver.run.reward_pool
    unvested = sum(driver.entries[TARGET].bucket_amount)
    driver.challenge(stranger, 0, TARGET, WORK)
    case = driver.case(0, TARGET)
    owner = driver.owners[TARGET]
    claim = life.claim_reward(driver.at, owner.pubkey())
    assert driver.refused(claim, owner) == "Frozen"
    seated = driver.seat_jury(case)
    seats = len(seated.jurors)
    driver.take_votes(seated, [UNAVAILABLE] * (seats - 1) + [OK])
    vault = driver.chain.accounts.balance(driver.at.vault)
    landed = driver.settle_case(seated)
    settled = landed.event("CaseSettled")
    assert seats == 7
    assert_fields(
        settled, outcome=CaseOutcome.NO_OPENINGS, fault=5, stake=0, unvested=0, reward_undone=REWARD
    )
    assert settled.paid == sum(1 << juror.index for juror in seated.jurors[:-1])
    (fine,) = penalties(landed)
    cost = 12 * REWARD
    assert_fields(fine, index=TARGET, fault=5, stake=cost, unbonding=0, unvested=unvested - REWARD)
    assert_fields(fine, shortfall=0, acquitted=0, burned=cost)
    assert driver.burned() == fine.burned
    fees = (seats - 1) * FEE
    assert_fields(settled, bond_spent=fees, bond_returned=BOND - fees)
    assert balance(driver, stranger) == before - TX_FEE - fees
    assert driver.run.reward_pool == pool + REWARD, "the bond paid the jurors"
    # The fees stay in the vault as rewards of the jurors; the fire and the challenger are paid.
    left = vault - driver.chain.accounts.balance(driver.at.vault)
    assert left == fine.burned + settled.bond_returned
    entry = driver.entries[TARGET]
    assert_fields(entry, frozen=0, work_faults=0, openings_step=1)
    assert_fields(driver.run, total_escrow=0, convicted=(0, 0, 0, 0))
    appeal = case_make.appeal_case(driver.at, owner.pubkey(), case)
    assert driver.refused(appeal, owner) == "NotConvicted"
    again = driver.challenge_instruction(stranger, 0, TARGET, WORK)
    assert driver.refused(again, stranger) == "WrongStage"
    assert driver.refused(claim, owner) == "NothingToClaim", "not frozen any more"
    closed = driver.release(case).event("AuditClosed")
    assert_fields(closed, returned=0, pool=0, burned=0)
    assert_untouched(driver, [TARGET])


@pytest.mark.parametrize("is_diligent", [True, False])
def test_two_framing_seats_decide_nothing(is_diligent: bool) -> None:
    """Two of three seats call honest work a mismatch.

    Three are needed. Two more are seated, the honest ones are three, and the target is cleared: no
    reward is undone, nothing is frozen. Had the framers not even recomputed, their sketch is in
    the minority and they pay two fees each (P7). Threat T23.
    """
    driver = CaseDriver.started()
    unvested = sum(driver.entries[TARGET].bucket_amount)
    lie = MISMATCH if is_diligent else (MISMATCH, LAZY)
    landed = driver.judge(0, TARGET, [lie, lie, OK, OK, OK])
    settled = landed.event("AuditSettled")
    framers = seats_of(driver.of(0, TARGET))[:2]
    assert_fields(settled, outcome=AuditOutcome.CLEARED, reward_undone=0, is_strike=False)
    assert sum(driver.entries[TARGET].bucket_amount) == unvested
    paid = [(event.index, event.fault, fined_lamports(event)) for event in penalties(landed)]
    assert paid == ([] if is_diligent else [(i, 7, 2 * FEE) for i in framers])
    assert_untouched(driver, [] if is_diligent else framers)


def test_three_framing_seats_pay_a_tenth_each_and_the_accused_gets_ten_rewards() -> None:
    """Three of five seats accuse honest work, to see it slashed.

    They freeze it, and no more: others are drawn, recompute in reference mode, and acquit. Each
    framer loses a tenth of its stake (P7). The accused claims ten rewards of it at once, the rest
    burns: a cartel must not make its stakes liquid by accusing a friend. Threat T23, T34.
    """
    driver = CaseDriver.started()
    case = driver.accuse(0, TARGET)
    framers = seats_of(case)[:3]
    owner = driver.owners[TARGET]
    claim = life.claim_reward(driver.at, owner.pubkey())
    assert driver.refused(claim, owner) == "Frozen"
    landed = driver.decide(case, OK)
    settled = landed.event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.ACQUITTED, stake=0, reward_undone=0)
    fine = {"fault": 7}
    paid = [STAKE // 10 if index == framers[0] else 0 for index in framers]
    assert paid[0] == 10 * REWARD
    fines = [
        {"index": index, **fine, "acquitted": got, "burned": STAKE // 10 - got}
        for index, got in zip(framers, paid, strict=True)
    ]
    assert_records(penalties(landed), fines)
    before = balance(driver, owner)
    driver.send(claim, owner)
    assert balance(driver, owner) == before - TX_FEE + 10 * REWARD
    assert driver.burned() == 3 * STAKE // 10 - 10 * REWARD
    assert all(driver.entries[index].status == Status.ACTIVE for index in framers)
    assert_untouched(driver, framers)


def test_three_of_six_accuse_and_cannot_convict() -> None:
    """In a run of six the framers must sit on the jury too: nobody else is left.

    Three of its five seats are theirs, four are needed: not proven. The accused loses the reward of
    that round, as after any audit that ends unproven, nobody is slashed, and nobody is shown to
    have lied. Threat T23, T08.
    """
    driver = CaseDriver.started(6)
    case = driver.accuse(0, TARGET)
    framers = seats_of(case)[:3]
    seated = driver.seat_jury(case)
    jurors = [juror.index for juror in seated.jurors]
    assert sorted(jurors) == sorted({0, 1, 2, 4, 5})
    driver.take_votes(seated, [MISMATCH if index in framers else OK for index in jurors])
    landed = driver.settle_case(seated)
    settled = landed.event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.NOT_PROVEN, stake=0, reward_undone=REWARD)
    assert penalties(landed) == []
    driver.release(case)
    assert driver.burned() == 0
    assert_untouched(driver)


def test_two_seats_that_say_they_were_served_nothing_decide_nothing() -> None:
    """Colluding seats say of a target that serves everybody that nobody served them.

    Two are no majority: the target is cleared and they earn nothing. Three bring a jury together,
    whose members get the openings. Threat T19, T08.
    """
    driver = CaseDriver.started()
    landed = driver.judge(0, TARGET, [UNAVAILABLE, OK, UNAVAILABLE, OK, OK])
    settled = landed.event("AuditSettled")
    assert_fields(driver.entries[TARGET], frozen=0, work_faults=0, strikes=0)
    assert settled.outcome == AuditOutcome.CLEARED
    assert settled.paid.bit_count() == 3, "liars earn nothing"
    assert penalties(landed) == []
    assert_untouched(driver)


def test_a_witness_that_sleeps_is_fined_three_times_and_jailed() -> None:
    """Somebody takes part for the rewards of training and never does what a seat asks for.

    It acts in every round, so that each silence is one of its own. Each costs two fees and seats
    somebody else, who clears the target; the third jails it. Threat T47.
    """
    driver = CaseDriver(6, commit_slots=1_000, vesting_slots=9_000, unbond_slots=9_000)
    driver.start()
    num_fines = 0
    while num_fines < 3:
        driver.play(1)
        round_ = driver.run.round - 1
        driver.draw(round_)
        target = whom_one_judges(driver, round_)
        if target is None:
            continue
        num_fines += 1
        driver.post(round_, target)
        seats = seats_of(driver.of(round_, target))
        driver.take_verdicts(round_, target, [None if index == 1 else OK for index in seats])
        driver.extend(round_, target)
        driver.take_verdicts(round_, target, [OK, OK])
        landed = driver.settle(round_, target)
        assert landed.event("AuditSettled").outcome == AuditOutcome.CLEARED
        (fine,) = penalties(landed)
        assert_fields(fine, index=1, fault=6, unvested=2 * FEE, burned=2 * FEE)
        assert driver.entries[1].status == (Status.JAILED if num_fines == 3 else Status.ACTIVE)
    assert driver.burned() == 3 * 2 * FEE
    assert_fields(driver.entries[1], stake=STAKE, seat_faults=0)
    assert_untouched(driver, [1])


def whom_one_judges(driver: CaseDriver, round_: int) -> int | None:
    """The first target whose first three seats include participant 1."""
    seed, eligible = driver.round(round_).seed, driver.round(round_).eligible
    drawn = {target: sampling.seats_of(seed, target, eligible)[:3] for target in (0, 2, 3, 4, 5)}
    return next((target for target, seats in drawn.items() if 1 in seats), None)


def test_in_a_run_of_four_one_sleeper_costs_its_target_the_reward() -> None:
    """Of four members three judge the fourth. If one of them says nothing, two oks are no majority.

    Nobody is left to be seated: the audit is unproven, the honest target is not paid for that
    round, and no stake of its moves. The sleeper pays two fees for every reward that it destroys;
    a run that cannot bear that needs six members. Threat T47.
    """
    driver = CaseDriver.started(4)
    driver.post(0, 0)
    silent, *others = seats_of(driver.of(0, 0))
    driver.take_verdicts(0, 0, [None, OK, OK])
    landed = driver.settle(0, 0)
    settled = landed.event("AuditSettled")
    assert_fields(settled, outcome=AuditOutcome.UNPROVEN, reward_undone=REWARD, is_strike=False)
    assert_records(penalties(landed), [{"index": silent, "unvested": 2 * FEE}])
    assert settled.paid == sum(1 << index for index in others)
    assert_untouched(driver, [silent])


def test_a_juror_that_hides_its_vote_saves_nobody_and_is_fined() -> None:
    """A partner of the accused sits on the jury. It commits, sees that the others
    convict, and shows nothing, to keep the conviction below two thirds.

    Here five of six remain and four are needed. It pays two fees; the second time within 500 rounds
    ten recomputations or a tenth, whichever is more (P6). Threat T46, T47.
    """
    driver = CaseDriver.started(recompute_cost=300)
    seated = driver.seat_jury(driver.accuse(0, TARGET))
    num = len(seated.jurors)
    partner = seated.jurors[0].index
    driver.take_votes(seated, [OK, *[MISMATCH] * (num - 1)], hidden=0b1)
    landed = driver.settle_case(seated)
    settled = landed.event("CaseSettled")
    assert num == 6
    assert_fields(settled, outcome=CaseOutcome.CONVICTED, stake=STAKE // 2)
    assert settled.paid.bit_count() == num - 1
    (fine,) = [event for event in penalties(landed) if event.fault == 6]
    assert_fields(fine, index=partner, unvested=2 * FEE, stake=0)
    contradicted = [seat.index for seat in seated.judging[3:]]
    assert driver.entries[partner].seat_faults == 1
    assert_untouched(driver, [TARGET, partner, *contradicted])


def test_no_seat_is_paid_for_what_it_did_not_recompute() -> None:
    """Two lazy seats agree on a made-up sketch, and the third finds out that it stands alone.

    A minority of one against two looks like the cheat. So nobody is judged among three: two more
    are seated, and three of five that agree make the lazy ones pay. Threat T20.
    """
    driver = CaseDriver.started()
    driver.post(0, TARGET)
    audit = driver.of(0, TARGET)
    commit_all(driver, audit, [(OK, LAZY), OK, (OK, LAZY)])
    for seat, said in zip(audit.judging, [(OK, LAZY), OK, (OK, LAZY)], strict=True):
        _, reveal = driver.commit_instructions(audit, seat.index, said)
        driver.send(reveal, driver.sessions[seat.index])
    assert driver.refused(driver.settle_instruction(0, TARGET), driver.cranker) == "ExtensionDue"
    driver.extend(0, TARGET)
    driver.take_verdicts(0, TARGET, [OK, OK])
    landed = driver.settle(0, TARGET)
    lazy = [seat.index for seat in (audit.seats[0], audit.seats[2])]
    assert_records(penalties(landed), [{"index": index, "fault": 7} for index in lazy])
    assert {fined_lamports(event) for event in penalties(landed)} == {2 * FEE}
    settled = landed.event("AuditSettled")
    assert_fields(settled, outcome=AuditOutcome.CLEARED, reward_undone=0)
    assert settled.paid.bit_count() == 3
    assert not any(settled.paid >> index & 1 for index in lazy)
    assert driver.burned() == 2 * 2 * FEE
    assert_untouched(driver, lazy)
