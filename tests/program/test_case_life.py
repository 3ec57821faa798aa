"""A case from the accusation to the end of its escrow, to the lamport."""

from support.fields import assert_fields, assert_records
from support.program.audits import MISMATCH, OK
from support.program.cases import (
    BOND,
    CLEARED,
    FEE,
    PAYLOAD,
    POSSESSION,
    ROOT,
    STAKE,
    WORK,
    CaseDriver,
)
from support.program.losses import fined_lamports

from troth_attestation.quorum import CaseOutcome
from troth_attestation.sampling import case_seed, jury
from troth_coordinator.rules.audit_view import AuditFlag
from troth_coordinator.rules.view import Status

REWARD = 1_000


def test_cheated_work_costs_half_of_the_stake_and_everything_unvested() -> None:
    driver = CaseDriver.started()
    case = driver.accuse(0, 3)
    unvested = sum(driver.entries[3].bucket_amount)
    assert driver.entries[3].frozen == 1
    assert unvested > 0

    seated = driver.seat_jury(case)
    drawn = driver.ledger.events[-1]
    seed = case_seed(drawn.slot_hash, bytes(driver.at.run), 0, 3, WORK)
    heard = [seat.index for seat in case.judging]
    accusers = heard[:3]
    jurors = [juror.index for juror in seated.jurors]
    assert tuple(jurors) == jury(seed, 0xFFF, [3], heard, accusers)
    assert not set(jurors) & {3, *heard}, "others remain, so the seats sit out"
    assert seated.stage_end == driver.clock + driver.params.jury_commit_slots

    pool = driver.run.reward_pool
    driver.take_votes(seated, [MISMATCH] * len(jurors))
    landed = driver.settle_case(seated)
    settled = landed.event("CaseSettled")
    assert_fields(
        settled,
        outcome=CaseOutcome.CONVICTED,
        fault=3,
        fee=FEE,
        stake=STAKE // 2,
        unbonding=0,
        unvested=unvested,
    )
    assert settled.paid == sum(1 << index for index in jurors)
    assert settled.juror_fees == len(jurors) * FEE
    assert driver.run.reward_pool == pool, "what was taken paid the jurors"
    assert driver.run.total_escrow == STAKE // 2 + unvested - settled.juror_fees
    entry = driver.entries[3]
    assert_fields(entry, stake=STAKE // 2, work_faults=1)
    assert sum(entry.bucket_amount) == 0
    assert_fields(entry, "frozen while the escrow waits", status=Status.ACTIVE, frozen=1)

    wrong = [seat.index for seat in case.judging[3:]]
    penalties = [event for event in landed.events if event.name == "Penalised"]
    assert_records(penalties, [{"index": i, "fault": 7} for i in wrong])
    assert {fined_lamports(event) for event in penalties} == {10_000}
    assert driver.burned() == 20_000

    assert settled.appeal_end == settled.stage_end == driver.clock + driver.params.appeal_slots
    assert driver.refused(driver.release_instruction(case), driver.cranker) == "WindowOpen"
    closed = driver.release(case).event("AuditClosed")
    rest = STAKE // 2 + unvested - settled.juror_fees
    assert_fields(closed, returned=0, challenger=0, pool=0, burned=rest)
    assert driver.burned() == 20_000 + rest
    assert driver.audits == () and driver.run.num_audits == 0
    assert driver.entries[3].frozen == 0


def test_the_rent_goes_back_to_whoever_paid_it() -> None:
    driver = CaseDriver.started()
    driver.judge(0, 1, CLEARED)
    case = driver.case(0, 1)
    payer = driver.sessions[1].pubkey()
    before = driver.chain.accounts.balance(payer)
    held = driver.chain.accounts.balance(driver.at.audit(0, 1))
    driver.release(case)
    assert driver.chain.accounts.balance(payer) == before + held
    assert driver.chain.accounts.balance(driver.at.audit(0, 1)) == 0


def test_a_bonded_case_against_cleared_work_pays_the_challenger_five_percent() -> None:
    driver = CaseDriver.started()
    driver.judge(0, 5, CLEARED)
    stranger = driver.outsider("challenger")
    opened = driver.challenge(stranger, 0, 5, WORK).event("CaseOpened")
    assert_fields(opened, bond=BOND, challenger_index=65535)
    case = driver.case(0, 5)
    assert case.flags & AuditFlag.BONDED and driver.run.total_bonds == BOND
    pool = driver.run.reward_pool
    before = driver.chain.accounts.balance(stranger.pubkey())
    settled = driver.decide(case, MISMATCH).event("CaseSettled")
    fees = settled.paid.bit_count() * FEE
    assert_fields(settled, bond_spent=0, juror_fees=fees, bond_returned=BOND)
    assert driver.run.reward_pool == pool, "what was taken paid the jurors"
    assert driver.chain.accounts.balance(stranger.pubkey()) == before + BOND
    taken = settled.stake + settled.unvested
    closed = driver.release(case).event("AuditClosed")
    assert closed.challenger == taken * 5 // 100
    assert_fields(closed, pool=0, burned=taken - closed.challenger - fees)
    after = driver.chain.accounts.balance(stranger.pubkey())
    assert after == before + BOND + closed.challenger


def test_an_acquittal_costs_the_challenger_its_bond_and_frees_the_target() -> None:
    driver = CaseDriver.started()
    stranger = driver.outsider("challenger")
    driver.challenge(stranger, 0, 2, PAYLOAD)
    case = driver.case(0, 2, PAYLOAD)
    assert case.payer == bytes(stranger.pubkey())
    settled = driver.decide(case, OK).event("CaseSettled")
    rest = BOND - settled.paid.bit_count() * FEE
    assert_fields(
        settled,
        outcome=CaseOutcome.ACQUITTED,
        stake=0,
        bond_returned=0,
        bond_acquitted=rest // 2,
        bond_burned=rest - rest // 2,
    )
    entry = driver.entries[2]
    assert_fields(entry, claimable=rest // 2, frozen=0, stake=STAKE)
    assert driver.burned() == rest - rest // 2
    assert driver.release(case).event("AuditClosed").burned == 0


def test_seats_that_framed_somebody_pay_the_acquitted() -> None:
    driver = CaseDriver.started()
    case = driver.accuse(0, 3)
    framers = [seat.index for seat in case.seats[:3]]
    landed = driver.decide(case, OK)
    penalties = [event for event in landed.events if event.name == "Penalised"]
    parts = [(10 * REWARD, STAKE // 10 - 10 * REWARD), *[(0, STAKE // 10)] * 2]
    fines = [{"fault": 7, "acquitted": got, "burned": burned} for got, burned in parts]
    named = zip(framers, fines, strict=True)
    assert_records(penalties, [{"index": index, **fine} for index, fine in named])
    assert driver.entries[3].claimable == 10 * REWARD, "ten rewards, however many framed it"
    assert driver.entries[3].stake == STAKE


def test_exact_cases_cost_what_the_protocol_says() -> None:
    driver = CaseDriver.started()
    stranger = driver.outsider("challenger")
    wanted = [(PAYLOAD, 1, 10, 2), (ROOT, 2, 25, 8), (POSSESSION, 3, 2, 10)]
    for kind, target, percent, fault in wanted:
        subject = 4 if kind == POSSESSION else 65535
        driver.challenge(stranger, 0, target, kind, subject)
        case = driver.case(0, target, kind)
        settled = driver.decide(case, MISMATCH).event("CaseSettled")
        assert_fields(settled, outcome=CaseOutcome.CONVICTED, fault=fault)
        assert settled.stake == STAKE * percent // 100
        assert settled.unvested == 0
        if kind == PAYLOAD:
            assert settled.vouchers == 0xFFF
            assert all(entry.strikes == 1 for entry in driver.entries[:12])
    assert [driver.entries[i].strikes for i in (1, 2, 3)] == [1, 1, 2]


def test_a_possession_case_judges_the_payload_that_was_vouched_for() -> None:
    driver = CaseDriver.started()
    driver.challenge(driver.outsider("challenger"), 0, 3, POSSESSION, 4)
    case = driver.case(0, 3, POSSESSION)
    assert case.header_hash == driver.round(0).ballots[4].header_hash
    assert case.subject == 4
    assert case.possession[4] == 7


def test_a_jury_without_a_majority_proves_nothing() -> None:
    driver = CaseDriver.started()
    case = driver.seat_jury(driver.accuse(0, 3))
    half = len(case.jurors) // 2
    driver.take_votes(case, [MISMATCH] * half + [OK] * (len(case.jurors) - half))
    settled = driver.settle_case(case).event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.NOT_PROVEN, stake=0)
    assert settled.paid.bit_count() == len(case.jurors)
    assert driver.entries[3].frozen == 0


def test_an_accusation_that_nobody_proves_leaves_the_round_unpaid_once() -> None:
    patient = {"openings_slots": 2_000, "unbond_slots": 9_000, "vesting_slots": 9_000}
    driver = CaseDriver.started(12, 3, **patient)
    driver.draw(0)
    driver.draw(1)
    unvested = sum(driver.entries[3].bucket_amount)
    for round_ in (0, 1, 2):
        case = driver.seat_jury(driver.accuse(round_, 3))
        pool = driver.run.reward_pool
        driver.run_to(case.stage_end)
        settled = driver.settle_case(case).event("CaseSettled")
        is_third = round_ == 2
        assert_fields(
            settled,
            round_,
            outcome=CaseOutcome.NOT_PROVEN,
            reward_undone=1_000,
            is_strike=is_third,
            paid=0,
        )
        assert driver.run.reward_pool == pool + 1_000
        assert driver.round(round_).unpaid >> 3 & 1
    entry = driver.entries[3]
    assert_fields(entry, strikes=1, stake=STAKE, frozen=0, included_since_strike=0)
    assert sum(entry.bucket_amount) == unvested - 3_000


def test_a_bond_that_proves_nothing_costs_the_target_nothing() -> None:
    driver = CaseDriver.started()
    driver.judge(0, 3, CLEARED)
    had = driver.entries[3]
    driver.challenge(driver.outsider("challenger"), 0, 3, WORK)
    case = driver.seat_jury(driver.case(0, 3))
    driver.run_to(case.stage_end)
    settled = driver.settle_case(case).event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.NOT_PROVEN, reward_undone=0, is_strike=False)
    now = driver.entries[3]
    assert_fields(now, bucket_amount=had.bucket_amount, unproven_rounds=had.unproven_rounds)


def test_silent_jurors_pay_and_count_against_both_sides() -> None:
    driver = CaseDriver.started()
    case = driver.seat_jury(driver.accuse(0, 3))
    silent, hiding = case.jurors[0].index, case.jurors[1].index
    votes = [None, *[MISMATCH] * (len(case.jurors) - 1)]
    driver.take_votes(case, votes, hidden=0b10)
    landed = driver.settle_case(case)
    penalties = {e.index: e for e in landed.events if e.name == "Penalised"}
    assert_fields(penalties[silent], fault=6, unvested=2 * FEE)
    assert_fields(penalties[hiding], fault=6, unvested=2 * FEE)
    assert driver.entries[silent].seat_faults == 1
    shown = len(case.jurors) - 2
    needed = -(-2 * len(case.jurors) // 3)
    assert landed.event("CaseSettled").outcome == (1 if shown >= needed else 3)


def test_the_pool_pays_less_where_it_is_short() -> None:
    driver = CaseDriver.started(pool=12 * REWARD + 3 * FEE + 100)
    case = driver.accuse(0, 3)
    left = driver.run.reward_pool
    landed = driver.decide(case, OK)
    num = len(driver.case(0, 3).jurors)
    assert landed.event("FeesScaled").fee == left // num
    assert landed.event("CaseSettled").fee == left // num
    assert driver.run.reward_pool == left - num * (left // num)
