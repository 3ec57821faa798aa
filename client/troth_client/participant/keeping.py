"""Keeping something funded from the owner's account, up to a limit, beside the rounds.

Owns: the repetition, the limit of one process, and one report for each new reason of a failure.
Never: decides when to add, or how much.
Next: `session_funding.py` and `stake_keeping.py`, which do; `process.py`, which runs both.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import ClassVar, Final

from troth_client.network.fee_funds import UNSPENDABLE_LAMPORTS
from troth_client.telemetry.events import EventSink
from troth_coordinator.chain.attempts import Once
from troth_coordinator.chain.errors import ChainError, InsufficientFundsError
from troth_coordinator.chain.operations import Owner
from troth_coordinator.chain.sender import ConfirmedTransaction

SPARE_LAMPORTS: Final = UNSPENDABLE_LAMPORTS + 100_000
"""An owner must have so much more than an addition: its account must stay, and pays the fee."""


@dataclass(slots=True)
class Keeping(ABC):
    """Adds at most `left` lamports in all; the kinds of it say to what.

    Each addition is the event `ADDED`. One that fails (a limit that is too small, an owner without
    money, an RPC node that does not answer) is reported once per reason as `FAILED`, and tried
    again. An addition counts from its signature on, whatever RPC nodes say about it: they may hide
    that it landed.
    """

    ADDED: ClassVar[str]
    FAILED: ClassVar[str]

    owner: Owner
    left: int
    events: EventSink
    _reported: str = field(default="", init=False)

    @abstractmethod
    async def check(self) -> None:
        """Add what is missing, if anything is. Raises ChainError."""

    async def watch(self, seconds: float) -> None:
        """Check at a fixed interval; return when nothing is left to add."""
        while self.left > 0:
            try:
                await self.check()
            except ChainError as error:
                self.report(str(error))
            await asyncio.sleep(seconds)

    async def add(
        self, lamports: int, send: Callable[[int, Once], Awaitable[ConfirmedTransaction]]
    ) -> None:
        """Send an addition, count it and report it.

        Raises ChainError if nothing was signed, as InsufficientFundsError for a poor owner.
        """
        await self._check_owner(lamports)
        once = Once()
        try:
            sent = await send(lamports, once)
        except ChainError as error:
            if not once.is_signed:
                raise
            self.report(f"{error}; its {lamports} lamports count against the limit")
            return
        finally:
            if once.is_signed:
                self.left -= lamports
        self._reported = ""
        self.events.emit(self.ADDED, lamports=lamports, left=self.left, fee=sent.fee_lamports)

    async def _check_owner(self, lamports: int) -> None:
        """Ask before: a refusal comes after the signature, and would count."""
        key = self.owner.key.pubkey()
        balance, needed = await self.owner.client.balance(key), lamports + SPARE_LAMPORTS
        if balance < needed:
            raise InsufficientFundsError(str(key), f"{balance} lamports, of {needed} needed")

    def report(self, reason: str) -> None:
        """Report a failure, unless the last report gave the same reason."""
        if reason != self._reported:
            self._reported = reason
            self.events.emit(self.FAILED, reason=reason)
