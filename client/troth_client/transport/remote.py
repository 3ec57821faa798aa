"""Remote sources: a member, a hub or an object store, for a reader or a writer in threads.

Owns: one event loop in a thread of its own, and the calls into it.
Never: serves anything, or believes bytes: `exchange.py` holds them against their address. Files
that have a name instead, like a ledger, are for their reader to check.
Next: `sources.py`, which asks several in order.
"""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Final, TypeVar

from troth_client.runtime.files import Closable
from troth_client.transport.base import BlobId
from troth_client.transport.endpoint import check_holder, is_store
from troth_client.transport.errors import FetchError, HolderError, HolderLacksError, HolderLiedError
from troth_client.transport.exchange import Exchange
from troth_client.transport.http import http_reader
from troth_client.transport.store import StoreWire, Version

T = TypeVar("T")

SILENT_SECONDS: Final = 30.0
"""So long a store may be silent."""


class RemoteSource(Closable):
    """One endpoint or store by its address. Use `with`, or `close` it."""

    def __init__(self, url: str) -> None:
        """Take an address: http(s)://…, s3://…, gs://… or az://…. Raises EndpointError."""
        check_holder(url)
        self.name = url
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._exchange: Exchange = self._call(self._started())

    def read(self, blob: BlobId, most_bytes: int) -> bytes | None:
        """Return the bytes of this address; none where it lacks them, no bytes where it lies.

        Of headers, payloads and pieces there are exactly `most_bytes`.
        """
        return self._call(self._fetch(blob, most_bytes))

    def close(self) -> None:
        """End the connections and the thread."""
        if not self._loop.is_closed():
            self._call(self._exchange.__aexit__(None, None, None))
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _started(self) -> Exchange:
        made = http_reader()
        if is_store(self.name):
            made.use_stores([self.name], signs=True)
        return await made.__aenter__()

    async def _fetch(self, blob: BlobId, most_bytes: int) -> bytes | None:
        try:
            return await self._exchange.fetch(blob, [self.name], most_bytes, bytes)
        except FetchError as error:
            has_lied = any(isinstance(one, HolderLiedError) for _, one in error.failures)
            return b"" if has_lied else None
        finally:
            self._exchange.drop_before(blob.round + 1)  # its cache is for those who serve

    def _call(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


class RemoteStore(RemoteSource):
    """An object store to read and to write, with the credentials in the environment."""

    def __init__(self, url: str) -> None:
        """Take the address of a store. Raises EndpointError."""
        super().__init__(url)
        self._wire = StoreWire(SILENT_SECONDS, signs=True)
        self._removals: set[Future[None]] = set()

    def close(self) -> None:
        """End the connections and the thread, after what is being removed."""
        wait(self._removals, SILENT_SECONDS)
        super().close()

    def put(self, name: str, data: bytes) -> None:
        """Put an object. Raises HolderError."""
        self._call(self._wire.put(self.name, name, data))

    def forget(self, name: str) -> None:
        """Remove an object some time soon; one that cannot be removed stays."""
        removal = asyncio.run_coroutine_threadsafe(self._removed(name), self._loop)
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)

    def sizes(self, folder: str) -> Iterator[tuple[str, int]]:
        """Yield the names of the objects in a folder, and their sizes. Raises HolderError."""
        pages = self._wire.sizes(self.name, folder)

        async def following() -> list[tuple[str, int]] | None:
            return await anext(pages, None)

        while (page := self._call(following())) is not None:
            yield from page

    def download(self, name: str, path: Path, most_bytes: int) -> Version | None:
        """Write an object into a new file; return which one it is, None where there is none.

        Raises HolderError, DiskFullError.
        """
        try:
            return self._call(self._wire.get_file(self.name, name, path, most_bytes))
        except HolderLacksError:
            return None

    async def _removed(self, name: str) -> None:
        with contextlib.suppress(HolderError):
            await self._wire.remove(self.name, name)
