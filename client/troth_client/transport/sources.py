"""Sources: where a reader looks for bytes by their address, one after the other.

Owns: folders in the layout of an archive, several sources in order, and what is wrong in them.
Never: returns bytes of another address, reads more than was asked for, or follows a link.
Next: `remote.py` for members and stores; `base.py` for the address of a blob.

    <folder>/<kind>/<hex>      header, payload, openings, config, manifest, pieces, piece
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from troth_attestation.errors import HeaderError
from troth_attestation.header import HEADER_BYTES, SIGNATURE_BYTES, decode, verify_signature
from troth_client.runtime.files import Closable, read_regular
from troth_client.transport.base import BlobId, BlobKind


class Source(Protocol):
    """One place with bytes by address; any thread may call it."""

    @property
    def name(self) -> str:
        """How a person calls it."""
        ...

    def read(self, blob: BlobId, most_bytes: int) -> bytes | None:
        """Return what lies there, at most one byte more than asked for; None where nothing is."""
        ...


class FolderSource:
    """A folder in the layout of an archive. Only regular files in it are read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = str(folder)

    def read(self, blob: BlobId, most_bytes: int) -> bytes | None:
        """Return at most one byte more than asked for, so that a file that is too long shows."""
        return read_regular(self._folder / blob.kind / blob.key.hex(), most_bytes)


class Sources(Closable):
    """Several sources in order: the first with the right bytes counts. Use `with`."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = tuple(sources)

    def close(self) -> None:
        """Close those that hold connections."""
        for source in self._sources:
            if isinstance(source, Closable):
                source.close()

    def get(
        self,
        kind: str,
        key: bytes,
        most_bytes: int,
        is_right: Callable[[bytes], bool] | None = None,
    ) -> bytes | None:
        """Return bytes with this address; None where nobody has them.

        A header with its rightful signature goes before one with another. `is_right` judges a piece
        list, whose address does not say what its bytes are.
        """
        blob, unsigned = BlobId(0, BlobKind(kind), key), None
        for source in self._sources:
            data = source.read(blob, most_bytes)
            if data is None or _wrong(blob, data, most_bytes):
                continue
            if is_right is not None and not is_right(data):
                continue
            is_last = source is self._sources[-1]
            if blob.kind is not BlobKind.HEADER or (is_last and unsigned is None):
                return data  # its reader checks the signature
            if _is_signed(data):
                return data
            unsigned = unsigned or data
        return unsigned

    def instead(self, kind: str, key: bytes, most_bytes: int) -> str:
        """Return what the first source has under an address in place of the right bytes."""
        blob = BlobId(0, BlobKind(kind), key)
        for source in self._sources:
            data = source.read(blob, most_bytes)
            if data is not None:
                return f"{_wrong(blob, data, most_bytes)} in {source.name}"
        return ""


def _wrong(blob: BlobId, data: bytes, most_bytes: int) -> str:
    if not data:
        return "an empty file, or none that may be read"
    if len(data) > most_bytes:
        return f"more than {most_bytes} bytes"
    if not blob.matches(data):
        return f"{len(data)} bytes with another hash"
    whole = HEADER_BYTES + SIGNATURE_BYTES  # the address of a header says nothing of its signature
    if blob.kind is BlobKind.HEADER and len(data) != whole:
        return f"{len(data)} bytes where a header with its signature has {whole}"
    return ""


def _is_signed(data: bytes) -> bool:
    try:
        verify_signature(decode(data[:HEADER_BYTES]), data[HEADER_BYTES:])
    except HeaderError:
        return False
    return True
