"""An audit from the sample to its outcome, as everybody plays by the rules."""

import pytest
from support.fields import assert_fields
from support.program.audits import (
    INCONCLUSIVE,
    LAZY,
    MISMATCH,
    OK,
    AuditDriver,
    openings_of,
)
from support.program.chain import NO_INDEX
from support.program.losses import fined_lamports
from support.program.rounds import root_of

from troth_attestation.quorum import AuditOutcome
from troth_attestation.sampling import seats_of
from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.audit_view import AuditStage, SeatFlag
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

FEE = 200


def test_three_honest_seats_clear_an_honest_target_and_are_paid() -> None:
    driver = AuditDriver.started()
    pool, unvested = driver.run.reward_pool, driver.run.total_unvested
    opened = driver.open_audit(0, 2).event("AuditOpened")
    audit = driver.of(0, 2)
    frozen = driver.round(0)
    assert audit.stage == AuditStage.OPENINGS
    assert tuple(opened.seats[: audit.num_available]) == seats_of(frozen.seed, 2, frozen.eligible)
    places = [seat.index for seat in audit.seats]
    assert [*places, *[NO_INDEX] * (7 - len(places))] == list(opened.seats)
    assert_fields(
        audit,
        canonical_root=root_of(0),
        seed=frozen.seed,
        header_hash=frozen.ballots[2].header_hash,
        vouchers=0b111111,
        reward_paid=1_000,
        previous_included=NONE,
    )
    assert opened.stage_end == frozen.freeze_clock + driver.params.openings_slots

    posted = driver.post(0, 2).event("OpeningsPosted")
    assert posted.root == openings_of(0, 2)
    assert posted.stage_end == audit.stage_end + driver.params.verdict_commit_slots
    driver.take_verdicts(0, 2, [OK, OK, OK])
    settled = driver.settle(0, 2).event("AuditSettled")
    judges = [seat.index for seat in audit.seats[:3]]
    assert_fields(settled, outcome=AuditOutcome.CLEARED, fee=FEE)
    assert settled.paid == sum(1 << index for index in judges)
    assert driver.run.reward_pool == pool - 3 * FEE
    assert driver.run.total_unvested == unvested + 3 * FEE
    after = driver.of(0, 2)
    assert after.stage == AuditStage.SETTLED
    assert after.stage_end == driver.round(0).close_clock + driver.params.case_slots
    assert all(seat.flags & SeatFlag.PAID for seat in after.judging)
    assert driver.burned() == 0


def test_a_sketch_that_saturates_is_compared_like_any_other() -> None:
    """Every projection at an end of its range: the largest numbers that the program can add."""
    low, high = (-(2**31),) * 64, (2**31 - 1,) * 64
    driver = AuditDriver.started(8)
    landed = driver.judge(0, 2, [(OK, high), (OK, low), (OK, low), (OK, low), (OK, low)])
    settled, seats = landed.event("AuditSettled"), driver.of(0, 2).judging
    assert_fields(settled, outcome=AuditOutcome.CLEARED, reward_undone=0)
    assert settled.paid == sum(1 << seat.index for seat in seats[1:])
    (fine,) = [event for event in landed.events if event.name == "Penalised"]
    assert fine.index == seats[0].index and fined_lamports(fine) == 2 * FEE


def test_whoever_must_show_openings_can_open_its_audit_itself() -> None:
    driver = AuditDriver.started()
    landed = driver.post(0, 4)
    assert landed.names() == ["AuditOpened", "OpeningsPosted"]
    assert driver.of(0, 4).payer == bytes(driver.sessions[4].pubkey())


def test_the_freeze_tells_who_is_sampled_and_a_later_correction_changes_nothing() -> None:
    driver = AuditDriver.started(6, 2, p_base_ppm=0, p_new_ppm=500_000)
    frozen = driver.round(1)
    assert 0 < frozen.sampled < 0b111111, "the seed of this run samples some"
    (event,) = [e for e in driver.ledger.events if e.name == "SeedFrozen" and e.round == 1]
    assert_fields(event, sampled=frozen.sampled, unseated=0)
    inside = frozen.sampled.bit_length() - 1
    outside = next(i for i in range(6) if not frozen.sampled >> i & 1)
    assert driver.refused(driver.open_instruction(1, outside), driver.cranker) == "NotSampled"
    driver.open_audit(1, inside)
    assert driver.round(1).audited == 1 << inside


def test_windows_end_early_once_every_seat_has_acted() -> None:
    driver = AuditDriver.started()
    driver.post(0, 1)
    audit = driver.of(0, 1)
    for seat in audit.judging:
        commit, _ = driver.commit_instructions(audit, seat.index, OK)
        landed = driver.send(commit, driver.sessions[seat.index])
    committed = landed.event("VerdictCommitted")
    assert committed.stage == AuditStage.REVEAL
    assert committed.stage_end == driver.clock + driver.params.verdict_reveal_slots
    for seat in audit.judging:
        assert driver.refused(driver.settle_instruction(0, 1), driver.cranker) == "WindowOpen"
        _, reveal = driver.commit_instructions(audit, seat.index, OK)
        driver.send(reveal, driver.sessions[seat.index])
    assert driver.settle(0, 1).event("AuditSettled").outcome == AuditOutcome.CLEARED


def test_a_disagreement_seats_two_more_and_three_decide() -> None:
    driver = AuditDriver.started()
    driver.post(0, 0)
    driver.take_verdicts(0, 0, [OK, MISMATCH, OK])
    assert driver.refused(driver.settle_instruction(0, 0), driver.cranker) == "ExtensionDue"
    extended = driver.extend(0, 0).event("AuditExtended")
    assert extended.num_seats == 5
    assert extended.stage_end == driver.clock + driver.params.verdict_commit_slots
    assert driver.of(0, 0).first_acting == 3
    driver.take_verdicts(0, 0, [OK, OK])
    settled = driver.settle(0, 0).event("AuditSettled")
    assert settled.outcome == AuditOutcome.CLEARED, "an honest doubt is paid too"
    assert settled.paid.bit_count() == 5, "an honest doubt is paid too"


def test_three_mismatches_accuse_and_freeze_the_target() -> None:
    driver = AuditDriver.started()
    settled = driver.judge(0, 3, [MISMATCH, MISMATCH, MISMATCH, OK, OK]).event("AuditSettled")
    assert settled.outcome == AuditOutcome.ACCUSED
    assert settled.case_seed_slot == driver.slot + driver.params.seed_delay_slots
    audit = driver.of(0, 3)
    assert_fields(audit, stage=AuditStage.ACCUSED, stage_end=NONE)
    assert audit.case_seed_slot == settled.case_seed_slot
    entry = driver.entries[3]
    assert_fields(entry, frozen=1, targets=1)
    assert entry.status == Status.ACTIVE, "nobody is punished before a jury votes"
    assert_fields(driver.run, accused=0b001000, sampled=0b111111)


def test_without_a_majority_the_reward_is_undone() -> None:
    driver = AuditDriver.started()
    pool = driver.run.reward_pool
    settled = driver.judge(0, 3, [OK, MISMATCH, OK, MISMATCH, INCONCLUSIVE]).event("AuditSettled")
    assert_fields(settled, outcome=AuditOutcome.UNPROVEN, reward_undone=1_000)
    assert settled.paid.bit_count() == 4, "doubt of one earns nothing"
    assert driver.run.reward_pool == pool + 1_000 - 4 * FEE
    entry = driver.entries[3]
    assert_fields(entry, "once says nothing yet", included_since_strike=1, strikes=0)
    assert 0 in entry.unproven_rounds
    assert driver.round(0).unpaid == 0b001000


def test_the_third_unproven_audit_within_a_hundred_rounds_is_a_strike() -> None:
    driver = AuditDriver(6)
    driver.start()
    strikes, served = [], []
    for round_ in range(3):
        driver.play(1)
        driver.draw(round_)
        said = [OK, MISMATCH, OK, MISMATCH, INCONCLUSIVE]
        strikes.append(driver.judge(round_, 3, said).event("AuditSettled").is_strike)
        served.append(driver.entries[3].included_since_strike)
    assert strikes == [False, False, True]
    assert served == [1, 0, 0], "sampled as a new participant from the second time on"
    assert driver.entries[3].strikes == 1


def test_a_lazy_seat_is_outvoted_unpaid_and_pays() -> None:
    driver = AuditDriver.started()
    lazy = (OK, LAZY)
    landed = driver.judge(0, 5, [OK, lazy, OK, OK, OK])
    settled, penalised = landed.event("AuditSettled"), landed.event("Penalised")
    judge = driver.of(0, 5).seats[1]
    assert settled.outcome == 1
    assert settled.paid.bit_count() == 4
    assert_fields(penalised, index=judge.index, fault=7, burned=2 * FEE)
    assert fined_lamports(penalised) == 2 * FEE
    assert driver.entries[judge.index].seat_faults == 0, "noise is no silence"
    assert judge.flags & SeatFlag.FAULTY and not judge.flags & SeatFlag.PAID
    assert driver.burned() == 2 * FEE


def test_a_pause_moves_every_window_by_its_length() -> None:
    driver = AuditDriver.started()
    driver.open_audit(0, 2)
    end = driver.of(0, 2).stage_end
    authority = driver.authority.pubkey()
    driver.send(life.pause_run(driver.at, authority), driver.authority)
    driver.play(1)
    assert driver.run.phase == Phase.PAUSED
    driver.chain.advance(driver.params.openings_slots + 1)
    driver.send(life.resume_run(driver.at, authority, driver.run.round), driver.authority)
    assert driver.clock <= end < driver.slot
    driver.post(0, 2)
    assert driver.of(0, 2).stage == AuditStage.COMMIT


@pytest.mark.parametrize("num", [4, 5])
def test_a_small_run_extends_to_the_seats_that_there_are(num: int) -> None:
    driver = AuditDriver.started(num)
    driver.post(0, 0)
    driver.take_verdicts(0, 0, [MISMATCH, MISMATCH, MISMATCH])
    assert driver.of(0, 0).num_available == num - 1
    if num == 5:
        driver.extend(0, 0)
        driver.take_verdicts(0, 0, [OK])
    assert driver.settle(0, 0).event("AuditSettled").outcome == AuditOutcome.ACCUSED
