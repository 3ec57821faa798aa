"""Session funding: refill the session key from the owner's account when it runs low.

Owns: the low mark, and the amount of a refill.
Never: funds a session key that received nothing at join: somebody else pays for that key.
Next: `keeping.py` for the limit on all refills of one process, and their reports.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from solders.pubkey import Pubkey

from troth_client.network.fee_funds import UNSPENDABLE_LAMPORTS
from troth_client.participant.keeping import Keeping

LOW_SHARE = 4
"""A session key is low below this share of its full balance: still enough for many rounds."""

LEAST_LAMPORTS = 100_000
"""A key that was given little is low earlier: before it has to give up rounds."""


def low_mark(full: int) -> int:
    """Return the spendable lamports below which a key is low that has `full` when full."""
    return max(full // LOW_SHARE, min(LEAST_LAMPORTS, full * (LOW_SHARE - 1) // LOW_SHARE))


@dataclass(slots=True)
class SessionFunding(Keeping):
    """Keeps the session key at about `full` lamports."""

    ADDED: ClassVar[str] = "session_refilled"
    FAILED: ClassVar[str] = "session_refill_failed"

    session: Pubkey
    full: int

    async def watch(self, seconds: float) -> None:
        """Check at a fixed interval, unless the session key received nothing to begin with."""
        if self.full > UNSPENDABLE_LAMPORTS:
            # super() fails in a dataclass with slots.
            await Keeping.watch(self, seconds)

    async def check(self) -> None:
        """Fill the session key up if it is low. Raises ChainError."""
        chain = self.owner.client
        balance = await chain.balance(self.session)
        spendable = balance - UNSPENDABLE_LAMPORTS
        if spendable >= low_mark(self.full - UNSPENDABLE_LAMPORTS):
            return
        amount = min(self.full - balance, self.left)
        await self.add(amount, partial(self.owner.fund_session, self.session))
