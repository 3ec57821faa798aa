"""One file, one record: a few JSON fields and named arrays, sealed by a BLAKE3.

Owns: the byte format of local state files and the check on reading. Never: part of the protocol;
nothing outside this machine sees these bytes. Next: `store.py` and `data/prepare.py` keep records.

Format: magic (8 bytes), length of the head (u32), head (JSON: fields; name, dtype and shape of each
array), the arrays' bytes in that order, BLAKE3 of everything before it. Little-endian.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from troth_client.errors import ClientError
from troth_client.runtime.files import Chunk, atomic_write

MAGIC = b"trothre2"
_DIGEST_BYTES = 32

Array = NDArray[np.generic]


class DamagedFileError(ClientError):
    """A local file is torn or altered; `.path` names it."""

    def __init__(self, path: Path, expected: str, found: str) -> None:
        super().__init__(
            f"{path} with {expected}", found, "Nothing of this file is used; it may be deleted."
        )
        self.path = path


@dataclass(frozen=True)
class Record:
    """The contents of a file: `fields` are texts and integers, `arrays` are C-contiguous."""

    fields: Mapping[str, str | int]
    arrays: Mapping[str, Array]


def write_record(
    path: Path, record: Record, durable: bool = True, *, is_secret: bool = False
) -> None:
    """Replace the file by the record, atomically; nobody else can ever read a secret one.

    Raises DiskFullError; the old file then stays.
    """
    atomic_write(path, _sealed(record), durable, is_secret=is_secret)


def read_span(path: Path, name: str, offset: int, num_bytes: int) -> bytes:
    """Read some bytes of one array, without checking the seal: the caller checks what it reads.

    Raises FileNotFoundError, or DamagedFileError where the record has no such array or bytes.
    """
    with path.open("rb") as stream:
        begin, size = _place_of(path, name, _read_head(stream), stream.tell())
        end = os.fstat(stream.fileno()).st_size - _DIGEST_BYTES
        if offset < 0 or offset + num_bytes > size or begin + offset + num_bytes > end:
            raise DamagedFileError(path, f"{num_bytes} bytes at {offset} of {name}", "none")
        stream.seek(begin + offset)
        return stream.read(num_bytes)


def read_field(path: Path, name: str) -> str | int:
    """Read one field of a record without its arrays, and so without checking its seal.

    For bookkeeping only. Raises FileNotFoundError, or DamagedFileError where there is no such head.
    """
    with path.open("rb") as stream:
        head = _read_head(stream)
    try:
        found: str | int = json.loads(head)["fields"][name]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedFileError(path, f"a record with {name}", f"{error!r}") from error
    return found


def read_integer(path: Path, name: str) -> int:
    """Read one whole number as `read_field` does, with its errors."""
    found = read_field(path, name)
    try:
        return int(found)
    except (ValueError, TypeError) as error:
        raise DamagedFileError(path, f"a record with {name}", f"{error!r}") from error


def read_record(path: Path) -> Record:
    """Read and verify a record. Raises FileNotFoundError, or DamagedFileError for any other byte.

    The arrays are read-only views of one buffer.
    """
    return record_in(path.read_bytes(), path)


def record_in(data: bytes, path: Path) -> Record:
    """Verify the bytes of a record that somebody read from `path`; as `read_record`."""
    if len(data) < len(MAGIC) + 4 + _DIGEST_BYTES or not data.startswith(MAGIC):
        raise DamagedFileError(path, "a troth record", f"{len(data)} bytes that are none")
    body = memoryview(data)[:-_DIGEST_BYTES]
    digest, sealed = blake3(body).digest(), data[-_DIGEST_BYTES:]
    if digest != sealed:
        raise DamagedFileError(path, f"BLAKE3 {sealed.hex()}", digest.hex())
    # Only our own, sealed bytes get this far: the rest is decoding, not checking.
    offset = len(MAGIC) + 4
    head_end = offset + int.from_bytes(data[len(MAGIC) : offset], "little")
    head = json.loads(data[offset:head_end])
    arrays: dict[str, Array] = {}
    at = head_end
    for name, dtype, shape in head["arrays"]:
        count = math.prod(shape)
        arrays[name] = np.frombuffer(data, np.dtype(dtype), count, at).reshape(shape)
        at += count * np.dtype(dtype).itemsize
    return Record(head["fields"], arrays)


def _place_of(path: Path, name: str, head: bytes, begin: int) -> tuple[int, int]:
    """Return where an array begins, and its length in bytes; the first array is at `begin`.

    Nobody has checked the seal, so the head may say anything. Raises DamagedFileError.
    """
    try:
        for found, dtype, shape in json.loads(head)["arrays"]:
            size = _num_bytes(dtype, shape)
            if found == name:
                return begin, size
            begin += size
    except (ValueError, TypeError, KeyError, SyntaxError, RecursionError) as error:
        raise DamagedFileError(path, f"a record with {name}", f"{error!r}") from error
    raise DamagedFileError(path, f"a record with {name}", "other arrays")


def _read_head(stream: IO[bytes]) -> bytes:
    """Return the JSON head, leaving the stream at the first array; b"" where there is none."""
    magic, length = stream.read(len(MAGIC)), stream.read(4)
    size = min(int.from_bytes(length, "little"), os.fstat(stream.fileno()).st_size)
    return stream.read(size) if magic == MAGIC else b""


def _num_bytes(dtype: str, shape: list[int]) -> int:
    """Return the bytes of an array that an unchecked head describes; ValueError for nonsense."""
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise ValueError(f"shape {shape}")
    return math.prod(shape) * np.dtype(dtype).itemsize


def _sealed(record: Record) -> Iterator[Chunk]:
    arrays = {name: np.asarray(value, order="C") for name, value in record.arrays.items()}
    described = [[name, value.dtype.str, list(value.shape)] for name, value in arrays.items()]
    head = json.dumps(
        {"fields": dict(record.fields), "arrays": described}, separators=(",", ":")
    ).encode()
    digest = blake3()
    parts: list[Chunk] = [MAGIC, len(head).to_bytes(4, "little"), head]
    parts += [value.reshape(-1).view(np.uint8).data for value in arrays.values() if value.size]
    for part in parts:
        digest.update(part)
        yield part
    yield digest.digest()
