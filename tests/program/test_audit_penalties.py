"""What an audit costs those who fail it: P5 of targets, P6 and P7 of seats, requests."""

from dataclasses import replace

from program.audits import LAZY, MISMATCH, OK, UNAVAILABLE, Court
from program.rounds import SOL, key
from program.test_round_missing import report
from solders.system_program import TransferParams, transfer

from troth_coordinator.chain import audit_instructions as make
from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.audit_view import AuditFlag, AuditStage
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.view import Status

REWARD, FEE, STAKE = 1_000, 200, 100_000
PATIENT = {"commit_slots": 1_000, "vesting_slots": 9_000, "unbond_slots": 9_000}
"""Audits end while the next round is still in its Commit."""


# P5: no openings.


def test_a_sampled_target_that_shows_nothing_pays_ten_rewards_and_its_unvested() -> None:
    court = Court.in_session(rounds=2)
    court.open_audit(1, 2)
    court.run_to(court.of(1, 2).stage_end)
    landed = court.settle(1, 2)
    settled, penalised = landed.event("AuditSettled"), landed.event("Penalised")
    assert (settled.outcome, settled.paid) == (4, 0)
    assert (penalised.index, penalised.fault) == (2, 5)
    assert (penalised.stake, penalised.unvested) == (10 * REWARD, 2 * REWARD)
    assert (penalised.treasury, penalised.burned) == (6_000, 6_000)
    entry = court.entries[2]
    assert (entry.stake, entry.openings_fault_round) == (STAKE - 10 * REWARD, court.run.round)
    assert entry.status == Status.INACTIVE
    assert (court.burned(), court.run.treasury) == (6_000, 6_000)
    assert court.of(1, 2).stage == AuditStage.SETTLED


def test_three_seats_that_are_served_nothing_say_so_and_are_paid() -> None:
    court = Court.in_session()
    landed = court.judge(0, 2, [UNAVAILABLE, OK, UNAVAILABLE, UNAVAILABLE, OK])
    settled = landed.event("AuditSettled")
    assert (settled.outcome, settled.paid.bit_count()) == (4, 5)
    assert landed.event("Penalised").fault == 5


def refuse_openings(court: Court, round_: int, target: int) -> None:
    court.play(1)
    court.draw(round_)
    court.open_audit(round_, target)
    court.run_to(court.of(round_, target).stage_end)


def comes_back(court: Court, index: int) -> None:
    """Tops up to the minimum and is a member again from the next open on."""
    missing = STAKE - court.entries[index].stake
    owner = court.owners[index]
    court.send(life.top_up_stake(court.at, owner.pubkey(), missing), owner)
    court.ready(index)
    court.play(1)
    court.activate(index)
    court.play(1)


def test_the_second_refusal_is_as_bad_as_wrong_work_and_the_third_bars() -> None:
    court = Court(6, max_rounds=100, keep_rounds=2)
    court.start()
    refuse_openings(court, 0, 2)
    assert court.settle(0, 2).event("Penalised").fault == 5
    comes_back(court, 2)
    round_ = court.run.round
    refuse_openings(court, round_, 2)
    second = court.settle(round_, 2).event("Penalised")
    assert (second.fault, second.stake) == (3, STAKE // 2)
    assert court.entries[2].work_faults == 1
    comes_back(court, 2)
    round_ = court.run.round
    refuse_openings(court, round_, 2)
    missing = court.refused(court.settle_instruction(round_, 2), court.cranker)
    assert missing == "ParticipantMissing"
    third = court.settle(round_, 2, people=[2]).event("Penalised")
    assert (third.stake, third.status) == (STAKE, Status.BARRED)
    entry = court.entries[2]
    assert (entry.stake, entry.status, entry.left_round) == (0, Status.BARRED, court.run.round)
    account = court.chain.accounts.get(court.at.participant(court.owners[2].pubkey()))
    assert account is not None


def test_whoever_asks_for_its_stake_back_pays_from_the_tickets() -> None:
    """A target leaves at once, and shows nothing: its stake is still within reach."""
    court = Court.in_session()
    owner = court.owners[4]
    court.open_audit(0, 4)
    court.send(life.leave_run(court.at, owner.pubkey()), owner)
    court.run_to(court.of(0, 4).stage_end)
    assert court.refused(court.settle_instruction(0, 4), court.cranker) == "ParticipantMissing"
    other = court.settle_instruction(0, 4, people=[3])
    assert court.refused(other, court.cranker) == "ParticipantMissing"
    penalised = court.settle(0, 4, people=[3, 4]).event("Penalised")
    assert (penalised.stake, penalised.unbonding) == (0, 10 * REWARD)
    assert court.run.total_unbonding == court.entries[4].unbonding == STAKE - 10 * REWARD


def test_a_slash_records_what_is_not_there() -> None:
    court = Court.in_session(recompute_cost=20_000)
    court.post(0, 1)
    court.hear(0, 1, [(OK, LAZY), OK, OK])
    court.extend(0, 1)
    court.hear(0, 1, [OK, OK])
    penalised = court.settle(0, 1).event("Penalised")
    assert (penalised.stake, penalised.unvested) == (STAKE, REWARD)
    assert penalised.shortfall == 200_000 - STAKE - REWARD


# P6: silence.


def test_silence_costs_two_fees_and_hiding_costs_the_most_that_lying_could() -> None:
    court = Court.in_session()
    court.post(0, 0)
    court.hear(0, 0, [None, OK, OK], hidden=0b100)
    court.extend(0, 0)
    court.hear(0, 0, [OK, OK])
    landed = court.settle(0, 0)
    silent, hiding = (e for e in landed.events if e.name == "Penalised")
    seats = court.of(0, 0).seats
    assert (silent.index, silent.fault, silent.stake) == (seats[0].index, 6, 2 * FEE)
    assert (hiding.index, hiding.fault, hiding.stake) == (seats[2].index, 6, 10_000)
    assert [court.entries[seats[i].index].seat_faults for i in range(3)] == [1, 0, 1]


def test_the_third_missed_duty_jails() -> None:
    court = Court(4, **PATIENT)
    court.start()
    owner = court.owners[1]
    court.send(life.top_up_stake(court.at, owner.pubkey(), 10 * FEE), owner)
    jailed = []
    for round_ in range(3):
        court.play(1)
        court.draw(round_)
        court.post(round_, 0)
        silent = next(
            place for place, seat in enumerate(court.of(round_, 0).seats) if seat.index == 1
        )
        court.hear(round_, 0, [None if place == silent else OK for place in range(3)])
        court.settle(round_, 0)
        jailed.append(court.entries[1].status == Status.JAILED)
    assert jailed == [False, False, True]
    assert court.entries[1].seat_faults == 0
    assert court.entries[1].jailed_until_round > court.run.round


# Requests.


def requested(target: int = 1, **changes: int | str) -> Court:
    """Nobody is sampled, but the audit of `target` is paid for."""
    court = Court(6, **{"p_base_ppm": 0, "p_new_ppm": 0, **changes})
    court.start()
    court.commit_all()
    landed = court.request(target)
    assert landed.event("AuditRequested").prepaid == 5 * FEE
    assert (court.run.total_bonds, court.run.num_audits) == (5 * FEE, 1)
    return court


def finish(court: Court) -> None:
    court.attest_all()
    court.close()
    court.draw(0)


def test_a_requested_audit_is_paid_from_what_was_paid_in_advance() -> None:
    court = requested()
    finish(court)
    assert court.refused(court.open_instruction(0, 0), court.cranker) == "NotSampled"
    assert court.open_audit(0, 1).event("AuditOpened").is_requested
    pool, wallet = court.run.reward_pool, court.chain.accounts.balance(court.cranker.pubkey())
    landed = court.judge(0, 1, [OK, OK, OK])
    assert landed.event("AuditSettled").fee == FEE
    refund = landed.event("PrepaidRefunded")
    assert (refund.refunded, refund.treasury) == (2 * FEE, 0)
    assert (court.run.reward_pool, court.run.total_bonds) == (pool, 0)
    fees = 5_000 * 1
    assert court.chain.accounts.balance(court.cranker.pubkey()) == wallet + 2 * FEE - fees
    assert (court.run.sampled, court.run.accused) == (0, 0), "the breaker does not count it"


def test_a_requested_accusation_does_not_count_for_the_breaker() -> None:
    """Whoever pays for audits chooses their targets: a third of the accused would prove nothing."""
    court = requested()
    finish(court)
    assert court.judge(0, 1, [MISMATCH] * 5).event("AuditSettled").outcome == 3
    assert (court.entries[1].frozen, court.run.sampled, court.run.accused) == (1, 0, 0)


def test_a_request_for_a_sampled_target_is_refunded_and_the_pool_pays() -> None:
    court = requested(p_base_ppm=1_000_000, p_new_ppm=1_000_000)
    finish(court)
    assert not court.open_audit(0, 1).event("AuditOpened").is_requested
    assert not court.of(0, 1).flags & AuditFlag.REQUESTED
    pool = court.run.reward_pool
    refund = court.judge(0, 1, [OK, OK, OK]).event("PrepaidRefunded")
    assert refund.refunded == 5 * FEE
    assert court.run.reward_pool == pool - 3 * FEE


def test_a_request_for_a_payload_that_is_not_included_is_refunded() -> None:
    court = requested()
    assert court.refused(court.settle_instruction(0, 1), court.cranker) == "WindowOpen"
    court.attest_all(bitmap=0b111101)
    court.close()
    settled = court.settle(0, 1)
    assert settled.event("AuditSettled").outcome == 6
    assert settled.event("PrepaidRefunded").refunded == 5 * FEE
    assert court.refused(court.open_instruction(0, 1), court.cranker) == "SeedNotFrozen"


def test_a_request_that_nobody_opens_is_refunded_after_the_openings() -> None:
    court = requested()
    court.attest_all()
    court.close()
    assert court.refused(court.settle_instruction(0, 1), court.cranker) == "SeedNotFrozen"
    court.draw(0)
    assert court.refused(court.settle_instruction(0, 1), court.cranker) == "WindowOpen"
    ends = court.round(0).freeze_clock + court.params.openings_slots
    court.chain.advance(ends - court.clock)
    assert court.refused(court.settle_instruction(0, 1), court.cranker) == "WindowOpen"
    court.chain.advance()
    assert court.refused(court.open_instruction(0, 1), court.cranker) == "WindowOver"
    assert court.settle(0, 1).event("AuditSettled").outcome == 6


def test_an_empty_wallet_does_not_block_the_end_of_an_audit() -> None:
    """The challenger empties its account: a refund below its rent goes to the treasury."""
    court = Court(6, p_base_ppm=0, p_new_ppm=0)
    court.start()
    court.commit_all()
    griefer = key("griefer")
    court.chain.airdrop(griefer.pubkey(), SOL)
    court.send(make.request_audit(court.at, griefer.pubkey(), 0, 1), griefer)
    court.attest_all(bitmap=0b111101)
    court.close()
    rest = court.chain.accounts.balance(griefer.pubkey()) - 5_000
    emptied = TransferParams(
        from_pubkey=griefer.pubkey(), to_pubkey=court.cranker.pubkey(), lamports=rest
    )
    court.send(transfer(emptied), griefer)
    refund = court.settle(0, 1).event("PrepaidRefunded")
    assert (refund.refunded, refund.treasury) == (0, 5 * FEE)
    assert court.run.treasury == 5 * FEE


def test_the_refund_goes_to_whoever_paid_and_to_nobody_else() -> None:
    court = requested()
    court.attest_all(bitmap=0b111101)
    court.close()
    audit = court.of(0, 1)
    thief = replace(audit, challenger=bytes(court.owners[0].pubkey()))
    stolen = make.settle_audit(court.at, court.cranker.pubkey(), thief)
    assert court.refused(stolen, court.cranker) == "WrongChallenger"
    nobody = make.settle_audit(court.at, court.cranker.pubkey(), replace(audit, prepaid=0))
    assert court.refused(nobody, court.cranker) == "AccountMissing"


# Corrections and an empty pool.


def test_a_struck_payload_ends_its_audit_without_a_verdict_on_the_target() -> None:
    court = Court(6)
    court.start()
    court.play(1)
    court.commit_all()
    for index in range(6):
        court.attest(index, 0b111111 if index < 4 else 0b011111)
    court.close()
    court.draw(1)
    court.open_audit(1, 5)
    for index in (0, 1, 2):
        court.send(report(court, index, 5), court.sessions[index])
    assert court.refused(court.open_instruction(1, 5), court.cranker) == "NotIncluded"
    settled = court.settle(1, 5).event("AuditSettled")
    assert (settled.outcome, settled.reward_undone) == (6, 0)
    assert court.entries[5].stake == STAKE


def test_a_reward_is_undone_once() -> None:
    """Unproven first, struck by the members later: the reward of another round stays."""
    court = Court(6, **PATIENT)
    court.start()
    court.play(1)
    court.commit_all()
    for index in range(6):
        court.attest(index, 0b111111 if index < 4 else 0b011111)
    court.close()
    court.draw(1)
    assert sum(court.entries[5].bucket_amount) == 2 * REWARD
    court.post(1, 5)
    court.hear(1, 5, [None, None, None])
    court.extend(1, 5)
    court.hear(1, 5, [None, None])
    assert court.settle(1, 5).event("AuditSettled").reward_undone == REWARD
    for index in (0, 1):
        court.send(report(court, index, 5), court.sessions[index])
    landed = court.send(report(court, 2, 5), court.sessions[2])
    assert landed.event("PayloadStruck").reward_undone == 0
    assert sum(court.entries[5].bucket_amount) == REWARD


def test_an_empty_pool_scales_the_fees_and_says_so() -> None:
    court = Court.in_session(6, pool=6 * REWARD + 100)
    landed = court.judge(0, 0, [OK, OK, OK])
    scaled = landed.event("FeesScaled")
    assert (scaled.witness_fee, scaled.fee) == (FEE, 33)
    assert landed.event("AuditSettled").fee == 33
    assert court.run.reward_pool == 1
    assert court.of(0, 0).case_seed_slot == NONE
