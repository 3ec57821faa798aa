"""Keeping something funded from the owner's account, up to a limit, beside the rounds.

Owns: the repetition, the limit of one process, and one report for each new reason of a failure.
Never: decides when to add, or how much.
Next: `session_funding.py` and `stake_keeping.py`, which do; `process.py`, which runs both.
"""

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from troth_client.telemetry.events import EventSink
from troth_coordinator.chain.errors import ChainError
from troth_coordinator.chain.operations import Owner
from troth_coordinator.chain.sender import ConfirmedTransaction


@dataclass(slots=True)
class Keeping(ABC):
    """Adds at most `left` lamports in all; the kinds of it say to what.

    Each addition is the event `ADDED`. One that fails (a limit that is too small, an owner without
    money, an RPC node that does not answer) is reported once per reason as `FAILED`, and tried
    again.
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

    def added(self, lamports: int, sent: ConfirmedTransaction) -> None:
        """Count an addition and report it."""
        self.left -= lamports
        self._reported = ""
        self.events.emit(self.ADDED, lamports=lamports, left=self.left, fee=sent.fee_lamports)

    def report(self, reason: str) -> None:
        """Report a failure, unless the last report gave the same reason."""
        if reason != self._reported:
            self._reported = reason
            self.events.emit(self.FAILED, reason=reason)
