"""Turns: who sends, in this slot, what anyone may send.

Owns: the order in which participants take turns. Never: decides what is due, or sends it.
Next: `housekeeping.py`, which asks for each step.

One participant a slot, so that sends rarely meet: one that comes second is refused, or costs a fee
for nothing. A step whose turn comes to somebody who is away waits for the next slot.
"""

from collections.abc import Iterable

from troth_coordinator.rules import bitmap
from troth_coordinator.rules.view import NetworkView, Status


def is_our_turn(index: int, view: NetworkView, step: Iterable[int]) -> bool:
    """Tell whether participant `index` sends a step, named by numbers, in the slot of a view.

    Members follow each other by their indices, and different steps begin with different members.
    A participant that is no member comes after the last.
    """
    members = _members(view)
    place = members.index(index) if index in members else len(members)
    num_places = max(len(members), place + 1)
    return (view.slot + sum(step)) % num_places == place


def _members(view: NetworkView) -> list[int]:
    """Return the members of the open round; between rounds, those that may be in the next."""
    if view.round is not None:
        return list(bitmap.indices_of(view.round.members))
    may_be = (Status.PENDING, Status.ACTIVE)
    return [index for index, entry in enumerate(view.entries) if entry.status in may_be]
