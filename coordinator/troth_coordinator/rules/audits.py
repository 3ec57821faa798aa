"""Duties in an audit or case: whose turn it is, and which step anyone may take.

Owns: the run clock, the stage that a look at the account must assume, duties, due steps, and the
cap of convictions.
Never: counts verdicts (`troth_attestation.quorum` does) or sends anything.
Next: `audit_view.py` for the fields.

The account changes its stage only when somebody acts: a Commit whose window has ended counts as
Reveal (`now`), exactly as the program takes it.
"""

from dataclasses import replace
from enum import Enum
from typing import Final

from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import (
    AuditKind,
    AuditStage,
    AuditView,
    JurorView,
    SeatFlag,
    SeatView,
)
from troth_coordinator.rules.ids import NONE, Slot
from troth_coordinator.rules.params_view import ParamsView
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.progress import num_present
from troth_coordinator.rules.view import (
    NetworkView,
    RoundFlag,
    RoundView,
    RunView,
    SeedStatus,
    Status,
)

FIRST_SEATS: Final = 3
"""Seats that judge a target at first, and the least that an audit needs."""
SECOND_SEATS: Final = 5
"""Seats after the first extension."""
MAX_SEATS: Final = 7
"""Seats after the second extension."""
JURY_SEATS: Final = 7
"""Jurors of a case, where there are enough."""
CONVICTED_PART: Final = 3
"""Convictions for work of one epoch: at most one of so many participants, and at least one."""


class Step(Enum):
    """A step that anyone may send once it is due."""

    HEAR = "settle_audit or extend_audit"
    END_UNOPENED = "settle_audit without openings"
    FORGO = "settle_audit of a request that came to nothing"
    DRAW = "draw_jury"
    DECIDE = "settle_case"
    RELEASE = "release_escrow"


class Act(Enum):
    """The act that a seat or juror owes now."""

    COMMIT = "commit"
    REVEAL = "reveal"


def run_clock(run: RunView, slot: int) -> Slot:
    """Return the run's own time: slots without those in which it was paused."""
    return Slot(max(0, min(slot, run.paused_at_slot) - run.pause_total_slots))


def now(audit: AuditView, params: ParamsView, clock: int) -> AuditView:
    """Return the audit in the stage that it has at `clock`."""
    if clock <= audit.stage_end:
        return audit
    if audit.stage == AuditStage.COMMIT:
        end = Slot(audit.stage_end + params.verdict_reveal_slots)
        return replace(audit, stage=AuditStage.REVEAL, stage_end=end)
    if audit.stage == AuditStage.CASE_COMMIT:
        end = Slot(audit.stage_end + params.jury_reveal_slots)
        return replace(audit, stage=AuditStage.CASE_REVEAL, stage_end=end)
    return audit


def is_ripe(round_: RoundView) -> bool:
    """Tell whether a round waits for no seed; an RPC node may still show the round open."""
    is_waiting = round_.seed_status in (SeedStatus.PENDING, SeedStatus.RETARGETED)
    return bool(round_.flags & RoundFlag.CLOSED) and not is_waiting


def acting_seats(audit: AuditView) -> tuple[SeatView, ...]:
    """Return the seats whose windows are open: the first ones, or those of the newest extension."""
    return audit.judging[audit.first_acting :]


def seat_duty(audit: AuditView, index: int, clock: int) -> Act | None:
    """Return what the seat of a participant owes in an audit made current by `now`."""
    seat = next((seat for seat in acting_seats(audit) if seat.index == index), None)
    return _duty(audit, seat, clock, (AuditStage.COMMIT, AuditStage.REVEAL))


def juror_duty(audit: AuditView, index: int, clock: int) -> Act | None:
    """Return what the juror of a participant owes in a case made current by `now`."""
    juror = next((juror for juror in audit.jurors if juror.index == index), None)
    return _duty(audit, juror, clock, (AuditStage.CASE_COMMIT, AuditStage.CASE_REVEAL))


def due_step(
    audit: AuditView, run: RunView, slot: int, round_: RoundView | None = None
) -> Step | None:
    """Return the step that anyone may send for an audit made current by `now`.

    `round_` is the round of the audit while the ring holds it, if it is ripe.
    The program settles an audit of a payload that was struck meanwhile at any time; here it takes
    its course and ends the same.
    """
    clock = run_clock(run, slot)
    stage, is_over = audit.stage, clock > audit.stage_end
    if stage == AuditStage.REQUESTED and _is_forgone(audit, run, clock, round_):
        return Step.FORGO
    if stage == AuditStage.OPENINGS and is_over:
        return Step.END_UNOPENED
    if stage == AuditStage.REVEAL and (is_over or _all_shown(acting_seats(audit))):
        return Step.HEAR
    if stage == AuditStage.ACCUSED and slot > audit.case_seed_slot:
        return Step.DRAW
    if stage == AuditStage.CASE_REVEAL and (is_over or _all_shown(audit.jurors)):
        return Step.DECIDE
    is_past = stage == AuditStage.SETTLED or (
        stage == AuditStage.DECIDED and clock > audit.case_end
    )
    return Step.RELEASE if is_past and is_over else None


def is_cap_reached(view: NetworkView, kind: AuditKind, target: int) -> bool:
    """Tell whether another conviction of this kind would be one too many until the next epoch.

    The cap counts participants, each once in an epoch and for each kind. A finished run has no cap,
    and a barred participant has nothing left to lose.
    """
    run = view.run
    convicted = run.convicted[kind]
    is_exempt = run.phase == Phase.FINISHED or run.audit_epoch != run.epoch
    is_counted = bitmap.has(convicted, target)
    if is_exempt or is_counted or view.entries[target].status == Status.BARRED:
        return False
    return convicted.bit_count() >= max(1, num_present(view) // CONVICTED_PART)


def is_convicted(view: NetworkView, kind: AuditKind, target: int, round_: int) -> bool:
    """Tell whether a conviction of this kind was decided once the round was open.

    A further one takes the reward of that round at most, and needs no place of the cap.
    """
    decided = view.entries[target].decided_round[kind]
    return decided != NONE and round_ <= decided


def is_conviction_pending(view: NetworkView, kind: AuditKind, target: int) -> bool:
    """Tell whether an earlier conviction of this kind may still be reversed: the next one waits."""
    return bitmap.has(view.entries[target].pending_kinds, kind)


def _is_forgone(audit: AuditView, run: RunView, clock: int, round_: RoundView | None) -> bool:
    """Whether nobody can open a requested audit any more."""
    if round_ is None:
        return run.round >= audit.round + run.params.ring
    is_included = bitmap.has(round_.included, audit.target)
    if round_.seed_status == SeedStatus.FROZEN and is_included:
        return clock > round_.freeze_clock + run.params.openings_slots
    return True


def _duty(
    audit: AuditView,
    place: SeatView | JurorView | None,
    clock: int,
    stages: tuple[AuditStage, AuditStage],
) -> Act | None:
    if place is None or clock > audit.stage_end:
        return None
    has_committed = bool(place.flags & SeatFlag.COMMITTED)
    if audit.stage == stages[0] and not has_committed:
        return Act.COMMIT
    has_revealed = bool(place.flags & SeatFlag.REVEALED)
    if audit.stage == stages[1] and has_committed and not has_revealed:
        return Act.REVEAL
    return None


def _all_shown(places: tuple[SeatView, ...] | tuple[JurorView, ...]) -> bool:
    return all(p.flags & SeatFlag.REVEALED or not p.flags & SeatFlag.COMMITTED for p in places)
