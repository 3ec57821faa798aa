"""A few numbers of a run by round: stakes, slashes, participation, losses, for pictures.

Owns: what is remembered of each, and a bound on it.
Never: checks anything.
Next: `report.py` for the record of a round.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from troth_attestation.quorum import CaseOutcome
from troth_audit.replay.findings import Finding
from troth_audit.replay.recount_state import Books
from troth_audit.replay.report import RoundLine
from troth_audit.replay.told import Told
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_audits import CaseSettled
from troth_coordinator.chain.event_types_rounds import Attested, PayloadCommitted

MOST_POINTS = 4_096
"""Rounds that are remembered; of more, every second one is forgotten, and so on."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Lamports that a conviction for the work of a round took."""

    round: int
    owner: bytes
    lamports: int


@dataclass(slots=True)
class Lines:
    """One line of each round, thinned out where there are many."""

    kept: list[RoundLine] = field(default_factory=list)
    _stride: int = 1

    def add(self, line: RoundLine) -> None:
        """Remember a round, unless its like are too many."""
        if line.round % self._stride:
            return
        self.kept.append(line)
        if len(self.kept) > MOST_POINTS:
            self._stride *= 2
            self.kept = [one for one in self.kept if one.round % self._stride == 0]


@dataclass(slots=True)
class Series:
    """Stakes by owner and the slashes of a run; a checker that finds nothing.

    `books` are those of the recount, which takes each event first. Fees and rewards that are taken
    back may come out of a stake, and no event says how much of them.
    """

    told: Told
    books: Books
    stakes: dict[bytes, list[tuple[int, int]]] = field(default_factory=dict)
    slashes: list[Taken] = field(default_factory=list)

    def check(self, event: Event) -> Iterator[Finding]:
        """Remember what an event did to stakes."""
        if isinstance(event, CaseSettled) and event.outcome == CaseOutcome.CONVICTED:
            taken = event.stake + event.unbonding + event.unvested
            if len(self.slashes) < MOST_POINTS:
                self.slashes.append(Taken(event.round, self._owner(event.target), taken))
        if not isinstance(event, PayloadCommitted | Attested):
            for entry in self.books.entries.values():
                self._note(entry.owner, entry.stake)
        yield from ()

    def _owner(self, index: int) -> bytes:
        member = self.told.members.get(index)
        return bytes(32) if member is None else member.owner

    def _note(self, owner: bytes, stake: int) -> None:
        points = self.stakes.setdefault(owner, [])
        is_new = not points or points[-1][1] != stake
        if is_new and len(points) < MOST_POINTS:
            newest = self.told.newest
            points.append((0 if newest is None else newest.number, stake))
