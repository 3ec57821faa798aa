"""Several ledgers of one run into one: each stretch from whichever proves it.

Owns: stretches, which end with a close, and the choice among those that the chain hash proves.
Never: takes an entry that the hash contradicts, or guesses one that nobody has.
Next: `file.py`, which takes the result.

Absorbed events carry numbers, so their order is known. Commits and attestations carry none. Only
their round matters: they may stand anywhere before its close.

Ledgers are read side by side, each up to its next close, and memory holds one stretch of each. Only
where no ledger proves a stretch, all are read to their ends: an entry may stand at any place. Then
memory holds what is left of all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_rounds import Attested, PayloadCommitted, RoundClosed
from troth_coordinator.ledger.entries import Entry, EntryReader
from troth_coordinator.ledger.errors import LedgerError
from troth_coordinator.ledger.fold import Fold

PLAIN = (PayloadCommitted, Attested)


@dataclass(slots=True)
class Merging:
    """The entries that several ledgers prove together.

    `fold` is that of what was yielded. `gap` says what is missing after it; "" without a gap.
    Of ledgers that prove different things, each by closes of its own, the first one counts. Only
    the Run account can tell which of them is the run's.
    """

    reader: EntryReader
    fold: Fold = field(default_factory=Fold)
    gap: str = ""
    _round: int = 0
    """The round after the last proven close."""

    def entries(self, ledgers: Sequence[Iterable[Entry]]) -> Iterator[Entry]:
        """Yield the entries in their order, to the end or to the first gap.

        After the last close come those that fit; only the Run account can prove these. Raises
        LedgerFileError for an entry that cannot be read.
        """
        union = _Known()
        open_ledgers = [_Reading(iter(ledger), union) for ledger in ledgers]
        # A ledger alone first: another one may have a false entry under the same number.
        sources = [*(one.known for one in open_ledgers), union]
        while True:
            for one in open_ledgers:
                one.read_to_close(self.reader, self.fold.next_sequence)
            proven = self._proven(sources)
            yield from proven
            if proven:
                for known in sources:
                    known.drop(self.fold.next_sequence, self._round - 1, proven[-1].slot)
            elif not sum(one.read_to_end(self.reader) for one in open_ledgers):
                break
        yield from self._tail(union)
        if not self.fold.next_sequence and union.newest < 0 and union.plain:
            self.gap = "the events with which a run begins are missing, and later ones are here"
        elif self.fold.next_sequence <= union.newest:
            self.gap = (
                f"what follows event {self.fold.next_sequence - 1} is missing or false, and later"
                f" events are here, up to number {union.newest}"
            )

    def _proven(self, sources: Sequence[_Known]) -> list[Entry]:
        """Return the next entries up to a close that they prove; nothing without such a source."""
        for source in sources:
            stretch = source.stretch(self.fold.next_sequence)
            fold = self.fold.copied()
            if stretch and self._takes(fold, stretch):
                self.fold = fold
                closed = _closed(self.reader.events(stretch[-1]))
                self._round = self._round if closed is None else closed + 1
                return stretch
        return []

    def _takes(self, fold: Fold, stretch: Iterable[Entry]) -> bool:
        try:
            for entry in stretch:
                fold.absorb(self.reader.events(entry))
        except LedgerError:
            return False
        return True

    def _tail(self, union: _Known) -> Iterator[Entry]:
        """Yield what fits behind the last close."""
        for entry in union.rest(self.fold.next_sequence, self._round):
            if _closed(self.reader.events(entry)) is not None:
                return  # its stretch is not proven
            if self._takes(self.fold, [entry]):
                yield entry


@dataclass(slots=True)
class _Known:
    """Entries by the number of their first absorbed event, and plain ones by their round.

    `newest` is the highest number that an event has, -1 without any. Events before number `start`
    were taken.
    """

    numbered: dict[int, tuple[Entry, int, int | None]] = field(default_factory=dict)
    plain: defaultdict[int, dict[str, Entry]] = field(default_factory=lambda: defaultdict(dict))
    newest: int = -1
    start: int = 0

    def add(self, entry: Entry, events: Sequence[Event]) -> None:
        """Take in an entry; of two with one number the first stays."""
        numbers = [event.sequence for event in events if event.sequence is not None]
        if not numbers:
            for event in events:
                if isinstance(event, PLAIN):
                    self.plain[event.round][entry.signature] = entry
            return
        if numbers[0] < self.start:
            return
        place = (entry, numbers[0] + len(numbers), _closed(events))
        self.numbered.setdefault(numbers[0], place)
        self.newest = max(self.newest, numbers[-1])

    def drop(self, end: int, round_: int, slot: int) -> None:
        """Forget the events before a number, and what a round had until its close in this slot."""
        for number in range(self.start, end):
            self.numbered.pop(number, None)
        self.start = end
        later = {key: one for key, one in self.plain.pop(round_, {}).items() if one.slot > slot}
        if later:
            self.plain[round_] = later

    def stretch(self, number: int) -> list[Entry]:
        """Return the entries from the event of this number to the next close; nothing if cut."""
        found: list[Entry] = []
        while number in self.numbered:
            entry, number, closed = self.numbered[number]
            if closed is not None:
                plain = self.plain.get(closed, {}).values()
                before = [*found, *(one for one in plain if one.slot <= entry.slot)]
                return [*sorted(before, key=_slot), entry]
            found.append(entry)
        return []

    def rest(self, number: int, open_round: int) -> Iterator[Entry]:
        """Yield the entries from the event of this number on, with the plain ones of a round."""
        found: list[Entry] = []
        while number in self.numbered:
            entry, number, _ = self.numbered[number]
            found.append(entry)
        yield from sorted([*found, *self.plain.get(open_round, {}).values()], key=_slot)


@dataclass(slots=True)
class _Reading:
    """A ledger that is being read: its entries go to `known`, and to the union of all."""

    entries: Iterator[Entry]
    union: _Known
    known: _Known = field(default_factory=_Known)
    close: int = -1
    """The number of the newest close that was read."""

    def read_to_close(self, reader: EntryReader, number: int) -> None:
        """Read on until a close with this number or a later one."""
        while self.close < number and self._read(reader):
            pass

    def read_to_end(self, reader: EntryReader) -> int:
        """Read all that is left; return how many entries that were."""
        num_read = 0
        while self._read(reader):
            num_read += 1
        return num_read

    def _read(self, reader: EntryReader) -> bool:
        entry = next(self.entries, None)
        if entry is None:
            return False
        events = reader.events(entry)
        self.known.add(entry, events)
        self.union.add(entry, events)
        if _closed(events) is not None:
            self.close = next((one.sequence for one in events if one.sequence is not None), -1)
        return True


def _closed(events: Iterable[Event]) -> int | None:
    """Return the round that one of these events closes."""
    return next((one.round for one in events if isinstance(one, RoundClosed)), None)


def _slot(entry: Entry) -> int:
    return entry.slot
