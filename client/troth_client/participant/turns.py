"""Turns: who sends, in this slot, what anyone may send.

Owns: the order in which participants take turns. Never: decides what is due, or sends it.
Next: `housekeeping.py`, which asks for each step.

One participant a slot, so that sends rarely meet: one that comes second is refused, or costs a fee
for nothing. A step whose turn comes to somebody who is away waits for the next slot.
All draw alike, from step and slot. Going round by the slot would keep a participant that looks at
each fourth slot from ever having a turn among four.
"""

from collections.abc import Sequence
from random import Random

from troth_coordinator.rules import bitmap
from troth_coordinator.rules.view import NetworkView, Status


def is_our_turn(index: int, view: NetworkView, step: Sequence[int]) -> bool:
    """Tell whether participant `index` sends a step, named by numbers, in the slot of a view.

    One of the members does. A participant that is no member draws as if it were one more.
    """
    members = _members(view)
    if index not in members:
        members.append(index)
    return Random(f"{view.slot} {tuple(map(int, step))}").choice(members) == index


def _members(view: NetworkView) -> list[int]:
    """Return the members of the open round; between rounds, those that may be in the next."""
    if view.round is not None:
        return list(bitmap.indices_of(view.round.members))
    may_be = (Status.PENDING, Status.ACTIVE)
    return [index for index, entry in enumerate(view.entries) if entry.status in may_be]
