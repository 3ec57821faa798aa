"""Turns: who sends, in this slot, what anyone may send.

Owns: the draw of the participant whose turn it is. Never: decides what is due, or sends it.
Next: `housekeeping.py`, which asks for each step; protocol section 1.

One member a slot, as far as their views agree: a send that comes second is refused, or costs a fee
for nothing. The next slot draws again, so a member that is away costs a slot. On a public chain a
step shows some slots after it was sent; the members of those slots send it as well.
"""

from collections.abc import Sequence

from troth_attestation.sampling import score
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.hashing import u64
from troth_coordinator.rules.view import NetworkView, Status


def is_our_turn(index: int, view: NetworkView, step: Sequence[int]) -> bool:
    """Tell whether participant `index` sends a step, named by numbers, in the slot of a view.

    All draw alike, from run, slot and step. Going round by the slot would keep a participant that
    looks at each fourth slot from ever having a turn among four. A participant that is no member
    draws as if it were one more: all members may be away.
    """
    members = _members(view)
    if index not in members:
        members.append(index)
    drawn = score("troth:turn", view.run.address, u64(view.slot), *map(u64, step))
    return members[drawn % len(members)] == index


def _members(view: NetworkView) -> list[int]:
    """Return the members of the open round; between rounds, those that may be in the next."""
    if view.round is not None:
        return list(bitmap.indices_of(view.round.members))
    may_be = (Status.PENDING, Status.ACTIVE)
    return [index for index, entry in enumerate(view.entries) if entry.status in may_be]
