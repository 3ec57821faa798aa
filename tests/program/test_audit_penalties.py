"""The penalties of an audit: P5 of targets, P6 and P7 of seats, requests."""

from dataclasses import replace

from solders.system_program import TransferParams, transfer
from support.fields import assert_fields, assert_records
from support.program.audits import MISMATCH, OK, AuditDriver
from support.program.cases import WORK, CaseDriver
from support.program.rounds import SOL, key

from troth_attestation.quorum import AuditOutcome
from troth_coordinator.chain import audit_instructions as make
from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.audit_view import AuditFlag, AuditStage
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.view import Status

REWARD, FEE, STAKE = 1_000, 200, 100_000
PATIENT = {"commit_slots": 1_000, "vesting_slots": 9_000, "unbond_slots": 9_000}
"""Audits end while the next round is still in its Commit."""


# P5: no openings.


def test_a_sampled_target_that_shows_nothing_pays_the_reward_and_twelve_more() -> None:
    driver = AuditDriver.started(rounds=2)
    assert_fields(driver.round(1), price_base=12 * REWARD, price_new=12 * REWARD)
    driver.open_audit(1, 2)
    driver.run_to(driver.of(1, 2).stage_end)
    pool = driver.run.reward_pool
    landed = driver.settle(1, 2)
    settled, penalised = landed.event("AuditSettled"), landed.event("Penalised")
    assert_fields(settled, outcome=4, paid=0, reward_undone=REWARD)
    assert_fields(
        penalised,
        index=2,
        fault=5,
        claimable=0,
        unvested=REWARD,
        stake=11 * REWARD,
        burned=12_000,
    )
    entry = driver.entries[2]
    assert_fields(entry, stake=STAKE - 11 * REWARD, openings_fault_round=driver.run.round)
    assert_fields(entry, openings_step=1, included_total=2, openings_mark=2)
    assert driver.run.reward_pool == pool + REWARD
    assert driver.burned() == 12_000
    assert driver.of(1, 2).stage == AuditStage.SETTLED


def test_whoever_asks_for_its_stake_back_pays_from_the_tickets() -> None:
    """A target leaves at once, and shows nothing: its stake is still within reach."""
    driver = AuditDriver.started()
    driver.open_audit(0, 4)
    driver.leave(4)
    driver.run_to(driver.of(0, 4).stage_end)
    assert driver.refused(driver.settle_instruction(0, 4), driver.cranker) == "ParticipantMissing"
    other = driver.settle_instruction(0, 4, people=[3])
    assert driver.refused(other, driver.cranker) == "ParticipantMissing"
    penalised = driver.settle(0, 4, people=[3, 4]).event("Penalised")
    assert_fields(penalised, stake=0, unbonding=12 * REWARD)
    assert driver.run.total_unbonding == driver.entries[4].unbonding == STAKE - 12 * REWARD


def test_a_slash_records_what_is_not_there() -> None:
    """Three seats cleared false work; ten recomputations cost more than any of them has."""
    driver = CaseDriver.started(
        recompute_cost=10_000, min_stake_lamports=60_000, keep_stake_lamports=60_000
    )
    driver.judge(0, 1, [OK, OK, OK])
    driver.challenge(driver.outsider("diligent"), 0, 1, WORK)
    landed = driver.decide(driver.case(0, 1), MISMATCH)
    fined = [event for event in landed.events if event.name == "Penalised"]
    wanted = {"stake": 60_000, "unvested": REWARD + FEE, "shortfall": 40_000 - REWARD - FEE}
    assert_records(fined, [wanted] * 3)


# P6: silence.


def test_silence_and_the_first_hidden_verdict_cost_two_fees() -> None:
    driver = AuditDriver.started()
    driver.post(0, 0)
    driver.take_verdicts(0, 0, [None, OK, OK], hidden=0b100)
    driver.extend(0, 0)
    driver.take_verdicts(0, 0, [OK, OK])
    landed = driver.settle(0, 0)
    silent, hiding = (e for e in landed.events if e.name == "Penalised")
    seats = driver.of(0, 0).seats
    assert_fields(silent, index=seats[0].index, fault=6, unvested=2 * FEE, stake=0)
    assert_fields(hiding, index=seats[2].index, fault=6, unvested=2 * FEE, stake=0)
    assert [driver.entries[seats[i].index].seat_faults for i in range(3)] == [1, 0, 1]


def test_the_third_missed_duty_jails() -> None:
    driver = AuditDriver(4, **PATIENT)
    driver.start()
    owner = driver.owners[1]
    driver.send(life.top_up_stake(driver.at, owner.pubkey(), 10 * FEE), owner)
    jailed = []
    for round_ in range(3):
        driver.play(1)
        driver.draw(round_)
        driver.post(round_, 0)
        silent = next(
            place for place, seat in enumerate(driver.of(round_, 0).seats) if seat.index == 1
        )
        driver.take_verdicts(round_, 0, [None if place == silent else OK for place in range(3)])
        driver.settle(round_, 0)
        jailed.append(driver.entries[1].status == Status.JAILED)
    assert jailed == [False, False, True]
    assert driver.entries[1].seat_faults == 0
    assert driver.entries[1].jailed_until_round > driver.run.round


# Requests.


def requested(target: int = 1, **changes: int | str) -> AuditDriver:
    """Nobody is sampled, but the audit of `target` is paid for."""
    driver = AuditDriver(6, **{"p_base_ppm": 0, "p_new_ppm": 0, **changes})
    driver.start()
    driver.commit_all()
    landed = driver.request(target)
    assert landed.event("AuditRequested").prepaid == 7 * FEE
    assert_fields(driver.run, total_bonds=7 * FEE, num_audits=1)
    return driver


def finish(driver: AuditDriver) -> None:
    driver.attest_all()
    driver.close()
    driver.draw(0)


def test_a_requested_audit_is_paid_from_what_was_paid_in_advance() -> None:
    driver = requested()
    finish(driver)
    assert driver.refused(driver.open_instruction(0, 0), driver.cranker) == "NotSampled"
    assert driver.open_audit(0, 1).event("AuditOpened").is_requested
    pool, wallet = driver.run.reward_pool, driver.chain.accounts.balance(driver.cranker.pubkey())
    landed = driver.judge(0, 1, [OK, OK, OK])
    assert landed.event("AuditSettled").fee == FEE
    refund = landed.event("PrepaidRefunded")
    assert_fields(refund, refunded=4 * FEE, pool=0)
    assert_fields(driver.run, reward_pool=pool, total_bonds=0)
    fees = 5_000 * 1
    assert driver.chain.accounts.balance(driver.cranker.pubkey()) == wallet + 4 * FEE - fees
    assert_fields(driver.run, "the breaker does not count it", sampled=0, accused=0)


def test_a_requested_accusation_does_not_count_for_the_breaker() -> None:
    """A payer of audits chooses their targets: a third of accused ones would prove nothing."""
    driver = requested()
    finish(driver)
    assert driver.judge(0, 1, [MISMATCH] * 5).event("AuditSettled").outcome == AuditOutcome.ACCUSED
    assert driver.entries[1].frozen == 1
    assert_fields(driver.run, sampled=0, accused=0)


def test_a_request_for_a_sampled_target_is_refunded_and_the_pool_pays() -> None:
    driver = requested(p_base_ppm=1_000_000, p_new_ppm=1_000_000)
    finish(driver)
    assert not driver.open_audit(0, 1).event("AuditOpened").is_requested
    assert not driver.of(0, 1).flags & AuditFlag.REQUESTED
    pool = driver.run.reward_pool
    refund = driver.judge(0, 1, [OK, OK, OK]).event("PrepaidRefunded")
    assert refund.refunded == 7 * FEE
    assert driver.run.reward_pool == pool - 3 * FEE


def test_a_request_for_a_payload_that_is_not_included_is_refunded() -> None:
    driver = requested()
    assert driver.refused(driver.settle_instruction(0, 1), driver.cranker) == "WindowOpen"
    driver.attest_all(bitmap=0b111101)
    driver.close()
    settled = driver.settle(0, 1)
    assert settled.event("AuditSettled").outcome == 6
    assert settled.event("PrepaidRefunded").refunded == 7 * FEE
    assert driver.refused(driver.open_instruction(0, 1), driver.cranker) == "SeedNotFrozen"


def test_a_request_that_nobody_opens_is_refunded_after_the_openings() -> None:
    driver = requested()
    driver.attest_all()
    driver.close()
    assert driver.refused(driver.settle_instruction(0, 1), driver.cranker) == "SeedNotFrozen"
    driver.draw(0)
    assert driver.refused(driver.settle_instruction(0, 1), driver.cranker) == "WindowOpen"
    ends = driver.round(0).freeze_clock + driver.params.openings_slots
    driver.chain.advance(ends - driver.clock)
    assert driver.refused(driver.settle_instruction(0, 1), driver.cranker) == "WindowOpen"
    driver.chain.advance()
    assert driver.refused(driver.open_instruction(0, 1), driver.cranker) == "WindowOver"
    assert driver.settle(0, 1).event("AuditSettled").outcome == 6


def test_an_empty_wallet_does_not_block_the_end_of_an_audit() -> None:
    """The challenger empties its account: a refund below its rent goes to the pool."""
    driver = AuditDriver(6, p_base_ppm=0, p_new_ppm=0)
    driver.start()
    driver.commit_all()
    griefer = key("griefer")
    driver.chain.airdrop(griefer.pubkey(), SOL)
    driver.send(make.request_audit(driver.at, griefer.pubkey(), 0, 1), griefer)
    driver.attest_all(bitmap=0b111101)
    driver.close()
    rest = driver.chain.accounts.balance(griefer.pubkey()) - 5_000
    emptied = TransferParams(
        from_pubkey=griefer.pubkey(), to_pubkey=driver.cranker.pubkey(), lamports=rest
    )
    driver.send(transfer(emptied), griefer)
    pool = driver.run.reward_pool
    refund = driver.settle(0, 1).event("PrepaidRefunded")
    assert_fields(refund, refunded=0, pool=7 * FEE)
    assert driver.run.reward_pool == pool + 7 * FEE


def test_the_refund_goes_to_whoever_paid_and_to_nobody_else() -> None:
    driver = requested()
    driver.attest_all(bitmap=0b111101)
    driver.close()
    audit = driver.of(0, 1)
    thief = replace(audit, challenger=bytes(driver.owners[0].pubkey()))
    stolen = make.settle_audit(driver.at, driver.cranker.pubkey(), thief)
    assert driver.refused(stolen, driver.cranker) == "WrongChallenger"
    nobody = make.settle_audit(driver.at, driver.cranker.pubkey(), replace(audit, prepaid=0))
    assert driver.refused(nobody, driver.cranker) == "AccountMissing"


# Corrections and an empty pool.


def test_a_struck_payload_ends_its_audit_without_a_verdict_on_the_target() -> None:
    driver = AuditDriver(6)
    driver.start()
    driver.play(1)
    driver.commit_all()
    for index in range(6):
        driver.attest(index, 0b111111 if index < 4 else 0b011111)
    driver.close()
    driver.draw(1)
    driver.open_audit(1, 5)
    for index in (0, 1, 2):
        driver.send(driver.report_instruction(index, 5), driver.sessions[index])
    assert driver.refused(driver.open_instruction(1, 5), driver.cranker) == "NotIncluded"
    settled = driver.settle(1, 5).event("AuditSettled")
    assert_fields(settled, outcome=6, reward_undone=0)
    assert driver.entries[5].stake == STAKE


def test_a_reward_is_undone_once() -> None:
    """Unproven first, struck by the members later: the reward of another round stays."""
    driver = AuditDriver(6, **PATIENT)
    driver.start()
    driver.play(1)
    driver.commit_all()
    for index in range(6):
        driver.attest(index, 0b111111 if index < 4 else 0b011111)
    driver.close()
    driver.draw(1)
    assert sum(driver.entries[5].bucket_amount) == 2 * REWARD
    driver.post(1, 5)
    driver.take_verdicts(1, 5, [None, None, None])
    driver.extend(1, 5)
    driver.take_verdicts(1, 5, [None, None])
    assert driver.settle(1, 5).event("AuditSettled").reward_undone == REWARD
    for index in (0, 1):
        driver.send(driver.report_instruction(index, 5), driver.sessions[index])
    landed = driver.send(driver.report_instruction(2, 5), driver.sessions[2])
    assert landed.event("PayloadStruck").reward_undone == 0
    assert sum(driver.entries[5].bucket_amount) == REWARD


def test_an_empty_pool_scales_the_fees_and_says_so() -> None:
    driver = AuditDriver.started(6, pool=6 * REWARD + 100)
    landed = driver.judge(0, 0, [OK, OK, OK])
    scaled = landed.event("FeesScaled")
    assert_fields(scaled, witness_fee=FEE, fee=33)
    assert landed.event("AuditSettled").fee == 33
    assert driver.run.reward_pool == 1
    assert driver.of(0, 0).case_seed_slot == NONE
