"""Transport inside one process: for whole runs in a test, with the same rules as over HTTP.

Owns: a network that is a dictionary.
Never: sleeps, opens a socket or copies a rule of `blob_cache.py`.
Next: `exchange.py`.
"""

import sys

from troth_client.runtime.files import DiskFullError
from troth_client.transport.base import BlobId
from troth_client.transport.blob_cache import BlobCache, Blobs, MemoryBlobs
from troth_client.transport.errors import (
    BlobRefusedError,
    EndpointInUseError,
    HolderLacksError,
    HolderRefusedError,
    HolderUnreachableError,
)
from troth_client.transport.exchange import Exchange, Patience
from troth_client.transport.wire import Partial

ONE_THREAD = Patience(inline_bytes=sys.maxsize)
"""No thread besides the loop's: a stepped run is the same each time it is repeated."""


class MemoryNetwork:
    """All participants of one process by endpoint; `cut` and `mend` make one unreachable."""

    def __init__(self) -> None:
        self._caches: dict[str, BlobCache] = {}
        self._cut: set[str] = set()
        self._hidden: set[str] = set()

    def join(self, endpoint: str, cache: BlobCache) -> None:
        """Make a participant's cache reachable; EndpointInUseError if the name is taken."""
        if endpoint in self._caches:
            raise EndpointInUseError(f"{endpoint} to be free", "a taken name", "Choose another.")
        self._caches[endpoint] = cache

    def leave(self, endpoint: str) -> None:
        """Remove a participant."""
        self._caches.pop(endpoint, None)

    def cut(self, endpoint: str) -> None:
        """Make a participant unreachable, as if its machine were off."""
        self._cut.add(endpoint)

    def mend(self, endpoint: str) -> None:
        """Undo `cut`."""
        self._cut.discard(endpoint)

    def hide(self, endpoint: str) -> None:
        """Let nobody reach a participant from outside; it still reaches the others."""
        self._hidden.add(endpoint)

    def reach(self, endpoint: str) -> BlobCache:
        """Return a participant's cache; HolderUnreachableError if nobody can reach it."""
        self.check_line(endpoint)
        if endpoint in self._hidden:
            raise HolderUnreachableError(f"{endpoint} to listen", "nowhere", "Asking another.")
        return self._caches[endpoint]

    def check_line(self, endpoint: str) -> None:
        """Raise HolderUnreachableError if a participant is away or cut off."""
        if endpoint not in self._caches or endpoint in self._cut:
            raise HolderUnreachableError(f"{endpoint} to answer", "nobody there", "Asking another.")


class MemoryWire:
    """Reads and writes the caches of a MemoryNetwork directly.

    One that does not listen is in the network under its name too, but nobody reaches it there.
    """

    def __init__(self, network: MemoryNetwork, endpoint: str, *, listens: bool = True) -> None:
        self._network = network
        self._endpoint = endpoint
        self._listens = listens

    async def start(self, cache: BlobCache) -> str:
        """Join the network under our name; the endpoint to announce is "" if we do not listen."""
        self._network.join(self._endpoint, cache)
        if self._listens:
            return self._endpoint
        self._network.hide(self._endpoint)
        return ""

    async def stop(self) -> None:
        """Leave the network."""
        self._network.leave(self._endpoint)

    async def read(self, holder: str, blob: BlobId, into: Partial) -> None:
        """Append the missing bytes from the holder's cache, through its gate."""
        self._network.check_line(self._endpoint)
        data = self._network.reach(holder).served(blob.address)
        if data is None:
            raise HolderLacksError(
                f"{blob.address} at {holder}", "nothing", "Asking another holder."
            )
        into.append(holder, data[len(into.data) :])

    async def write(self, holder: str, blob: BlobId, data: bytes) -> None:
        """Offer bytes to the holder's cache."""
        self._network.check_line(self._endpoint)
        try:
            cache = self._network.reach(holder)
            if not cache.is_known(blob.address):
                cache.accept(cache.judge(blob.address, data), data)
        except (BlobRefusedError, DiskFullError) as error:
            raise HolderRefusedError(f"{holder} to take it", f"{error}", "Serving.") from error


def memory_transport(
    network: MemoryNetwork, endpoint: str, *, listens: bool = True, blobs: Blobs | None = None
) -> Exchange:
    """Make a transport of a whole run inside one process; without `blobs` it holds them itself."""
    wire = MemoryWire(network, endpoint, listens=listens)
    return Exchange(BlobCache(blobs or MemoryBlobs()), wire, ONE_THREAD)
