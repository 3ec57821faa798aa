"""The recount of a run that a driver plays: whatever an honest program tells follows from before.

So a rule that the program and the auditor understand differently fails the test that shows it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from troth_audit.replay.recount import Recount
from troth_audit.replay.recount_money import totals
from troth_audit.replay.recount_state import Entry
from troth_audit.replay.told import Told
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_life import RunCreated
from troth_coordinator.rules.view import EntryView, RunView, Status

OF_ENTRY = (
    "owner",
    "status",
    "roles",
    "stake",
    "claimable",
    "unbonding",
    "withheld",
    "joined_round",
    "active_round",
    "last_included",
    "left_round",
    "rounds_served",
    "included_since_strike",
    "flags",
    "targets",
    "pending_kinds",
)
OF_PAST = (
    "work_faults",
    "seat_faults",
    "strikes",
    "decided_round",
    "included_total",
    "reveal_fault_round",
    "inactive_round",
    "return_round",
    "jailed_until_round",
)


class Recounted:
    """A run recounted from its events so far."""

    def __init__(self) -> None:
        self.told: Told | None = None
        self.recount: Recount | None = None

    def take(self, events: Iterable[Event]) -> None:
        """Recount the events of a transaction; an honest program gives no finding."""
        for event in events:
            if isinstance(event, RunCreated):
                self.told = Told(event.params.residual_rounds)
                self.recount = Recount(self.told, bytes(event.run))
            assert self.told is not None and self.recount is not None
            findings = list(self.recount.check(event))
            assert not findings, (event, findings)
            self.told.take(event)

    def compare(self, run: RunView, entries: Sequence[EntryView]) -> None:
        """What was recounted is what the accounts hold."""
        assert self.recount is not None
        books = self.recount.books
        found = {name: getattr(run, name) for name in asdict(totals(books))}
        assert asdict(totals(books)) == found
        for index, entry in enumerate(entries):
            if entry.status != Status.EMPTY:
                assert _of_books(books.entries[index]) == _of_chain(entry), index


def _of_books(entry: Entry) -> dict[str, object]:
    found = {name: getattr(entry, name) for name in OF_ENTRY}
    found |= {name: getattr(entry.past, name) for name in OF_PAST}
    found["unvested"] = entry.buckets.unvested
    return found | {"step": entry.past.refusals.step, "misses": entry.misses.in_row}


def _of_chain(entry: EntryView) -> dict[str, object]:
    found = {name: getattr(entry, name) for name in (*OF_ENTRY, *OF_PAST)}
    found["unvested"] = sum(entry.bucket_amount)
    return found | {"step": entry.openings_step, "misses": entry.misses_in_row}
