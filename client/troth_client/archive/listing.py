"""The list of what is missing: when the file is written again.

Owns: how old the file may be, and that a newer one is never replaced by an older one.
Never: decides what is missing, or keeps the event loop from its work.
Next: `wanting.py`, which knows what is missing; `folder.py` for the file.
"""

import asyncio
import math
from collections.abc import Iterator
from typing import Final

from troth_client.archive.folder import ArchiveFolder
from troth_client.archive.items import Item
from troth_client.archive.wanting import MOST_A_LOOK, Wanting
from troth_client.runtime.base import Runtime
from troth_client.runtime.files import DiskFullError
from troth_client.telemetry.events import EventSink

OLDEST: Final = 60
"""A list with news waits for so many looks at most."""

Missing = list[tuple[Item, str]]
"""Items, each with the reason why it is not here."""


class MissingList:
    """The file that lists what is missing, for one archive at work.

    With up to MOST_A_LOOK items missing, the file is exact after each look. With n missing, news
    waits for n / MOST_A_LOOK looks, and for OLDEST at most. So on average a look writes as many
    lines as it asks for items at most, or a sixtieth of a list that is very long.
    """

    def __init__(self, folder: ArchiveFolder, runtime: Runtime, events: EventSink) -> None:
        self._folder, self._runtime, self._events = folder, runtime, events
        self._num_changes = 0
        self._written: tuple[int, int] | None = None  # changes and round of the file
        self._written_at = -OLDEST
        self._writing: asyncio.Task[None] | None = None

    def has_changed(self) -> None:
        """Take note that something else is missing, or for another reason."""
        self._num_changes += 1

    def is_due(self, look: int, forgotten_before: int, num_missing: int) -> bool:
        """Tell whether there is news for the file, and it may be written again at this look."""
        pause = min(math.ceil(num_missing / MOST_A_LOOK), OLDEST)
        return self._has_news(forgotten_before) and look >= self._written_at + pause

    async def write(self, look: int, forgotten_before: int, wanting: Wanting) -> None:
        """Make the file exact, in a thread; on a full disk the old one stays, and is reported.

        A caller that is cancelled ends its waiting, not the writing. Raises OSError.
        """
        if self._writing is not None:  # its caller was cancelled: our file has to be the last one
            await asyncio.wait({self._writing})
        if self._has_news(forgotten_before):
            self._written_at = look
            work = self._write((self._num_changes, forgotten_before), wanting.items())
            self._writing = self._runtime.start(work, "list of what is missing")
            await asyncio.shield(self._writing)

    def _has_news(self, forgotten_before: int) -> bool:
        return self._written != (self._num_changes, forgotten_before)

    async def _write(self, state: tuple[int, int], missing: Missing) -> None:
        try:
            await self._runtime.compute(self._folder.write_missing, state[1], _lines(missing))
        except DiskFullError as error:
            self._events.emit("disk_full", reason=str(error))
        else:
            self._written = state


def _lines(missing: Missing) -> Iterator[dict[str, object]]:
    """Yield the lines of the list, by round."""
    for item, why in sorted(missing, key=_place):
        yield item.to_json(why)


def _place(missing: tuple[Item, str]) -> tuple[int, int, str, bytes]:
    item, _ = missing
    index = -1 if item.participant is None else item.participant
    return (item.round, index, item.kind, item.key)
