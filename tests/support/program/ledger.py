"""The ledger of a run that a driver plays: every transaction passes through it.

So a missing, misplaced or wrong event fails the test that caused it.
"""

from collections.abc import Iterable
from typing import Self

from troth_coordinator.chain.event_base import Event
from troth_coordinator.ledger.fold import Fold


class Ledger(Fold):
    """The chain hash of one run, with the events that gave it."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []

    def copied(self) -> Self:
        """Another ledger at the same point."""
        made = super().copied()
        made.events = list(self.events)
        return made

    def absorb(self, events: Iterable[Event]) -> None:
        """Follow the events of a transaction; raises for one that does not fit."""
        taken = list(events)
        super().absorb(taken)
        self.events += taken
