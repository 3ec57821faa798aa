"""Counts of what the program decided, as far as a ledger tells.

Owns: how many seeds, draws, verdicts, votes, outcomes, penalties and rewards an audit passed over.
Never: checks them; `recount.py` does.
Next: `report.py`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import singledispatchmethod

from troth_audit.replay.findings import Finding
from troth_audit.replay.recount_state import Books
from troth_coordinator.chain import event_types_audits as of_audits
from troth_coordinator.chain import event_types_rounds as of_rounds
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules import bitmap

NAMES = (
    "seeds",
    "samples",
    "openings",
    "verdicts",
    "audits",
    "votes",
    "cases",
    "penalties",
    "rewards",
)


class Tally:
    """A checker that only counts.

    `books` are those of the recount, which takes each event first: no event names a payload whose
    reward stays in the pool, for its membership has ended.
    """

    def __init__(self, books: Books) -> None:
        self._books = books
        self._counts = Counter(dict.fromkeys(NAMES, 0))

    def check(self, event: Event) -> Iterator[Finding]:
        """Count the event; nothing is found."""
        self._take(event)
        yield from ()

    def counts(self) -> Mapping[str, int]:
        """Return the counts by name."""
        return dict(self._counts)

    @singledispatchmethod
    def _take(self, event: Event) -> None:
        """Most events are no decision."""

    @_take.register
    def _(self, event: of_rounds.SeedFrozen) -> None:
        self._counts["seeds"] += 1
        self._counts["samples"] += bitmap.count(event.sampled)

    @_take.register
    def _(self, event: of_audits.OpeningsPosted) -> None:
        self._counts["openings"] += 1

    @_take.register
    def _(self, event: of_audits.VerdictRevealed) -> None:
        self._counts["verdicts"] += 1

    @_take.register
    def _(self, event: of_audits.AuditSettled) -> None:
        self._counts["audits"] += 1

    @_take.register
    def _(self, event: of_audits.JurorVoteRevealed) -> None:
        self._counts["votes"] += 1

    @_take.register
    def _(self, event: of_audits.CaseSettled) -> None:
        self._counts["cases"] += 1
        self._counts["penalties"] += bool(event.stake or event.unbonding or event.unvested)

    @_take.register
    def _(self, event: of_audits.Penalised) -> None:
        self._counts["penalties"] += 1

    @_take.register
    def _(self, event: of_rounds.RoundSettled) -> None:
        # Not `Books.held`, which raises for parameters that no run can have.
        for round_ in self._books.ring.values():
            if round_.number == event.round and event.reward_paid:
                self._counts["rewards"] += bitmap.count(round_.included & ~round_.unpaid)
