"""Stake keeping: top up the stake from the owner's account when a fine has made it too small.

Owns: when a stake is short, and the amount of a top-up.
Never: tops up while an audit or a case is open against us, for its end may take half of that, too.
Next: `keeping.py` for the limit on all top-ups of one process, and their reports.
"""

from dataclasses import dataclass
from typing import ClassVar

from troth_client.participant.keeping import Keeping
from troth_coordinator.rules.membership import index_of_owner
from troth_coordinator.rules.standing import is_short, needed_stake
from troth_coordinator.rules.view import EntryFlag, EntryView, Status

RETURNING = (Status.PENDING, Status.ACTIVE, Status.INACTIVE)
"""Participants that take part, or may come back by `post_ready` once the stake suffices."""


@dataclass(slots=True)
class StakeKeeping(Keeping):
    """Brings a short stake back to the one to join with."""

    ADDED: ClassVar[str] = "stake_topped_up"
    FAILED: ClassVar[str] = "stake_top_up_failed"

    async def check(self) -> None:
        """Add to the stake if it is short. Raises ChainError."""
        view = await self.owner.client.snapshot(self.owner.at.run)
        index = index_of_owner(view.entries, bytes(self.owner.key.pubkey()))
        if index is None or not may_top_up(view.entries[index]):
            return
        entry, params = view.entries[index], view.run.params
        if not is_short(entry, params):
            return
        amount = min(params.min_stake_lamports - entry.stake, self.left)
        missing = needed_stake(entry, params) - entry.stake
        if amount < missing:
            limit = f"{missing} lamports are missing, and the limit of top-ups leaves {self.left}"
            self.report(f"{limit}; `troth stake top-up` adds more")
            return
        await self.add(amount, self.owner.top_up_stake)


def may_top_up(entry: EntryView) -> bool:
    """Tell whether more stake would bring this entry back, or keep it, and no case is open."""
    is_leaving = bool(entry.flags & EntryFlag.LEAVING)
    return entry.status in RETURNING and not is_leaving and entry.frozen == 0
