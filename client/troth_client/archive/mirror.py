"""A copy of an archive in an object store: everything that the folder gets, under the same names.

Owns: what is not copied yet, and when the ledger and the lists go there again.
Never: removes anything from the store, or delays the archive when the store is away.
Next: `../transport/store.py`, which writes; `keeper.py`, which calls this at each look.
"""

import asyncio
from itertools import islice
from typing import Final

from troth_client.archive.errors import StoreInUseError
from troth_client.archive.fetching import has_false_signature
from troth_client.archive.folder import CHAIN_FILE, MISSING_FILE, ArchiveFolder
from troth_client.archive.items import Item, name_of
from troth_client.telemetry.events import EventSink
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.errors import HolderChangedError, HolderError
from troth_client.transport.store import StoreWire, Version
from troth_coordinator.ledger.file import LEDGER_FILE

PARALLEL: Final = 4
"""Items that are copied at a time: so many lie in memory."""
MOST_A_LOOK: Final = 64
LOOKS_A_LIST: Final = 60
"""So seldom the lists are looked at: an object can only be replaced as a whole."""
SHARE: Final = 8
"""The ledger goes there again when an eighth of it is new. So all copies together are at most ten
times as long as it is at the end."""
LONGEST_PAUSE: Final = 64
"""Looks between two attempts while the store is away."""


class Mirror:
    """Copies a folder to the store at `url`, which a later start completes.

    `stored` is the ledger there, None for none: only a longer one takes its place, or one that was
    read anew and that the Run account proves. `is_whole`: else only the ledger and the lists;
    then others bring the bytes there.
    """

    def __init__(
        self,
        url: str,
        wire: StoreWire,
        folder: ArchiveFolder,
        events: EventSink,
        stored: Version | None,
        *,
        is_whole: bool = True,
    ) -> None:
        self._url, self._wire, self._folder, self._events = url, wire, folder, events
        self._stored = stored
        self._num_stored = 0 if stored is None else stored.num_bytes
        self._num_tried = 0  # bytes of a put that got no answer
        self._file = folder.ledger.stat().st_ino
        self._has_put = False
        self._missing_at = 0
        self._is_whole = is_whole
        self._waiting: dict[bytes, None] = {}
        self._copied: set[bytes] = set()
        self._looks = self._pause = self._num_failures = 0

    def add(self, item: Item) -> None:
        """Copy an item of the folder from now on."""
        if self._is_whole and item.short not in self._copied:
            self._waiting[item.short] = None

    def has_changed(self, item: Item) -> None:
        """Copy an item of the folder again: it has other bytes than before."""
        self._copied.discard(item.short)
        self.add(item)

    async def look(self) -> None:
        """Copy some of what waits, and sometimes the lists; a store that is away is reported.

        Raises StoreInUseError.
        """
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
        """Copy all that waits, and the lists as they are now, unless it takes longer.

        Raises StoreInUseError.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._copy(len(self._waiting))
                await self.copy_lists(is_last=True)
        except (HolderError, TimeoutError) as error:
            why = str(error) or f"not done within {seconds:.0f} s"
            self._events.emit("store_trouble", count=self._num_failures + 1, reason=why)

    async def copy_lists(self, *, is_last: bool = False) -> None:
        """Copy the lists that have changed; the ledger only where much is new, or at last.

        The ledger comes after the Run account, which is no older then. Raises HolderError, and
        StoreInUseError where the ledger there is not the one that we know.
        """
        await self._check()
        if self._is_due(is_last):
            await self._copy_list(CHAIN_FILE)
            await self._copy_ledger()
        missing = self._folder.path / MISSING_FILE
        written_at = missing.stat().st_mtime_ns if missing.is_file() else 0
        if written_at != self._missing_at:
            await self._copy_list(MISSING_FILE)
            self._missing_at = written_at

    def _is_due(self, is_last: bool) -> bool:
        """Tell whether the ledger goes there again; the first entries show others that we write."""
        found = self._folder.ledger.stat()
        num_new = found.st_size - self._num_stored
        is_much = is_last or not self._has_put or SHARE * num_new >= self._num_stored
        return (num_new > 0 and is_much) or found.st_ino != self._file

    async def _check(self) -> None:
        """Look whether the ledger there is still ours; a put without an answer may have landed."""
        found = await self._wire.version(self._url, LEDGER_FILE)
        if found == self._stored:
            return
        if found is None or not 0 < self._num_tried <= found.num_bytes:
            raise self._in_use()
        self._stored, self._num_stored, self._num_tried = found, found.num_bytes, 0

    async def _copy_ledger(self) -> None:
        found = self._folder.ledger.stat()
        self._num_tried = found.st_size
        try:
            path = self._folder.ledger
            self._stored = await self._wire.replace_file(self._url, LEDGER_FILE, path, self._stored)
        except HolderChangedError as error:
            raise self._in_use() from error
        self._num_stored, self._num_tried = found.st_size, 0
        self._file, self._has_put = found.st_ino, True

    def _in_use(self) -> StoreInUseError:
        return StoreInUseError(
            "the ledger that this archive has put there",
            "one of another process",
            "Let one process at a time write a store: end the other one, and start this again.",
            self._url,
        )

    async def _copy_list(self, name: str) -> None:
        path = self._folder.path / name
        if path.is_file():
            await self._wire.put_file(self._url, name, path)

    async def _copy(self, most: int) -> None:
        chosen = list(islice(self._waiting, most))
        for first in range(0, len(chosen), PARALLEL):
            await asyncio.gather(*map(self._copy_one, chosen[first : first + PARALLEL]))

    async def _copy_one(self, short: bytes) -> None:
        name = name_of(short)
        size = self._folder.size(name.kind, name.key)
        data = None
        if size is not None:
            get = self._folder.get
            data = await asyncio.to_thread(get, name.kind, name.key, size)
        if data is not None and await self._is_wanted(name, data):  # else forgotten, or damaged
            await self._wire.write(self._url, name, data)
        self._copied.add(short)
        self._waiting.pop(short, None)

    async def _is_wanted(self, name: BlobId, data: bytes) -> bool:
        """Tell whether bytes may take the place of those there: a false signature may not."""
        if name.kind is not BlobKind.HEADER or not has_false_signature(data):
            return True
        return await self._wire.version(self._url, name.address) is None
