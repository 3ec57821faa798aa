"""A closed round as the chain shows it: its slots, who took part, what was included.

Owns: one record of it, from the Round account while the ring holds it.
Never: reads the chain, or knows a loss: that stands in headers, which the chain has only by hash.
Next: `troth_cli/observe/`, which collects these records.
"""

from dataclasses import dataclass

from troth_coordinator.rules import bitmap
from troth_coordinator.rules.ids import NONE, Bitmap
from troth_coordinator.rules.view import RoundFlag, RoundView


@dataclass(frozen=True, slots=True)
class ClosedRound:
    """How a round ended. `open_slot` is None where the record has no open."""

    round: int
    open_slot: int | None
    close_slot: int
    num_members: int
    num_trainers: int
    num_committed: int
    num_attested: int
    included: Bitmap
    is_void: bool

    @property
    def num_included(self) -> int:
        """How many payloads it included."""
        return bitmap.count(self.included)


def closed_round(account: RoundView | None) -> ClosedRound | None:
    """Return the record of a Round account; None for an open round or the root-only step."""
    if account is None or not account.flags & RoundFlag.CLOSED:
        return None
    if account.flags & RoundFlag.ROOT_ONLY or account.close_slot == NONE:
        return None
    return ClosedRound(
        round=account.round,
        open_slot=account.open_slot,
        close_slot=account.close_slot,
        num_members=bitmap.count(account.members),
        num_trainers=bitmap.count(account.trainers),
        num_committed=bitmap.count(account.committed),
        num_attested=bitmap.count(account.attested),
        included=account.included,
        is_void=bool(account.flags & RoundFlag.VOID),
    )
