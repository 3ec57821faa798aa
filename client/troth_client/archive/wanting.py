"""Wanting: the items that are not here yet, when each is asked for again, and which are given up.

Owns: patience with members. Never: fetches, or forgets that something is missing.
Next: `keeper.py`.
"""

from collections.abc import Iterable, Iterator
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
    """The open items, and those that were given up, by address."""

    def __init__(self) -> None:
        self._open: dict[str, Open] = {}
        self._gone: dict[str, tuple[Item, str]] = {}

    def __bool__(self) -> bool:
        """Whether anything is still asked for."""
        return bool(self._open)

    def __contains__(self, item: Item) -> bool:
        """Whether an item is known to be missing."""
        return item.address in self._open or item.address in self._gone

    def add(self, item: Item) -> None:
        """Ask for an item from now on."""
        if item not in self:
            self._open[item.address] = Open(item)

    def due(self, look: int) -> list[Open]:
        """Return what is to be asked for at a look, the most urgent first."""
        found = [one for one in self._open.values() if one.due <= look]
        return sorted(found, key=_urgency)[:MOST_A_LOOK]

    def got(self, item: Item) -> None:
        """Take an item off the list."""
        self._open.pop(item.address, None)
        self._gone.pop(item.address, None)

    def failed(self, one: Open, look: int, why: str) -> None:
        """Ask again later."""
        one.why = why
        one.attempts += 1
        one.due = look + min(2 ** min(one.attempts, 10), LONGEST_PAUSE)

    def wait(self, one: Open, look: int, why: str) -> None:
        """Ask at the next look: what it waits for is no member's fault."""
        one.why = why
        one.due = look + 1

    def give_up(self, one: Open) -> None:
        """Ask no more; the item stays on the list of what is missing."""
        self._open.pop(one.item.address, None)
        self._gone[one.item.address] = (one.item, one.why)

    def drop(self, items: Iterable[Item]) -> None:
        """Take items off the list that nobody wants any more."""
        for item in items:
            self.got(item)

    def items(self) -> Iterator[tuple[Item, str]]:
        """Yield everything that is missing, with the reason, by round."""
        found = [(one.item, one.why) for one in self._open.values()]
        yield from sorted([*found, *self._gone.values()], key=lambda one: _place(one[0]))

    @property
    def num_missing(self) -> int:
        """How many items are missing."""
        return len(self._open) + len(self._gone)


def _urgency(one: Open) -> tuple[int, int, int]:
    kind = one.item.kind
    return (_FIRST.index(kind) if kind in _FIRST else len(_FIRST), one.item.round, one.attempts)


def _place(item: Item) -> tuple[int, int, str, bytes]:
    index = -1 if item.participant is None else item.participant
    return (item.round, index, item.kind, item.key)
