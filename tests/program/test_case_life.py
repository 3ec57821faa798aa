"""A case from the accusation to the end of its escrow, to the lamport."""

from program.audits import MISMATCH, OK
from program.cases import BOND, CLEARED, FEE, PAYLOAD, POSSESSION, ROOT, STAKE, WORK, Trial

from troth_attestation.sampling import case_seed, jury
from troth_coordinator.rules.audit_view import AuditFlag
from troth_coordinator.rules.view import Status

REWARD = 1_000


def test_cheated_work_costs_half_of_the_stake_and_everything_unvested() -> None:
    trial = Trial.in_session()
    case = trial.accuse(0, 3)
    unvested = sum(trial.entries[3].bucket_amount)
    assert (trial.entries[3].frozen, unvested > 0) == (1, True)

    seated = trial.seat_jury(case)
    drawn = trial.ledger.events[-1]
    seed = case_seed(drawn.slot_hash, bytes(trial.at.run), 0, 3, WORK)
    heard = [seat.index for seat in case.judging]
    jurors = [juror.index for juror in seated.jurors]
    assert tuple(jurors) == jury(seed, 0xFFF, [3], heard)
    assert not set(jurors) & {3, *heard}, "others remain, so the first seats sit out"
    assert seated.stage_end == trial.clock + trial.params.committee_commit_slots

    pool, treasury = trial.run.reward_pool, trial.run.treasury
    trial.poll(seated, [MISMATCH] * len(jurors))
    landed = trial.settle_case(seated)
    settled = landed.event("CaseSettled")
    assert (settled.outcome, settled.fault, settled.fee) == (1, 3, FEE)
    assert (settled.stake, settled.unbonding, settled.unvested) == (STAKE // 2, 0, unvested)
    assert settled.paid == sum(1 << index for index in jurors)
    assert trial.run.reward_pool == pool - len(jurors) * FEE
    assert trial.run.total_escrow == STAKE // 2 + unvested
    entry = trial.entries[3]
    assert (entry.stake, sum(entry.bucket_amount), entry.work_faults) == (STAKE // 2, 0, 1)
    assert (entry.status, entry.frozen) == (Status.INACTIVE, 1), "frozen while the escrow waits"

    wrong = [seat.index for seat in case.seats[3:]]
    penalties = [event for event in landed.events if event.name == "Penalised"]
    assert [(p.index, p.fault, p.stake) for p in penalties] == [(i, 7, 10_000) for i in wrong]
    assert (trial.run.treasury, trial.burned()) == (treasury + 10_000, 10_000)

    assert settled.appeal_end == settled.stage_end == trial.clock + trial.params.appeal_slots
    assert trial.refused(trial.release_instruction(case), trial.cranker) == "WindowOpen"
    closed = trial.release(case).event("AuditClosed")
    taken = STAKE // 2 + unvested
    burned = taken - taken * 5 // 100 - taken * 45 // 100
    assert (closed.returned, closed.challenger, closed.burned) == (0, 0, burned)
    assert closed.treasury == taken - burned
    assert trial.burned() == 10_000 + burned
    assert trial.audits == () and trial.run.num_audits == 0
    assert trial.entries[3].frozen == 0


def test_the_rent_goes_back_to_whoever_paid_it() -> None:
    trial = Trial.in_session()
    trial.judge(0, 1, CLEARED)
    case = trial.case(0, 1)
    payer = trial.sessions[1].pubkey()
    before = trial.chain.accounts.balance(payer)
    held = trial.chain.accounts.balance(trial.at.audit(0, 1))
    trial.release(case)
    assert trial.chain.accounts.balance(payer) == before + held
    assert trial.chain.accounts.balance(trial.at.audit(0, 1)) == 0


def test_a_bonded_case_against_cleared_work_pays_the_challenger_five_percent() -> None:
    trial = Trial.in_session()
    trial.judge(0, 5, CLEARED)
    stranger = trial.outsider("challenger")
    opened = trial.challenge(stranger, 0, 5, WORK).event("CaseOpened")
    assert (opened.bond, opened.challenger_index) == (BOND, 65535)
    case = trial.case(0, 5)
    assert case.flags & AuditFlag.BONDED and trial.run.total_bonds == BOND
    pool = trial.run.reward_pool
    before = trial.chain.accounts.balance(stranger.pubkey())
    settled = trial.decide(case, MISMATCH).event("CaseSettled")
    fees = settled.paid.bit_count() * FEE
    assert (settled.bond_spent, settled.bond_returned) == (fees, BOND - fees)
    assert trial.run.reward_pool == pool, "the bond paid the committee"
    assert trial.chain.accounts.balance(stranger.pubkey()) == before + BOND - fees
    taken = settled.stake + settled.unvested
    closed = trial.release(case).event("AuditClosed")
    assert closed.challenger == taken * 5 // 100
    assert closed.treasury == taken * 45 // 100
    assert closed.challenger + closed.treasury + closed.burned == taken
    after = trial.chain.accounts.balance(stranger.pubkey())
    assert after == before + BOND - fees + closed.challenger


def test_an_acquittal_costs_the_challenger_its_bond_and_frees_the_target() -> None:
    trial = Trial.in_session()
    stranger = trial.outsider("challenger")
    trial.challenge(stranger, 0, 2, PAYLOAD)
    case = trial.case(0, 2, PAYLOAD)
    assert case.payer == bytes(stranger.pubkey())
    settled = trial.decide(case, OK).event("CaseSettled")
    rest = BOND - settled.paid.bit_count() * FEE
    assert (settled.outcome, settled.stake, settled.bond_returned) == (2, 0, 0)
    assert (settled.bond_acquitted, settled.bond_burned) == (rest // 2, rest - rest // 2)
    entry = trial.entries[2]
    assert (entry.claimable, entry.frozen, entry.stake) == (rest // 2, 0, STAKE)
    assert trial.burned() == rest - rest // 2
    assert trial.release(case).event("AuditClosed").burned == 0


def test_seats_that_framed_somebody_pay_the_acquitted() -> None:
    trial = Trial.in_session()
    case = trial.accuse(0, 3)
    framers = [seat.index for seat in case.seats[:3]]
    landed = trial.decide(case, OK)
    penalties = [event for event in landed.events if event.name == "Penalised"]
    assert [(p.index, p.fault, p.acquitted) for p in penalties] == [
        (index, 7, STAKE // 10) for index in framers
    ]
    assert trial.entries[3].claimable == 3 * (STAKE // 10)
    assert trial.entries[3].stake == STAKE


def test_exact_cases_cost_what_the_protocol_says() -> None:
    trial = Trial.in_session()
    stranger = trial.outsider("challenger")
    wanted = [(PAYLOAD, 1, 10, 2), (ROOT, 2, 25, 8), (POSSESSION, 3, 2, 10)]
    for kind, target, percent, fault in wanted:
        subject = 4 if kind == POSSESSION else 65535
        trial.challenge(stranger, 0, target, kind, subject)
        case = trial.case(0, target, kind)
        settled = trial.decide(case, MISMATCH).event("CaseSettled")
        assert (settled.outcome, settled.fault) == (1, fault)
        assert settled.stake == STAKE * percent // 100
        assert settled.unvested == 0
        if kind == PAYLOAD:
            assert settled.vouchers == 0xFFF
            assert all(entry.strikes == 1 for entry in trial.entries[:12])
    assert [trial.entries[i].strikes for i in (1, 2, 3)] == [1, 1, 2]


def test_a_possession_case_judges_the_payload_that_was_vouched_for() -> None:
    trial = Trial.in_session()
    trial.challenge(trial.outsider("challenger"), 0, 3, POSSESSION, 4)
    case = trial.case(0, 3, POSSESSION)
    assert case.header_hash == trial.round(0).slots[4].header_hash
    assert (case.subject, case.possession[4]) == (4, 7)


def test_a_committee_without_a_majority_proves_nothing() -> None:
    trial = Trial.in_session()
    case = trial.seat_jury(trial.accuse(0, 3))
    half = len(case.jurors) // 2
    trial.poll(case, [MISMATCH] * half + [OK] * (len(case.jurors) - half))
    settled = trial.settle_case(case).event("CaseSettled")
    assert (settled.outcome, settled.stake, settled.paid.bit_count()) == (3, 0, len(case.jurors))
    assert trial.entries[3].frozen == 0


def test_silent_jurors_pay_and_count_against_both_sides() -> None:
    trial = Trial.in_session()
    case = trial.seat_jury(trial.accuse(0, 3))
    silent, hiding = case.jurors[0].index, case.jurors[1].index
    votes = [None, *[MISMATCH] * (len(case.jurors) - 1)]
    trial.poll(case, votes, hidden=0b10)
    landed = trial.settle_case(case)
    penalties = {e.index: e for e in landed.events if e.name == "Penalised"}
    assert (penalties[silent].fault, penalties[silent].stake) == (6, 2 * FEE)
    assert (penalties[hiding].fault, penalties[hiding].stake) == (6, 10 * REWARD)
    assert trial.entries[silent].seat_faults == 1
    shown = len(case.jurors) - 2
    needed = -(-2 * len(case.jurors) // 3)
    assert landed.event("CaseSettled").outcome == (1 if shown >= needed else 3)


def test_the_pool_pays_less_where_it_is_short() -> None:
    trial = Trial.in_session(pool=12 * REWARD + 3 * FEE + 100)
    case = trial.accuse(0, 3)
    left = trial.run.reward_pool
    landed = trial.decide(case, MISMATCH)
    num = len(trial.case(0, 3).jurors)
    assert landed.event("FeesScaled").fee == left // num
    assert landed.event("CaseSettled").fee == left // num
    assert trial.run.reward_pool == left - num * (left // num)
