"""How cases end: in a finished run, in a paused one, paid once, closed once and for all."""

from solders.account import Account
from solders.instruction import AccountMeta, Instruction
from solders.pubkey import Pubkey
from solders.system_program import TransferParams, transfer
from support.fields import assert_fields
from support.program.audits import LAZY, MISMATCH, OK
from support.program.cases import CLEARED, FEE, PAYLOAD, ROOT, STAKE, WORK, CaseDriver
from support.program.closing import checkpoint_pairs, close, round_pairs
from support.program.losses import fined_lamports
from support.program.rounds import key

from troth_attestation.quorum import CaseOutcome
from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.params_checks import longest_settlement_slots
from troth_coordinator.rules.phase import Phase

REWARD = 1_000


def wind_up(driver: CaseDriver, barred: int) -> None:
    """Everybody leaves with what is theirs; then the run and all of its accounts are closed."""
    staying = [owner for index, owner in enumerate(driver.owners) if index != barred]
    for owner in staying:
        driver.send(life.leave_run(driver.at, owner.pubkey()), owner)
    last = driver.run.finished_slot + longest_settlement_slots(driver.params)
    vested = 2 * driver.params.vesting_slots
    driver.chain.advance(max(last + 1 - driver.slot, driver.params.unbond_slots, vested))
    for owner in staying:
        driver.send(life.claim_reward(driver.at, owner.pubkey()), owner)
        driver.send(life.withdraw_stake(driver.at, owner.pubkey(), 0), owner)
    assert driver.run.num_participants == 1, "the bar is remembered until the end"
    who = driver.owners[barred].pubkey()
    pairs = [*round_pairs(driver), *checkpoint_pairs(driver), (driver.at.participant(who), who)]
    while pairs:
        now, pairs = pairs[:8], pairs[8:]
        raw = driver._signed(close(driver, now), [driver.authority])
        driver.chain.send(raw)
    assert not driver.chain.accounts.of_program(driver.at.program)


def test_a_run_with_convictions_ends_and_leaves_nothing_behind() -> None:
    patient = {"commit_slots": 1_000, "vesting_slots": 9_000, "unbond_slots": 9_000}
    ends = {"max_rounds": 4, "join_until_round": 4, "checkpoint_every": 1}
    driver = CaseDriver.started(12, **ends, **patient)
    driver.offend(3)
    driver.bar(3)
    driver.cool_down()
    assert driver.run.phase == Phase.FINISHED
    driver.challenge(driver.outsider("challenger"), 3, 4, ROOT)
    case = driver.case(3, 4, ROOT)
    settled = driver.decide(case, MISMATCH).event("CaseSettled")
    assert settled.paid.bit_count() >= 3, "in a finished run a jury still sits"
    assert driver.refused(close(driver), driver.authority) == "CasesMayBeOpen"
    for case in driver.audits:
        driver.release(case)
    wind_up(driver, barred=3)


def test_a_pause_stops_the_windows_of_a_case() -> None:
    driver = CaseDriver.started()
    driver.challenge(driver.outsider("challenger"), 0, 3, PAYLOAD)
    boss = driver.authority
    driver.send(life.pause_run(driver.at, boss.pubkey()), boss)
    driver.play(1)
    assert driver.run.phase == Phase.PAUSED
    # Seeds are frozen in every phase: slots go on while the clock stands.
    seated = driver.seat_jury(driver.case(0, 3, PAYLOAD))
    driver.chain.advance(driver.params.jury_commit_slots * 2)
    resume = life.resume_run(driver.at, boss.pubkey(), driver.run.round)
    driver.send(resume, boss)
    driver.take_votes(seated, [OK] * len(seated.jurors))
    assert driver.settle_case(seated).event("CaseSettled").outcome == CaseOutcome.ACQUITTED


def test_an_account_that_was_closed_does_not_come_back_to_life() -> None:
    """Lamports sent after it in the same transaction revive neither data nor escrow."""
    driver = CaseDriver.started()
    driver.judge(0, 3, CLEARED)
    case = driver.case(0, 3)
    driver.run_to(case.case_end)
    address, payer = driver.at.audit(0, 3), driver.cranker.pubkey()
    refill = transfer(TransferParams(from_pubkey=payer, to_pubkey=address, lamports=10**8))
    release = driver.release_instruction(case)
    assert driver.refused([release, refill, release], driver.cranker) == "Custom(3007)"
    driver.send([release, refill], driver.cranker)
    found = driver.chain.accounts.get(address)
    assert found.owner == Pubkey.default()
    assert bytes(found.data) == b""
    assert driver.refused(release, driver.cranker) == "Custom(3007)"
    assert driver.refused(driver.open_instruction(0, 3), driver.cranker) == "AlreadyAudited"


def test_lamports_at_the_address_of_a_case_do_not_prevent_it() -> None:
    driver = CaseDriver.started()
    address, payer = driver.at.audit(0, 3, PAYLOAD), driver.cranker.pubkey()
    stray = transfer(TransferParams(from_pubkey=payer, to_pubkey=address, lamports=10**6))
    driver.send(stray, driver.cranker)
    driver.challenge(driver.outsider("challenger"), 0, 3, PAYLOAD)
    assert driver.case(0, 3, PAYLOAD).target == 3


def test_the_same_participant_passed_twice_is_slashed_once() -> None:
    driver = CaseDriver.started()
    driver.leave(3)
    case = driver.accuse(0, 3)
    settled = driver.decide(case, MISMATCH, people=[3, 3, 4]).event("CaseSettled")
    assert settled.unbonding == STAKE // 2
    assert driver.entries[3].unbonding == STAKE // 2


def test_a_case_undoes_no_reward_that_the_members_took_back_before() -> None:
    """Accused, then struck as withheld, then not proven: that of the other round stays."""
    driver = CaseDriver.started(4, 2)
    driver.judge(1, 3, [MISMATCH] * 3)
    for index in (0, 1):
        landed = driver.send(driver.report_instruction(index, 3), driver.sessions[index])
    assert landed.event("PayloadStruck").reward_undone == REWARD
    assert sum(driver.entries[3].bucket_amount) == REWARD
    driver.close_void()
    case = driver.seat_jury(driver.case(1, 3))
    driver.run_to(case.stage_end)
    settled = driver.settle_case(case).event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.NOT_PROVEN, reward_undone=0)
    assert sum(driver.entries[3].bucket_amount) == REWARD


def test_a_seat_that_paid_for_its_sketch_does_not_pay_for_its_verdict_again() -> None:
    """Outvoted at the end of the audit, contradicted by the committee: one seat, one fine."""
    driver = CaseDriver.started()
    driver.post(0, 3)
    said = [OK, (OK, LAZY), OK]
    driver.take_verdicts(0, 3, said)
    driver.extend(0, 3)
    driver.take_verdicts(0, 3, [OK, OK])
    landed = driver.settle(0, 3)
    lazy = driver.case(0, 3).seats[1].index
    (fined,) = [event for event in landed.events if event.name == "Penalised"]
    assert_fields(fined, index=lazy, fault=7)
    driver.challenge(driver.outsider("challenger"), 0, 3, WORK)
    landed = driver.decide(driver.case(0, 3), MISMATCH)
    others = [seat.index for seat in driver.case(0, 3).judging if seat.index != lazy]
    assert [e.index for e in landed.events if e.name == "Penalised"] == others
    paid = [event for event in landed.events if event.name == "Penalised"]
    assert fined_lamports(fined) == 2 * FEE
    assert {fined_lamports(event) for event in paid} == {10 * REWARD}


def test_a_copy_of_a_participant_under_another_program_is_passed_over() -> None:
    """It has the right bytes, and somebody could put it before the real one to stop a slash."""
    driver = CaseDriver.started()
    owner = driver.owners[3]
    driver.leave(3)
    voted = driver.vote_all(driver.accuse(0, 3), MISMATCH)
    real = driver.chain.accounts.get(driver.at.participant(owner.pubkey()))
    copy = key("copy").pubkey()
    forged = Account(real.lamports, bytes(real.data), key("thief program").pubkey())
    driver.chain.accounts.set(copy, forged)
    alone = life.with_accounts(driver.settle_case_instruction(voted), [copy])
    assert driver.refused(alone, driver.cranker) == "ParticipantMissing"
    honest = driver.settle_case_instruction(voted, people=[3])
    *accounts, mine = honest.accounts
    before = Instruction(
        honest.program_id, honest.data, [*accounts, AccountMeta(copy, False, True), mine]
    )
    assert driver.send(before, driver.cranker).event("CaseSettled").unbonding == STAKE // 2


def test_an_index_named_by_a_case_is_not_given_away() -> None:
    """Jurors and challengers stay who they are until the account is closed."""
    driver = CaseDriver.started(8, ring=4, keep_rounds=2, capacity=8, audit_cap=8)
    driver.challenge(driver.owners[1], 0, 3, PAYLOAD)
    seated = driver.seat_jury(driver.case(0, 3, PAYLOAD))
    juror = seated.jurors[0].index
    for index in (1, juror):
        driver.leave(index)
    driver.play(6)
    # By now all that they earned has vested, and no round names them.
    driver.chain.advance(5_000)
    new = key("newcomer")
    driver.chain.airdrop(new.pubkey(), 10**10)

    def join(index: int) -> Instruction:
        terms = life.JoinTerms(index, 3, new.pubkey(), "http://new")
        return life.join_run(driver.at, new.pubkey(), terms, driver.owners[index].pubkey())

    for index in (1, juror):
        assert driver.refused(join(index), new) == "RunFull"
    driver.settle_case(seated, people=[j.index for j in seated.jurors])
    driver.release(seated)
    assert all(entry.audits == 0 for entry in driver.entries)
    driver.send(join(juror), new)
