"""Wanting: the items that are not here yet, when each is asked for again, and which are given up.

Owns: patience with members. Never: fetches, or forgets that something is missing.
Next: `keeper.py`.
"""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from troth_client.archive.items import Item
from troth_client.transport.base import BlobKind

MOST_A_LOOK: Final = 64
"""Items that are asked for between two looks at the chain."""
LONGEST_PAUSE: Final = 32
"""Looks between two attempts at the same item, at most."""
LAST_ATTEMPTS: Final = 7
"""Attempts at what members need not have any more, or after the run has ended."""
_FIRST: Final = (BlobKind.CONFIG, BlobKind.HEADER, BlobKind.OPENINGS, BlobKind.PIECES)
"""Kinds in the order in which they are asked for: sizes follow from config and headers, and members
show opening sets and the given weights for the shortest time. All others come after them."""


@dataclass(slots=True)
class Open:
    """An item that is not here. `due` is the number of the look that asks for it again."""

    item: Item
    why: str = "not asked for yet"
    attempts: int = 0
    due: int = 0


class Wanting:
    """The open items, and those that were given up, by address.

    `changed` is called when something else is missing than before, or for another reason. `is_past`
    tells what members need not have any more: it comes after all that they still have. Each open
    item waits for its look, is due, or was asked for at the last look. So a look costs as much as
    the items that it asks for, however many are missing.
    """

    def __init__(
        self,
        changed: Callable[[], None] = lambda: None,
        is_past: Callable[[Item], bool] = lambda _: False,
    ) -> None:
        """Begin with nothing missing, which may be news."""
        self._changed, self._is_past = changed, is_past
        self._open: dict[str, Open] = {}
        self._gone: dict[str, tuple[Item, str]] = {}
        self._waiting: dict[int, list[Open]] = {}
        self._due: list[tuple[bool, int, int, int, int, Open]] = []  # a heap
        self._asked: list[Open] = []
        self._numbers = itertools.count()
        changed()

    def __bool__(self) -> bool:
        """Whether anything is still asked for."""
        return bool(self._open)

    def __contains__(self, item: Item) -> bool:
        """Whether an item is known to be missing."""
        return item.address in self._open or item.address in self._gone

    def add(self, item: Item) -> None:
        """Ask for an item from now on."""
        if item not in self:
            one = self._open[item.address] = Open(item)
            self._wait(one)
            self._changed()

    def due(self, look: int) -> list[Open]:
        """Return what is to be asked for at a look, the most urgent first.

        Items of the last look are due again when `failed` or `wait` says, else now.
        """
        for one in filter(self._is_open, self._asked):
            self._wait(one)
        for at in [at for at in self._waiting if at <= look]:
            for one in self._waiting.pop(at):
                self._queue(one)
        self._asked = []
        while self._due and len(self._asked) < MOST_A_LOOK:
            was_past, *_, one = heapq.heappop(self._due)
            if not self._is_open(one):
                continue
            if was_past == self._is_past(one.item):
                self._asked.append(one)
            else:  # rounds went by while it was due
                self._queue(one)
        return list(self._asked)

    def got(self, item: Item) -> None:
        """Take an item off the list."""
        if item in self:
            self._open.pop(item.address, None)
            self._gone.pop(item.address, None)
            self._changed()

    def failed(self, one: Open, look: int, why: str) -> None:
        """Ask again later."""
        self._explain(one, why)
        one.attempts += 1
        one.due = look + min(2 ** min(one.attempts, 10), LONGEST_PAUSE)

    def wait(self, one: Open, look: int, why: str) -> None:
        """Ask at the next look: what it waits for is no member's fault."""
        self._explain(one, why)
        one.due = look + 1

    def give_up(self, one: Open) -> None:
        """Ask no more; the item stays on the list of what is missing."""
        self._open.pop(one.item.address, None)
        self._gone[one.item.address] = (one.item, one.why)

    def items(self) -> list[tuple[Item, str]]:
        """Return everything that is missing now, with the reason."""
        return [*((one.item, one.why) for one in self._open.values()), *self._gone.values()]

    @property
    def num_missing(self) -> int:
        """How many items are missing."""
        return len(self._open) + len(self._gone)

    def _is_open(self, one: Open) -> bool:
        return self._open.get(one.item.address) is one

    def _explain(self, one: Open, why: str) -> None:
        if one.why != why:
            one.why = why
            self._changed()

    def _wait(self, one: Open) -> None:
        self._waiting.setdefault(one.due, []).append(one)

    def _queue(self, one: Open) -> None:
        urgency = (self._is_past(one.item), *_urgency(one))
        heapq.heappush(self._due, (*urgency, next(self._numbers), one))


def _urgency(one: Open) -> tuple[int, int, int]:
    kind = one.item.kind
    return (_FIRST.index(kind) if kind in _FIRST else len(_FIRST), one.item.round, one.attempts)
