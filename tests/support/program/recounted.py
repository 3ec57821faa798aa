"""The recount of a run that a driver plays: whatever an honest program tells follows from before.

So a rule that the program and the auditor understand differently fails the test that shows it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from operator import attrgetter
from typing import Any

from solders.pubkey import Pubkey

from troth_audit.replay.closes import Closes
from troth_audit.replay.findings import Finding
from troth_audit.replay.ports import Checker, Ending
from troth_audit.replay.recount import Recount
from troth_audit.replay.recount_money import totals
from troth_audit.replay.series import Series
from troth_audit.replay.tally import Tally
from troth_audit.replay.told import Told
from troth_audit.replay.undone import Undone
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
    "withheld_from",
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

ENTRY_OF = attrgetter(*OF_ENTRY)
PAST_OF = attrgetter(*OF_PAST)


def findings_of(events: Iterable[Event]) -> list[Finding]:
    """Return the findings about these events of a run, from its creation on."""
    first, *rest = events
    assert isinstance(first, RunCreated)
    told = Told(first.params.residual_rounds)
    recount = Recount(told, bytes(first.run))
    found: list[Finding] = []
    for event in (first, *rest):
        found += recount.check(event)
        told.take(event)
    return [*found, *recount.end()]


def checked(events: Iterable[Event]) -> list[Finding]:
    """Return the findings of all checkers of events that accuse, as an audit has them."""
    first, *rest = events
    assert isinstance(first, RunCreated)
    told = Told(first.params.residual_rounds)
    recount = Recount(told, bytes(first.run))
    checkers: list[Checker] = [
        Closes(told, recount.books),
        recount,
        Tally(recount.books),
        Series(told, recount.books),
    ]
    found: list[Finding] = []
    for event in (first, *rest):
        for one in checkers:
            found += one.check(event)
        told.take(event)
    for one in checkers:
        if isinstance(one, Ending):
            found += one.end(None)
    return found


def undone(events: Iterable[Event]) -> tuple[list[Finding], Mapping[str, int]]:
    """Return the notes about what a run did not do, and the counts beside them."""
    first, *rest = events
    assert isinstance(first, RunCreated)
    told = Told(first.params.residual_rounds)
    recount = Recount(told, bytes(first.run))
    checker = Undone(recount.books)
    for event in (first, *rest):
        assert [*recount.check(event), *checker.check(event)] == []
        told.take(event)
    return list(checker.end(None)), checker.counts()


class Recounted:
    """A run recounted from its events so far."""

    def __init__(self) -> None:
        self.told: Told | None = None
        self.recount: Recount | None = None
        self.tally: Tally | None = None

    def take(self, events: Iterable[Event]) -> None:
        """Recount the events of a transaction; an honest program gives no finding."""
        for event in events:
            if isinstance(event, RunCreated):
                self.told = Told(event.params.residual_rounds)
                self.recount = Recount(self.told, bytes(event.run))
                self.tally = Tally(self.recount.books)
            assert self.told is not None and self.recount is not None and self.tally is not None
            findings = [*self.recount.check(event), *self.tally.check(event)]
            assert not findings, (event, findings)
            self.told.take(event)

    def count(self, name: str) -> int:
        """How many of a kind the tally of an audit names."""
        assert self.tally is not None
        return self.tally.counts()[name]

    def compare(self, run: RunView, entries: Sequence[EntryView]) -> None:
        """Hold what was recounted against the accounts."""
        assert self.recount is not None
        books = self.recount.books
        recounted = asdict(totals(books))
        assert recounted == {name: getattr(run, name) for name in recounted}
        assert list(self.recount.end(run)) == []
        for index, entry in books.entries.items():
            view = entries[index]
            assert ENTRY_OF(entry) == ENTRY_OF(view), (index, OF_ENTRY)
            assert PAST_OF(entry.past) == PAST_OF(view), (index, OF_PAST)
            assert entry.buckets.amounts == view.bucket_amount, index
            assert entry.past.refusals.step == view.openings_step, index
            assert entry.misses.in_row == view.misses_in_row, index
        statuses = [entry.status for entry in entries]
        assert statuses.count(Status.EMPTY) == len(entries) - len(books.entries)


def other(value: object) -> object:
    """Another value of the same type."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case bytes():
            return bytes([*value[:-1], value[-1] ^ 1])
        case Pubkey():
            return Pubkey(bytes([*bytes(value)[:-1], bytes(value)[-1] ^ 1]))
        case str():
            return value + "x"
        case tuple():
            return (other(value[0]), *value[1:])
        case _:
            raise AssertionError(f"no other value of {value!r}")


def changed(events: Sequence[Event], at: int, field: str) -> list[Event]:
    """The events with another value in one field of one of them."""
    event = events[at]
    values: dict[str, Any] = {field: other(getattr(event, field))}
    forged = replace(event, **values)
    return [*events[:at], forged, *events[at + 1 :]]


def places(events: Sequence[Event], name: str) -> list[int]:
    """The positions of the events with a name."""
    return [at for at, event in enumerate(events) if event.name == name]


def telling(events: Sequence[Event], name: str, field: str) -> int:
    """The first event of that name in which the field is not zero, or else the first."""
    found = places(events, name)
    return next((at for at in found if getattr(events[at], field)), found[0])
