"""Witnesses that copy, collude, frame or sleep, against the rules of the program alone."""

import pytest
from adversarial.judging_program import (
    RECOMPUTE,
    REWARD,
    TX_FEE,
    assert_untouched,
    balance,
    commit_all,
    penalties,
    seats_of,
)
from program.audits import LAZY, MISMATCH, OK, UNAVAILABLE
from program.cases import BOND, FEE, STAKE, WORK, Trial

from troth_attestation import sampling
from troth_coordinator.chain import audit_instructions as make
from troth_coordinator.chain import case_instructions as case_make
from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.audit_view import AuditStage, SeatFlag
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.view import Status

TARGET = 3


def test_a_copied_commitment_cannot_be_shown_and_costs_a_tenth_of_the_stake() -> None:
    """A witness waits for another seat's commitment and sends the same hash, to save the work.

    The hash names its witness: neither the words of the other nor its own ones open it. By the
    time that it can read the other's sketch, all commitments are in. It has hidden a verdict, and
    pays the most that any verdict could have cost (P6). Threat T21.
    """
    trial = Trial.in_session(recompute_cost=300)
    trial.post(0, TARGET)
    audit = trial.of(0, TARGET)
    author, copier, late = seats_of(audit)
    commit, reveal = trial.commit_instructions(audit, author, OK)
    trial.send(commit, trial.sessions[author])
    seen = trial.of(0, TARGET).seats[0].commit
    session = trial.sessions[copier]
    copied = make.commit_verdict(trial.at, session.pubkey(), audit, copier, seen)
    trial.send(copied, session)
    trial.run_to(audit.stage_end)
    trial.send(reveal, trial.sessions[author])
    too_late, _ = trial.commit_instructions(audit, late, OK)
    assert trial.refused(too_late, trial.sessions[late]) == "WrongStage"
    words, _ = trial.statement(audit, author, OK)
    _, own = trial.commit_instructions(audit, copier, OK)
    stolen = make.reveal_verdict(trial.at, session.pubkey(), audit, copier, words)
    for shown in (stolen, own):
        assert trial.refused(shown, session) == "RevealMismatch"
    trial.run_to(audit.stage_end + trial.params.verdict_reveal_slots)
    trial.extend(0, TARGET)
    trial.hear(0, TARGET, [OK, OK])
    landed = trial.settle(0, TARGET)
    paid = {event.index: event for event in penalties(landed)}
    assert {index: event.fault for index, event in paid.items()} == {copier: 6, late: 6}
    hidden = paid[copier]
    assert (hidden.stake, hidden.treasury, hidden.burned) == (
        STAKE // 10,
        STAKE // 20,
        STAKE // 20,
    )
    assert paid[late].stake == 2 * FEE, "who said nothing at all pays two fees"
    settled = landed.event("AuditSettled")
    assert (settled.outcome, settled.paid.bit_count()) == (1, 3)
    assert trial.burned() == STAKE // 20 + FEE
    assert_untouched(trial, [copier, late])


def test_three_colluders_clear_a_partner_and_a_stranger_has_them_all_convicted() -> None:
    """Three seats agree beforehand on an ok and on one made-up sketch for a partner's audit.

    Nobody contradicts them: the audit is cleared and they are paid. But whoever recomputes sees
    it, posts a bond, and five others who are drawn afterwards convict. The partner loses half and
    all that has not vested (P3), each of the three ten recomputations (P7), the challenger gets
    5 %, half of the rest burns. Threat T22, T08.
    """
    trial = Trial.in_session()
    trial.judge(0, TARGET, [(OK, LAZY)] * 3)
    case = trial.case(0, TARGET)
    cartel = seats_of(case)
    assert (case.stage, case.outcome) == (AuditStage.SETTLED, 1)
    assert all(seat.flags & SeatFlag.PAID for seat in case.judging)
    unvested = sum(trial.entries[TARGET].bucket_amount)
    stranger = trial.outsider("diligent")
    before, pool = balance(trial, stranger), trial.run.reward_pool
    trial.challenge(stranger, 0, TARGET, WORK)
    seated = trial.seat_jury(trial.case(0, TARGET))
    jurors = [juror.index for juror in seated.jurors]
    assert not set(jurors) & {TARGET, *cartel}
    trial.poll(seated, [MISMATCH] * len(jurors))
    landed = trial.settle_case(seated)
    settled = landed.event("CaseSettled")
    assert (settled.outcome, settled.fault) == (1, 3)
    assert (settled.stake, settled.unvested) == (STAKE // 2, unvested)
    paid = [(event.index, event.fault, event.stake) for event in penalties(landed)]
    assert paid == [(index, 7, 10 * RECOMPUTE) for index in cartel]
    closed = trial.release(case).event("AuditClosed")
    taken = STAKE // 2 + unvested
    assert (closed.challenger, closed.treasury) == (taken * 5 // 100, taken * 45 // 100)
    assert closed.burned == taken - closed.challenger - closed.treasury
    assert trial.burned() == closed.burned + 3 * 10 * RECOMPUTE // 2
    fees = len(jurors) * FEE
    assert balance(trial, stranger) == before - TX_FEE - fees + closed.challenger
    assert trial.run.reward_pool == pool, "the bond paid the jurors"
    assert_untouched(trial, [TARGET, *cartel])


def test_a_cleared_partner_that_withholds_its_openings_pays_for_refusing_them() -> None:
    """The same three seats, and then the partner serves its openings to nobody any more.

    Only its friends have them. The second committee cannot judge what it cannot see, and says so:
    that is a refusal (P5), ten rewards and all that has not vested, split at once. It is no
    conviction: no appeal, no place in the cap, and the friends who said ok are not shown to have
    lied. The bond pays the jurors and the rest comes back; nobody earns by it. Threat T22.
    """
    trial = Trial.in_session()
    trial.judge(0, TARGET, [(OK, LAZY)] * 3)
    stranger = trial.outsider("diligent")
    before, pool = balance(trial, stranger), trial.run.reward_pool
    unvested = sum(trial.entries[TARGET].bucket_amount)
    trial.challenge(stranger, 0, TARGET, WORK)
    case = trial.case(0, TARGET)
    owner = trial.owners[TARGET]
    claim = life.claim_reward(trial.at, owner.pubkey())
    assert trial.refused(claim, owner) == "Frozen"
    seated = trial.seat_jury(case)
    seats = len(seated.jurors)
    trial.poll(seated, [UNAVAILABLE] * (seats - 1) + [OK])
    vault = trial.chain.accounts.balance(trial.at.vault)
    landed = trial.settle_case(seated)
    settled = landed.event("CaseSettled")
    assert (seats, settled.outcome, settled.fault) == (7, 5, 5)
    assert (settled.stake, settled.unvested, settled.reward_undone) == (0, 0, 0)
    assert settled.paid == sum(1 << juror.index for juror in seated.jurors[:-1])
    (fine,) = penalties(landed)
    taken = 10 * REWARD + unvested
    assert (fine.index, fine.fault, fine.stake) == (TARGET, 5, 10 * REWARD)
    assert (fine.unbonding, fine.unvested, fine.shortfall, fine.acquitted) == (0, unvested, 0, 0)
    assert (fine.treasury, fine.burned) == (taken // 2, taken - taken // 2)
    assert (trial.run.treasury, trial.burned()) == (fine.treasury, fine.burned)
    fees = (seats - 1) * FEE
    assert (settled.bond_spent, settled.bond_returned) == (fees, BOND - fees)
    assert balance(trial, stranger) == before - TX_FEE - fees
    assert trial.run.reward_pool == pool, "the bond paid the jurors"
    # The fees stay in the vault as rewards of the jurors; the fire and the challenger are paid.
    left = vault - trial.chain.accounts.balance(trial.at.vault)
    assert left == fine.burned + settled.bond_returned
    entry = trial.entries[TARGET]
    assert (entry.frozen, entry.work_faults, entry.openings_fault_round) == (0, 0, NONE)
    assert (trial.run.total_escrow, trial.run.num_convicted) == (0, 0)
    appeal = case_make.appeal_case(trial.at, owner.pubkey(), case)
    assert trial.refused(appeal, owner) == "NotConvicted"
    again = trial.challenge_instruction(stranger, 0, TARGET, WORK)
    assert trial.refused(again, stranger) == "WrongStage"
    assert trial.refused(claim, owner) == "NothingToClaim", "not frozen any more"
    closed = trial.release(case).event("AuditClosed")
    assert (closed.returned, closed.treasury, closed.burned) == (0, 0, 0)
    assert_untouched(trial, [TARGET])


@pytest.mark.parametrize("is_diligent", [True, False])
def test_two_framing_seats_decide_nothing(is_diligent: bool) -> None:
    """Two of three seats call honest work a mismatch.

    Three are needed. Two more are seated, the honest ones are three, and the target is cleared: no
    reward is undone, nothing is frozen. Had the framers not even recomputed, their sketch is in
    the minority and they pay ten recomputations each (P7). Threat T23.
    """
    trial = Trial.in_session()
    unvested = sum(trial.entries[TARGET].bucket_amount)
    lie = MISMATCH if is_diligent else (MISMATCH, LAZY)
    landed = trial.judge(0, TARGET, [lie, lie, OK, OK, OK])
    settled = landed.event("AuditSettled")
    framers = seats_of(trial.of(0, TARGET))[:2]
    assert (settled.outcome, settled.reward_undone, settled.is_strike) == (1, 0, False)
    assert sum(trial.entries[TARGET].bucket_amount) == unvested
    paid = [(event.index, event.fault, event.stake) for event in penalties(landed)]
    assert paid == ([] if is_diligent else [(i, 7, 10 * RECOMPUTE) for i in framers])
    assert_untouched(trial, [] if is_diligent else framers)


def test_three_framing_seats_pay_a_tenth_each_to_whom_they_accused() -> None:
    """Three of five seats accuse honest work, to see it slashed.

    They freeze it, and no more: others are drawn, recompute in reference mode, and acquit. A tenth
    of each framer's stake goes to the accused, who claims it at once (P7). Threat T23.
    """
    trial = Trial.in_session()
    case = trial.accuse(0, TARGET)
    framers = seats_of(case)[:3]
    owner = trial.owners[TARGET]
    claim = life.claim_reward(trial.at, owner.pubkey())
    assert trial.refused(claim, owner) == "Frozen"
    landed = trial.decide(case, OK)
    settled = landed.event("CaseSettled")
    assert (settled.outcome, settled.stake, settled.reward_undone) == (2, 0, 0)
    paid = [(e.index, e.fault, e.stake, e.acquitted, e.burned) for e in penalties(landed)]
    assert paid == [(index, 7, STAKE // 10, STAKE // 10, 0) for index in framers]
    before = balance(trial, owner)
    trial.send(claim, owner)
    assert balance(trial, owner) == before - TX_FEE + 3 * STAKE // 10
    assert trial.burned() == 0
    assert all(trial.entries[index].status == Status.INACTIVE for index in framers)
    assert_untouched(trial, framers)


def test_three_of_six_accuse_and_cannot_convict() -> None:
    """In a run of six the framers must sit on the second committee too: nobody else is left.

    Three of its five seats are theirs, four are needed: not proven. The accused gets everything
    back, nobody is slashed, and nobody is shown to have lied. Threat T23, T08.
    """
    trial = Trial.in_session(6)
    case = trial.accuse(0, TARGET)
    framers = seats_of(case)[:3]
    seated = trial.seat_jury(case)
    jurors = [juror.index for juror in seated.jurors]
    assert sorted(jurors) == sorted({0, 1, 2, 4, 5})
    trial.poll(seated, [MISMATCH if index in framers else OK for index in jurors])
    landed = trial.settle_case(seated)
    settled = landed.event("CaseSettled")
    assert (settled.outcome, settled.stake, settled.reward_undone) == (3, 0, 0)
    assert penalties(landed) == []
    trial.release(case)
    assert (trial.burned(), trial.run.treasury) == (0, 0)
    assert_untouched(trial)


@pytest.mark.parametrize("num_liars", [2, 3])
def test_seats_that_say_they_were_served_nothing_take_ten_rewards_at_most(num_liars: int) -> None:
    """Colluding seats say of a target that serves everybody that nobody served them.

    Two decide nothing. Three are a majority that no evidence can contradict: ten rewards and what
    has not vested, at once (P5). It is no accusation: nothing freezes, nobody is convicted, and the
    liars earn a fee each. With one third of dishonest witnesses a draw of three in five is the
    price of having no second instance. Threat T19, T08.
    """
    trial = Trial.in_session()
    unvested = sum(trial.entries[TARGET].bucket_amount)
    said = [UNAVAILABLE, OK, UNAVAILABLE, UNAVAILABLE if num_liars == 3 else OK, OK]
    landed = trial.judge(0, TARGET, said)
    settled = landed.event("AuditSettled")
    entry = trial.entries[TARGET]
    assert (entry.frozen, entry.work_faults, entry.strikes) == (0, 0, 0)
    if num_liars == 2:
        assert (settled.outcome, settled.paid.bit_count()) == (1, 3), "liars earn nothing"
        assert penalties(landed) == []
        assert_untouched(trial)
        return
    assert (settled.outcome, settled.paid.bit_count()) == (4, 5)
    (fine,) = penalties(landed)
    assert (fine.index, fine.fault) == (TARGET, 5)
    assert (fine.stake, fine.unbonding, fine.unvested) == (10 * REWARD, 0, unvested)
    assert fine.treasury + fine.burned == 10 * REWARD + unvested
    assert trial.burned() == fine.burned
    assert_untouched(trial, [TARGET])


def test_a_witness_that_sleeps_is_fined_three_times_and_jailed() -> None:
    """Somebody takes part for the rewards of training and never does what a seat asks for.

    It deposited more than it needed, so that fines do not end its membership. Each silence costs
    two fees and seats somebody else, who clears the target; the third jails it. Threat T47.
    """
    trial = Trial(6, commit_slots=1_000, vesting_slots=9_000, unbond_slots=9_000)
    trial.start()
    sleeper = trial.owners[1]
    trial.send(life.top_up_stake(trial.at, sleeper.pubkey(), 6 * FEE), sleeper)
    num_fines = 0
    while num_fines < 3:
        trial.play(1)
        round_ = trial.run.round - 1
        trial.draw(round_)
        target = whom_one_judges(trial, round_)
        if target is None:
            continue
        num_fines += 1
        trial.post(round_, target)
        seats = seats_of(trial.of(round_, target))
        trial.hear(round_, target, [None if index == 1 else OK for index in seats])
        trial.extend(round_, target)
        trial.hear(round_, target, [OK, OK])
        landed = trial.settle(round_, target)
        assert landed.event("AuditSettled").outcome == 1
        (fine,) = penalties(landed)
        assert (fine.index, fine.fault, fine.stake) == (1, 6, 2 * FEE)
        assert (fine.treasury, fine.burned) == (FEE, FEE)
        assert trial.entries[1].status == (Status.JAILED if num_fines == 3 else Status.ACTIVE)
    assert trial.burned() == 3 * FEE
    assert (trial.entries[1].stake, trial.entries[1].seat_faults) == (STAKE, 0)
    assert_untouched(trial, [1])


def whom_one_judges(trial: Trial, round_: int) -> int | None:
    """The first target whose first three seats include participant 1."""
    seed, eligible = trial.round(round_).seed, trial.round(round_).eligible
    drawn = {target: sampling.seats_of(seed, target, eligible)[:3] for target in (0, 2, 3, 4, 5)}
    return next((target for target, seats in drawn.items() if 1 in seats), None)


def test_in_a_run_of_four_one_sleeper_costs_its_target_the_reward() -> None:
    """Of four members three judge the fourth. If one of them says nothing, two oks are no majority.

    Nobody is left to be seated: the audit is unproven, the honest target is not paid for that
    round, and no stake of its moves. The sleeper pays two fees for every reward that it destroys;
    a run that cannot bear that needs six members. Threat T47.
    """
    trial = Trial.in_session(4)
    trial.post(0, 0)
    silent, *others = seats_of(trial.of(0, 0))
    trial.hear(0, 0, [None, OK, OK])
    landed = trial.settle(0, 0)
    settled = landed.event("AuditSettled")
    assert (settled.outcome, settled.reward_undone, settled.is_strike) == (5, REWARD, False)
    assert [(e.index, e.stake) for e in penalties(landed)] == [(silent, 2 * FEE)]
    assert settled.paid == sum(1 << index for index in others)
    assert_untouched(trial, [silent])


def test_a_juror_that_hides_its_vote_pays_more_than_one_that_is_silent() -> None:
    """A partner of the accused sits on the second committee. It commits, sees that the others
    convict, and shows nothing, to keep the conviction below two thirds.

    Here five of six remain and four are needed. It pays ten recomputations or a tenth, whichever is
    more, and is no longer a member until it tops up (P6). Threat T46, T47.
    """
    trial = Trial.in_session(recompute_cost=300)
    seated = trial.seat_jury(trial.accuse(0, TARGET))
    num = len(seated.jurors)
    partner = seated.jurors[0].index
    trial.poll(seated, [OK, *[MISMATCH] * (num - 1)], hidden=0b1)
    landed = trial.settle_case(seated)
    settled = landed.event("CaseSettled")
    assert (num, settled.outcome, settled.stake) == (6, 1, STAKE // 2)
    assert settled.paid.bit_count() == num - 1
    (fine,) = [event for event in penalties(landed) if event.fault == 6]
    assert (fine.index, fine.stake) == (partner, STAKE // 10)
    contradicted = [seat.index for seat in seated.judging[3:]]
    assert trial.entries[partner].status == Status.INACTIVE
    assert_untouched(trial, [TARGET, partner, *contradicted])


def test_no_seat_is_paid_for_what_it_did_not_recompute() -> None:
    """Two lazy seats agree on a made-up sketch, and the third finds out that it stands alone.

    A minority of one against two looks like the cheat. So nobody is judged among three: two more
    are seated, and three of five that agree make the lazy ones pay. Threat T20.
    """
    trial = Trial.in_session()
    trial.post(0, TARGET)
    audit = trial.of(0, TARGET)
    commit_all(trial, audit, [(OK, LAZY), OK, (OK, LAZY)])
    for seat, said in zip(audit.judging, [(OK, LAZY), OK, (OK, LAZY)], strict=True):
        _, reveal = trial.commit_instructions(audit, seat.index, said)
        trial.send(reveal, trial.sessions[seat.index])
    assert trial.refused(trial.settle_instruction(0, TARGET), trial.cranker) == "ExtensionDue"
    trial.extend(0, TARGET)
    trial.hear(0, TARGET, [OK, OK])
    landed = trial.settle(0, TARGET)
    lazy = [seat.index for seat in (audit.seats[0], audit.seats[2])]
    paid = [(event.index, event.fault, event.stake) for event in penalties(landed)]
    assert paid == [(index, 7, 10 * RECOMPUTE) for index in lazy]
    settled = landed.event("AuditSettled")
    assert (settled.outcome, settled.reward_undone, settled.paid.bit_count()) == (1, 0, 3)
    assert not any(settled.paid >> index & 1 for index in lazy)
    assert trial.burned() == 10 * RECOMPUTE
    assert_untouched(trial, lazy)
