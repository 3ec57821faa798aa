"""Stake keeping: top up the stake from the owner's account when a fine has made it too small.

Owns: when a stake is short, the amount of a top-up, and the limit on all of them in one process.
Never: tops up while an audit or a case is open against us, for its end may take half of that, too.
Next: `process.py`, which runs it beside the rounds.
"""

import asyncio
from dataclasses import dataclass, field

from troth_client.telemetry.events import EventSink
from troth_coordinator.chain.errors import ChainError
from troth_coordinator.chain.operations import Owner
from troth_coordinator.rules.membership import index_of_owner
from troth_coordinator.rules.standing import is_short, needed_stake
from troth_coordinator.rules.view import EntryFlag, EntryView, Status

RETURNING = (Status.PENDING, Status.ACTIVE, Status.INACTIVE)
"""Participants that take part, or may come back by `post_ready` once the stake suffices."""


@dataclass(slots=True)
class StakeKeeping:
    """Brings a short stake back to the one to join with; adds at most `left` lamports in all.

    Each top-up is the event `stake_topped_up`. One that fails (the limit is too small, an owner
    without money, an RPC node that does not answer) is reported once per reason and tried again.
    """

    owner: Owner
    left: int
    events: EventSink
    _reported: str = field(default="")

    async def watch(self, seconds: float) -> None:
        """Check the stake at a fixed interval; return when nothing is left to add."""
        while self.left > 0:
            try:
                await self.top_up()
            except ChainError as error:
                self._report(str(error))
            await asyncio.sleep(seconds)

    async def top_up(self) -> None:
        """Add to the stake if it is short. Raises ChainError."""
        view = await self.owner.client.snapshot(self.owner.at.run)
        index = index_of_owner(view.entries, bytes(self.owner.key.pubkey()))
        if index is None or not is_waiting_for(view.entries[index]):
            return
        entry, params = view.entries[index], view.run.params
        if not is_short(entry, params):
            return
        amount = min(params.min_stake_lamports - entry.stake, self.left)
        missing = needed_stake(entry, params) - entry.stake
        if amount < missing:
            limit = f"{missing} lamports are missing, and the limit of top-ups leaves {self.left}"
            self._report(f"{limit}; `troth stake top-up` adds more")
            return
        sent = await self.owner.top_up_stake(amount)
        self.left -= amount
        self._reported = ""
        self.events.emit("stake_topped_up", lamports=amount, left=self.left, fee=sent.fee_lamports)

    def _report(self, reason: str) -> None:
        if reason != self._reported:
            self._reported = reason
            self.events.emit("stake_top_up_failed", reason=reason)


def is_waiting_for(entry: EntryView) -> bool:
    """Tell whether more stake would bring this entry back, or keep it, and nothing is open."""
    is_leaving = bool(entry.flags & EntryFlag.LEAVING)
    return entry.status in RETURNING and not is_leaving and entry.frozen == 0
