"""The ledger of a run that a driver plays: every transaction passes through it.

So a missing, misplaced or wrong event fails the test that caused it, and so does a decision that
the auditor would recount in another way.
"""

from collections.abc import Iterable
from typing import Self

from support.program.recounted import Recounted
from troth_coordinator.chain.event_base import Event
from troth_coordinator.ledger.fold import Fold


class Ledger(Fold):
    """The chain hash of one run, with the events that gave it, recounted."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []
        self.recounted = Recounted()

    def forked(self) -> Self:
        """Another ledger at the same point."""
        made = self.copied()
        made.events = list(self.events)
        made.recounted.take(self.events)
        return made

    def absorb(self, events: Iterable[Event]) -> None:
        """Follow the events of a transaction; raises for one that does not fit."""
        taken = list(events)
        super().absorb(taken)
        self.events += taken
        self.recounted.take(taken)
