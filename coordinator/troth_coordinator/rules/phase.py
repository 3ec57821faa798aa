"""Phases of a run and the one rule that says when a phase may end.

Owns: the phase numbers and the timing rule (a)(b)(c) of protocol section 1.
Never: moves a run to another phase; the program does, by the first transition that lands.
Next: `progress.py`, which applies the rule to what the chain shows.
"""

from enum import IntEnum

from troth_coordinator.rules.ids import NONE, Slot

QUORUM_NUMERATOR = 4
"""Four fifths of those who must act: 5 * acted >= 4 * required."""
QUORUM_DENOMINATOR = 5
MIN_QUORUM_WAIT_SLOTS = 8
"""The least time that stragglers get after four fifths have acted."""
ATTEST_MARGIN_SLOTS = 4
"""An incomplete attestation is sent this many slots before the phase may end without it."""


class Phase(IntEnum):
    """The phases of a run; the values are those of the program."""

    WAITING_FOR_MEMBERS = 0
    WARMUP = 1
    COMMIT = 2
    ATTEST = 3
    COOLDOWN = 4
    PAUSED = 5
    HALTED = 6
    FINISHED = 7


IN_ROUND = (Phase.COMMIT, Phase.ATTEST)
"""The phases of an open round."""


def has_quorum(acted: int, required: int) -> bool:
    """Tell whether four fifths of those who must act have acted."""
    return QUORUM_DENOMINATOR * acted >= QUORUM_NUMERATOR * required


def end_by_time(start_slot: int, last_slot: int, quorum_slot: int) -> Slot:
    """Return the first slot in which a phase may end even if nobody acts any more.

    Rule (a): after its last slot. Rule (c): a quarter of the time that four fifths needed (at
    least 8 slots) after they had acted. `quorum_slot` is NONE while they have not.
    """
    end = min(last_slot + 1, NONE)
    if quorum_slot == NONE:
        return Slot(end)
    waited = max(MIN_QUORUM_WAIT_SLOTS, max(0, quorum_slot - start_slot) // 4)
    return Slot(min(end, quorum_slot + waited))


def may_end(slot: int, end_slot: int, acted: int, required: int) -> bool:
    """Tell whether a transition that lands in `slot` may end the phase.

    `end_slot` is that of `end_by_time`; all acted is rule (b).
    """
    return slot >= end_slot or acted >= required


def accepts_actions(slot: int, last_slot: int) -> bool:
    """Tell whether an action in `slot` still counts: through the last slot inclusive."""
    return slot <= last_slot


def ran_to_deadline(slot: int, last_slot: int) -> bool:
    """Tell whether a phase that ends by a transition in `slot` gave everyone the full time."""
    return slot > last_slot


def attest_by(start_slot: int, last_slot: int, quorum_slot: int) -> Slot:
    """Return the slot from which an incomplete attestation should be sent (protocol section 4)."""
    return Slot(
        max(start_slot, end_by_time(start_slot, last_slot, quorum_slot) - ATTEST_MARGIN_SLOTS)
    )
