"""An audit from the sample to its outcome, as everybody plays by the rules."""

import pytest
from program.audits import LAZY, MISMATCH, OK, UNAVAILABLE, Court, openings_of
from program.rounds import root_of

from troth_attestation.sampling import seats_of
from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.audit_view import AuditFlag, AuditStage, SeatFlag
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

FEE = 200


def test_three_honest_seats_clear_an_honest_target_and_are_paid() -> None:
    court = Court.in_session()
    pool, unvested = court.run.reward_pool, court.run.total_unvested
    opened = court.open_audit(0, 2).event("AuditOpened")
    audit = court.of(0, 2)
    frozen = court.round(0)
    assert audit.stage == AuditStage.OPENINGS
    assert tuple(opened.seats[: audit.num_available]) == seats_of(frozen.seed, 2, frozen.eligible)
    assert [seat.index for seat in audit.seats] == list(opened.seats)
    assert (audit.canonical_root, audit.seed) == (root_of(0), frozen.seed)
    assert (audit.header_hash, audit.vouchers) == (frozen.slots[2].header_hash, 0b111111)
    assert (audit.reward_paid, audit.previous_included) == (1_000, NONE)
    assert opened.stage_end == frozen.freeze_clock + court.params.openings_slots

    posted = court.post(0, 2).event("OpeningsPosted")
    assert posted.root == openings_of(0, 2)
    assert posted.stage_end == audit.stage_end + court.params.verdict_commit_slots
    court.hear(0, 2, [OK, OK, OK])
    settled = court.settle(0, 2).event("AuditSettled")
    judges = [seat.index for seat in audit.seats[:3]]
    assert (settled.outcome, settled.fee) == (1, FEE)
    assert settled.paid == sum(1 << index for index in judges)
    assert court.run.reward_pool == pool - 3 * FEE
    assert court.run.total_unvested == unvested + 3 * FEE
    after = court.of(0, 2)
    assert after.stage == AuditStage.SETTLED
    assert after.stage_end == court.round(0).close_clock + court.params.case_slots
    assert all(seat.flags & SeatFlag.PAID for seat in after.judging)
    assert court.burned() == 0


def test_whoever_must_show_openings_can_open_its_audit_itself() -> None:
    court = Court.in_session()
    landed = court.post(0, 4)
    assert landed.names() == ["AuditOpened", "OpeningsPosted"]
    assert court.of(0, 4).payer == bytes(court.sessions[4].pubkey())


def test_the_freeze_tells_who_is_sampled_and_a_later_correction_changes_nothing() -> None:
    court = Court.in_session(6, 2, p_base_ppm=0, p_new_ppm=500_000)
    frozen = court.round(1)
    assert 0 < frozen.sampled < 0b111111, "the seed of this run samples some"
    (event,) = [e for e in court.ledger.events if e.name == "SeedFrozen" and e.round == 1]
    assert (event.sampled, event.unseated) == (frozen.sampled, 0)
    inside = frozen.sampled.bit_length() - 1
    outside = next(i for i in range(6) if not frozen.sampled >> i & 1)
    assert court.refused(court.open_instruction(1, outside), court.cranker) == "NotSampled"
    court.open_audit(1, inside)
    assert court.round(1).audited == 1 << inside


def test_windows_end_early_once_every_seat_has_acted() -> None:
    court = Court.in_session()
    court.post(0, 1)
    audit = court.of(0, 1)
    for seat in audit.judging:
        commit, _ = court.commit_instructions(audit, seat.index, OK)
        landed = court.send(commit, court.sessions[seat.index])
    committed = landed.event("VerdictCommitted")
    assert committed.stage == AuditStage.REVEAL
    assert committed.stage_end == court.clock + court.params.verdict_reveal_slots
    for seat in audit.judging:
        assert court.refused(court.settle_instruction(0, 1), court.cranker) == "WindowOpen"
        _, reveal = court.commit_instructions(audit, seat.index, OK)
        court.send(reveal, court.sessions[seat.index])
    assert court.settle(0, 1).event("AuditSettled").outcome == 1


def test_a_disagreement_seats_two_more_and_three_decide() -> None:
    court = Court.in_session()
    court.post(0, 0)
    court.hear(0, 0, [OK, MISMATCH, OK])
    assert court.refused(court.settle_instruction(0, 0), court.cranker) == "ExtensionDue"
    extended = court.extend(0, 0).event("AuditExtended")
    assert extended.num_seats == 5
    assert extended.stage_end == court.clock + court.params.verdict_commit_slots
    assert court.of(0, 0).flags & AuditFlag.EXTENDED
    court.hear(0, 0, [OK, OK])
    settled = court.settle(0, 0).event("AuditSettled")
    assert (settled.outcome, settled.paid.bit_count()) == (1, 5), "an honest doubt is paid too"


def test_three_mismatches_accuse_and_freeze_the_target() -> None:
    court = Court.in_session()
    settled = court.judge(0, 3, [MISMATCH, MISMATCH, MISMATCH, OK, OK]).event("AuditSettled")
    assert settled.outcome == 3
    assert settled.case_seed_slot == court.slot + court.params.seed_delay_slots
    audit = court.of(0, 3)
    assert (audit.stage, audit.stage_end) == (AuditStage.ACCUSED, NONE)
    assert audit.case_seed_slot == settled.case_seed_slot
    entry = court.entries[3]
    assert (entry.frozen, entry.targets) == (1, 1)
    assert entry.status == Status.ACTIVE, "nobody is punished before a second committee"
    assert (court.run.accused, court.run.sampled) == (0b001000, 0b111111)


def test_without_a_majority_the_reward_is_undone_and_sampling_is_that_of_the_new() -> None:
    court = Court.in_session()
    pool = court.run.reward_pool
    settled = court.judge(0, 3, [OK, MISMATCH, OK, MISMATCH, UNAVAILABLE]).event("AuditSettled")
    assert (settled.outcome, settled.reward_undone) == (5, 1_000)
    assert settled.paid.bit_count() == 4, "unavailable earns nothing here"
    assert court.run.reward_pool == pool + 1_000 - 4 * FEE
    entry = court.entries[3]
    assert (entry.included_since_strike, entry.strikes) == (0, 0)
    assert 0 in entry.unproven_rounds
    assert court.round(0).unpaid == 0b001000


def test_the_third_unproven_audit_within_a_hundred_rounds_is_a_strike() -> None:
    court = Court(6)
    court.start()
    strikes = []
    for round_ in range(3):
        court.play(1)
        court.draw(round_)
        said = [OK, MISMATCH, OK, MISMATCH, UNAVAILABLE]
        strikes.append(court.judge(round_, 3, said).event("AuditSettled").is_strike)
    assert strikes == [False, False, True]
    assert court.entries[3].strikes == 1


def test_a_lazy_seat_is_outvoted_unpaid_and_pays() -> None:
    court = Court.in_session()
    lazy = (OK, LAZY)
    landed = court.judge(0, 5, [OK, lazy, OK, OK, OK])
    settled, penalised = landed.event("AuditSettled"), landed.event("Penalised")
    judge = court.of(0, 5).seats[1]
    assert (settled.outcome, settled.paid.bit_count()) == (1, 4)
    assert (penalised.index, penalised.fault, penalised.stake) == (judge.index, 7, 10_000)
    assert (penalised.treasury, penalised.burned) == (5_000, 5_000)
    assert penalised.status == Status.INACTIVE, "its stake is below the minimum now"
    assert judge.flags & SeatFlag.FAULTY and not judge.flags & SeatFlag.PAID
    assert (court.burned(), court.run.treasury) == (5_000, 5_000)


def test_a_pause_moves_every_window_by_its_length() -> None:
    court = Court.in_session()
    court.open_audit(0, 2)
    end = court.of(0, 2).stage_end
    authority = court.authority.pubkey()
    court.send(life.pause_run(court.at, authority), court.authority)
    court.play(1)
    assert court.run.phase == Phase.PAUSED
    court.chain.advance(court.params.openings_slots + 1)
    court.send(life.resume_run(court.at, authority, court.run.round), court.authority)
    assert court.clock <= end < court.slot
    court.post(0, 2)
    assert court.of(0, 2).stage == AuditStage.COMMIT


@pytest.mark.parametrize("num", [4, 5])
def test_a_small_run_extends_to_the_seats_that_there_are(num: int) -> None:
    court = Court.in_session(num)
    court.post(0, 0)
    court.hear(0, 0, [MISMATCH, MISMATCH, MISMATCH])
    assert court.of(0, 0).num_available == num - 1
    if num == 5:
        court.extend(0, 0)
        court.hear(0, 0, [OK])
    assert court.settle(0, 0).event("AuditSettled").outcome == 3
