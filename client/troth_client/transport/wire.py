"""The interface of a way to move bytes, and the bytes of an unfinished download.

Owns: `Wire`, the small interface below `exchange.py`, and `Partial`, which enforces the size.
Never: checks an address; `exchange.py` does, once for all wires.
Next: `memory.py`, the shortest wire; `http.py`, the real one.
"""

from collections.abc import Callable
from typing import Protocol

from troth_client.transport.base import BlobId
from troth_client.transport.blob_cache import BlobCache
from troth_client.transport.errors import HolderLiedError


class Partial:
    """Bytes of a blob so far and the holders that they came from; never more than `num_bytes`.

    Unless `is_exact`, there may be fewer in all: then only the holder knows which is the last one,
    and no other one can go on for it. `moved` is told of each chunk.
    """

    def __init__(
        self,
        num_bytes: int,
        data: bytes = b"",
        sources: tuple[str, ...] = (),
        *,
        is_exact: bool = True,
    ) -> None:
        self.num_bytes = num_bytes
        self.is_exact = is_exact
        self.data = bytearray(data)
        self.sources = sources
        self.moved: Callable[[int], None] = lambda _num_bytes: None

    @property
    def is_complete(self) -> bool:
        """True when the last byte is here, as far as the size tells."""
        return len(self.data) == self.num_bytes or (not self.is_exact and bool(self.data))

    def fits(self, num_bytes: int) -> bool:
        """Return whether so many more bytes can be all that is missing."""
        missing = self.num_bytes - len(self.data)
        return num_bytes == missing or (not self.is_exact and num_bytes < missing)

    def append(self, holder: str, chunk: bytes) -> None:
        """Add bytes; HolderLiedError at the first byte too many, before it is kept."""
        if len(self.data) + len(chunk) > self.num_bytes:
            raise HolderLiedError(
                f"{self.num_bytes} bytes", f"more, from {holder}", "Asking another holder."
            )
        if holder not in self.sources:
            self.sources = (*self.sources, holder)
        self.data += chunk
        self.moved(len(chunk))

    def restart(self) -> None:
        """Drop what earlier holders sent: this one starts from the first byte."""
        self.data.clear()
        self.sources = ()

    def copy(self) -> "Partial":
        """Return a copy for an attempt that runs beside another."""
        return Partial(self.num_bytes, bytes(self.data), self.sources, is_exact=self.is_exact)


class Wire(Protocol):
    """One way to reach other participants."""

    async def start(self, cache: BlobCache) -> str:
        """Serve the blob cache; return our endpoint."""
        ...

    async def stop(self) -> None:
        """Stop serving; idempotent."""

    async def read(self, holder: str, blob: BlobId, into: Partial) -> None:
        """Append the missing bytes of a blob; HolderError if the holder does not deliver them."""

    async def write(self, holder: str, blob: BlobId, data: bytes) -> None:
        """Offer bytes to a holder; HolderError if it does not take them."""
