"""Session funding: refill the session key from the owner's account when it runs low.

Owns: the low mark, the amount of a refill, and the limit on all refills of one process.
Never: funds a session key that received nothing at join: somebody else pays for that key.
Next: `process.py`, which runs it beside the rounds.
"""

import asyncio
from dataclasses import dataclass, field

from solders.pubkey import Pubkey

from troth_client.telemetry.events import EventSink
from troth_coordinator.chain import rent
from troth_coordinator.chain.errors import ChainError
from troth_coordinator.chain.operations import Owner

LOW_SHARE = 4
"""A session key is low below this share of its full balance: still enough for many rounds."""
UNSPENDABLE_LAMPORTS = rent.exempt_lamports(0)
"""The balance that every account must keep: no fee may be paid out of it."""


@dataclass(slots=True)
class SessionFunding:
    """Keeps the session key at about `full` lamports; moves at most `left` lamports in all.

    Each refill is the event `session_refilled`. A refill that fails (an owner without money, an RPC
    node that does not answer) is reported once per reason and tried again.
    """

    owner: Owner
    session: Pubkey
    full: int
    left: int
    events: EventSink
    _reported: str = field(default="")

    async def watch(self, seconds: float) -> None:
        """Check the balance at a fixed interval; return when nothing is left to move."""
        while self.full > UNSPENDABLE_LAMPORTS and self.left > 0:
            try:
                await self.refill()
            except ChainError as error:
                self._report(str(error))
            await asyncio.sleep(seconds)

    async def refill(self) -> None:
        """Fill the session key up if it is low. Raises ChainError."""
        chain = self.owner.client
        balance = await chain.balance(self.session)
        spendable = balance - UNSPENDABLE_LAMPORTS
        if spendable * LOW_SHARE >= self.full - UNSPENDABLE_LAMPORTS:
            return
        amount = min(self.full - balance, self.left)
        sent = await self.owner.fund_session(self.session, amount)
        self.left -= amount
        self._reported = ""
        self.events.emit("session_refilled", lamports=amount, left=self.left, fee=sent.fee_lamports)

    def _report(self, reason: str) -> None:
        if reason != self._reported:
            self._reported = reason
            self.events.emit("session_refill_failed", reason=reason)
