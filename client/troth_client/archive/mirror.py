"""A copy of an archive in an object store: everything that the folder gets, under the same names.

Owns: what is not copied yet, and when the ledger and the lists go there again.
Never: removes anything from the store, or delays the archive when the store is away.
Next: `../transport/store.py`, which writes; `keeper.py`, which calls this at each look.
"""

import asyncio
from typing import Final

from troth_client.archive.folder import CHAIN_FILE, MISSING_FILE, ArchiveFolder
from troth_client.archive.items import Item
from troth_client.telemetry.events import EventSink
from troth_client.transport.errors import HolderError
from troth_client.transport.store import StoreWire
from troth_coordinator.ledger.file import LEDGER_FILE

PARALLEL: Final = 4
"""Items that are copied at a time: so many lie in memory."""
MOST_A_LOOK: Final = 64
LOOKS_A_LIST: Final = 60
"""The ledger grows all the time, and an object is replaced as a whole: so it is seldom."""
LONGEST_PAUSE: Final = 64
"""Looks between two attempts while the store is away."""


class Mirror:
    """Copies a folder to the store at `url`, which a later start completes.

    `stored_bytes` is the length of the ledger there: only a longer one takes its place, or one that
    was read anew and that the Run account proves. `is_whole`: else only the ledger and the lists;
    then others bring the bytes there.
    """

    def __init__(
        self,
        url: str,
        wire: StoreWire,
        folder: ArchiveFolder,
        events: EventSink,
        stored_bytes: int,
        *,
        is_whole: bool = True,
    ) -> None:
        self._url, self._wire, self._folder, self._events = url, wire, folder, events
        self._stored_bytes, self._stored_file = stored_bytes, folder.ledger.stat().st_ino
        self._is_whole = is_whole
        self._waiting: dict[str, Item] = {}
        self._copied: set[str] = set()
        self._looks = self._pause = self._num_failures = 0

    def add(self, item: Item) -> None:
        """Copy an item of the folder from now on."""
        if self._is_whole and item.address not in self._copied:
            self._waiting[item.address] = item

    async def look(self) -> None:
        """Copy some of what waits, and sometimes the lists; a store that is away is reported."""
        self._looks += 1
        if self._pause:
            self._pause -= 1
            return
        try:
            await self._copy(MOST_A_LOOK)
            if self._looks % LOOKS_A_LIST == 1:
                await self.copy_lists()
        except HolderError as error:
            self._pause = min(2**self._num_failures, LONGEST_PAUSE)
            self._num_failures += 1
            self._events.emit("store_trouble", count=self._num_failures, reason=str(error))
        else:
            self._num_failures = 0

    async def finish(self, seconds: float) -> None:
        """Copy all that waits, and the lists as they are now, unless it takes longer."""
        try:
            async with asyncio.timeout(seconds):
                await self._copy(len(self._waiting))
                await self.copy_lists()
        except (HolderError, TimeoutError) as error:
            why = str(error) or f"not done within {seconds:.0f} s"
            self._events.emit("store_trouble", count=self._num_failures + 1, reason=why)

    async def copy_lists(self) -> None:
        """Copy the ledger if it is longer, and the lists beside it. Raises HolderError."""
        found = self._folder.ledger.stat()
        if found.st_size > self._stored_bytes or found.st_ino != self._stored_file:
            await self._copy_list(LEDGER_FILE)
            self._stored_bytes, self._stored_file = found.st_size, found.st_ino
            await self._copy_list(CHAIN_FILE)
        await self._copy_list(MISSING_FILE)

    async def _copy_list(self, name: str) -> None:
        path = self._folder.path / name
        if path.is_file():
            await self._wire.put_file(self._url, name, path)

    async def _copy(self, most: int) -> None:
        chosen = list(self._waiting.values())[:most]
        for first in range(0, len(chosen), PARALLEL):
            await asyncio.gather(*map(self._copy_one, chosen[first : first + PARALLEL]))

    async def _copy_one(self, item: Item) -> None:
        size = self._folder.size(item.kind, item.key)
        data = None
        if size is not None:
            get = self._folder.get
            data = await asyncio.to_thread(get, item.kind, item.key, size)
        if data is not None:  # else it was forgotten meanwhile, or damaged
            await self._wire.write(self._url, item.name, data)
        self._copied.add(item.address)
        self._waiting.pop(item.address, None)
