"""The next step of a run, read from one view of the chain (protocol sections 1 and 3).

Owns: who must act in the current phase, who has, whether a transition may land, and when those
who took part are gone.
Never: sends anything; `chain/client.py` does.
Next: `phase.py` for the timing rule, `root.py` for what a close decides.
"""

from dataclasses import dataclass

from troth_coordinator.rules import bitmap
from troth_coordinator.rules.expected_members import ExpectedMembers
from troth_coordinator.rules.ids import NOBODY, NONE, Bitmap, Slot
from troth_coordinator.rules.params import joins_are_open
from troth_coordinator.rules.phase import Phase, attest_by, end_by_time, may_end
from troth_coordinator.rules.standing import is_short
from troth_coordinator.rules.view import (
    EntryView,
    NetworkView,
    Role,
    RoundFlag,
    RunFlag,
    RunView,
    Status,
)

PRESENT = (Status.PENDING, Status.ACTIVE, Status.INACTIVE, Status.JAILED)
"""Participants that are in the run or may come back to it."""
LINGER_SLOTS = 16
"""For how long after the end of a run the participants still serve what slower ones lack."""


@dataclass(frozen=True, slots=True)
class Attendance:
    """The participants that must act in a phase, and those of them that have."""

    required: Bitmap
    acted: Bitmap

    @property
    def missing(self) -> Bitmap:
        """Those who still have to act."""
        return Bitmap(self.required & ~self.acted)


def attendance(view: NetworkView) -> Attendance:
    """Return who must act now: trainers in Commit and Cooldown, members in Attest and Warmup."""
    if view.run.phase == Phase.WARMUP:
        return _warmup_attendance(view)
    if view.run.phase in (Phase.COMMIT, Phase.COOLDOWN) and view.round is not None:
        return Attendance(view.round.trainers, view.round.committed)
    if view.run.phase == Phase.ATTEST and view.round is not None:
        return Attendance(view.round.members, view.round.attested)
    return Attendance(NOBODY, NOBODY)


def is_ready_for(entry: EntryView, run: RunView) -> bool:
    """Tell whether an entry is ready for the run's stored root, with stake enough to stay."""
    return entry.ready_round == run.root_round and not is_short(entry, run.params)


def phase_end_by_time(run: RunView) -> Slot:
    """Return the first slot in which the current phase may end even if nobody acts any more."""
    return end_by_time(run.phase_start_slot, run.phase_end_slot, run.quorum_slot)


def attest_deadline(run: RunView) -> Slot:
    """Return the slot from which an incomplete attestation should be sent."""
    return attest_by(run.phase_start_slot, run.phase_end_slot, run.quorum_slot)


def is_forced_void(view: NetworkView) -> bool:
    """Tell whether the open round must close void because a payload of its base is missing."""
    return view.round is not None and bool(view.round.flags & RoundFlag.FORCED_VOID)


def is_transition_due(view: NetworkView) -> bool:
    """Tell whether `advance_phase` or a close in the view's slot may move the run on."""
    run = view.run
    if run.phase == Phase.WAITING_FOR_MEMBERS:
        return _can_leave_waiting(view)
    if run.phase == Phase.HALTED:
        return view.slot > run.phase_end_slot
    if run.phase in (Phase.COMMIT, Phase.ATTEST, Phase.COOLDOWN) and is_forced_void(view):
        return True
    if run.phase not in (Phase.WARMUP, Phase.COMMIT, Phase.ATTEST, Phase.COOLDOWN):
        return False
    who = attendance(view)
    num_acted, num_required = bitmap.count(who.acted), bitmap.count(who.required)
    return may_end(view.slot, phase_end_by_time(run), num_acted, num_required)


def pending(view: NetworkView) -> Bitmap:
    """Return the participants that wait for Warmup, or are its members."""
    return bitmap.from_indices(
        index for index, entry in enumerate(view.entries) if entry.status == Status.PENDING
    )


def num_pending(view: NetworkView) -> int:
    """Return how many participants wait for Warmup."""
    return bitmap.count(pending(view))


def num_present(view: NetworkView) -> int:
    """Return how many participants take part or may come back."""
    return sum(entry.status in PRESENT for entry in view.entries)


def can_begin(view: NetworkView, *, by_authority: bool = False) -> bool:
    """Tell whether Warmup may begin: enough participants wait, one trains, and a round is left.

    Half of the expected members must be there; the authority may begin with fewer.
    """
    params, waiting = view.run.params, pending(view)
    roles = (view.entries[index].roles for index in bitmap.indices_of(waiting))
    has_trainer = any(role & Role.TRAINER for role in roles)
    is_enough = bitmap.count(waiting) >= least_to_begin(view.run, by_authority=by_authority)
    return is_enough and has_trainer and view.run.round < params.max_rounds


def least_to_begin(run: RunView, *, by_authority: bool = False) -> int:
    """Return how many participants must be there before the authority, or anybody, may begin."""
    least = run.params.min_members
    return least if by_authority else ExpectedMembers.of(run).least_to_begin(least)


def vain_from(run: RunView) -> Slot:
    """Return the first slot in which a run that still waits may be given up.

    Since its last closed round it has then waited, in all and on its own clock, as long as a
    withdrawal of stake takes. Before the first round only its authority may end it, later anyone,
    by `advance_phase`.
    """
    last = run.waiting_since + run.params.unbond_slots + run.pause_total_slots
    return Slot(min(last + 1, NONE))


def is_in_vain(view: NetworkView, by_authority: bool = False) -> bool:
    """Tell whether `advance_phase` gives the run up, although enough participants may be there.

    It has waited for too long, its last Warmup was given, and too few are ready now.
    """
    run = view.run
    may_give_up = by_authority or run.round > 0
    if not may_give_up or not run.flags & RunFlag.LAST_WARMUP or view.slot < vain_from(run):
        return False
    least = least_to_begin(run, by_authority=by_authority)
    return bitmap.count(_warmup_attendance(view).acted) < least


def void_allowed_from(run: RunView) -> Slot:
    """Return the first slot in which `close_void` may land: the grace after Attest has passed."""
    return Slot(min(run.phase_end_slot + run.params.close_grace_slots + 1, NONE))


def has_dispersed(view: NetworkView) -> bool:
    """Return whether the run has ended and its participants no longer serve anything."""
    run = view.run
    return run.phase == Phase.FINISHED and view.slot >= run.finished_slot + LINGER_SLOTS


def is_pause_spent(run: RunView, slot: int) -> bool:
    """Tell whether the pauses have used up their budget, so that anyone may resume the run."""
    elapsed = 0 if run.paused_at_slot == NONE else max(0, slot - run.paused_at_slot)
    return run.pause_used_slots + elapsed >= run.params.max_pause_slots


def _warmup_attendance(view: NetworkView) -> Attendance:
    members = pending(view)
    ready = bitmap.from_indices(
        index for index in bitmap.indices_of(members) if is_ready_for(view.entries[index], view.run)
    )
    return Attendance(members, ready)


def _can_leave_waiting(view: NetworkView) -> bool:
    # To Warmup with enough members and a trainer, or to Finished where no round opens any more.
    # A run that waits in vain may be ended so as well; that is a person's decision, so it is
    # not called due here.
    params = view.run.params
    if view.run.round >= params.max_rounds or (can_begin(view) and not is_in_vain(view)):
        return True
    return not joins_are_open(view.run.round, params) and num_present(view) < params.min_members
