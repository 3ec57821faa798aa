"""Remote sources: a member, a hub or an object store, for a reader in threads.

Owns: one event loop in a thread of its own, and the calls into it.
Never: serves anything, or believes bytes: `exchange.py` holds them against their address.
Next: `sources.py`, which asks several in order.
"""

import asyncio
import threading
from collections.abc import Coroutine
from typing import TypeVar

from troth_client.runtime.files import Closable
from troth_client.transport.base import BlobId
from troth_client.transport.endpoint import check_holder, is_store
from troth_client.transport.errors import FetchError, HolderLiedError
from troth_client.transport.exchange import Exchange
from troth_client.transport.http import http_reader

T = TypeVar("T")


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
