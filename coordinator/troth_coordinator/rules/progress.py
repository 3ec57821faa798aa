"""What is due now, read from one view of the chain (protocol sections 1 and 3).

Owns: who must act in the current phase, who has, and whether a transition may land.
Never: sends anything; `chain/client.py` does.
Next: `phase.py` for the timing rule, `root.py` for what a close decides.
"""

from dataclasses import dataclass

from troth_coordinator.rules import bitmap
from troth_coordinator.rules.ids import NOBODY, NONE, Bitmap, Slot
from troth_coordinator.rules.phase import Phase, attest_by, end_by_time, may_end
from troth_coordinator.rules.view import EntryView, NetworkView, RunView, Status

TIMED_PHASES = (Phase.WARMUP, Phase.COMMIT, Phase.ATTEST, Phase.COOLDOWN)


@dataclass(frozen=True, slots=True)
class Attendance:
    """Who must act in a phase and who of them has."""

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
    if view.round is None:
        return Attendance(NOBODY, NOBODY)
    if view.run.phase in (Phase.COMMIT, Phase.COOLDOWN):
        return Attendance(view.round.trainers, view.round.committed)
    if view.run.phase == Phase.ATTEST:
        return Attendance(view.round.members, view.round.attested)
    return Attendance(NOBODY, NOBODY)


def is_ready_for(entry: EntryView, run: RunView) -> bool:
    """Tell whether an entry has posted `ready` for the run's stored root (checked on chain)."""
    return entry.ready_round == run.root_round and any(entry.ready_root)


def phase_end_by_time(run: RunView) -> Slot:
    """Return the first slot in which the current phase may end even if nobody acts any more."""
    return end_by_time(run.phase_start_slot, run.phase_end_slot, run.quorum_slot)


def attest_deadline(run: RunView) -> Slot:
    """Return the slot from which an incomplete attestation should be sent."""
    return attest_by(run.phase_start_slot, run.phase_end_slot, run.quorum_slot)


def is_transition_due(view: NetworkView) -> bool:
    """Tell whether a tick or close that lands in the view's slot may move the run on."""
    run = view.run
    if run.phase == Phase.WAITING_FOR_MEMBERS:
        return num_pending(view) >= run.params.min_members
    if run.phase == Phase.HALTED:
        return view.slot >= min(run.phase_start_slot + run.params.halt_slots, NONE)
    if run.phase not in TIMED_PHASES:
        return False
    who = attendance(view)
    num_acted = bitmap.count(who.acted & who.required)
    return may_end(view.slot, phase_end_by_time(run), num_acted, bitmap.count(who.required))


def num_pending(view: NetworkView) -> int:
    """Return how many participants wait for Warmup."""
    return sum(entry.status == Status.PENDING for entry in view.entries)


def void_allowed_from(run: RunView) -> Slot:
    """Return the first slot in which `close_void` may land: the grace after Attest has passed."""
    return Slot(min(run.phase_end_slot + run.params.close_grace_slots + 1, NONE))


def _warmup_attendance(view: NetworkView) -> Attendance:
    pending = [i for i, entry in enumerate(view.entries) if entry.status == Status.PENDING]
    ready = [i for i in pending if is_ready_for(view.entries[i], view.run)]
    return Attendance(bitmap.from_indices(pending), bitmap.from_indices(ready))
