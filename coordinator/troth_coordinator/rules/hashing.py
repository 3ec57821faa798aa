"""The one hash of the protocol and the byte encoders of its fields.

Owns: `H(tag, fields...)` of protocol section 1 and the fixed-width little-endian encoders.
Never: hashes an unencoded value; a caller always names the width.
Next: `root.py` and `chain_hash.py` for the votes and the chain hash built on it.
"""

import hashlib
from collections.abc import Callable
from functools import lru_cache

from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.ids import Digest

U32_MAX = 2**32 - 1


@lru_cache(maxsize=64)
def tag_prefix(tag: str) -> bytes:
    """Return the bytes that every hash under `tag` starts with: u32 length, then the ASCII tag."""
    text = tag.encode("ascii")
    return len(text).to_bytes(4, "little") + text


def H(tag: str, *fields: bytes) -> Digest:  # noqa: N802  the protocol's own name
    """SHA-256 over the length-prefixed tag and the already encoded fields (protocol section 1)."""
    return Digest(hashlib.sha256(tag_prefix(tag) + b"".join(fields)).digest())


def _unsigned(width: int) -> Callable[[int], bytes]:
    limit = 1 << (8 * width)

    def encode(value: int) -> bytes:
        if not 0 <= value < limit:
            raise RangeError(
                f"u{8 * width} field", f"0..{limit - 1}", value, "pass a value that fits the field"
            )
        return value.to_bytes(width, "little")

    encode.__doc__ = f"Encode an integer as {width} little-endian bytes; RangeError outside them."
    return encode


u8 = _unsigned(1)
u16 = _unsigned(2)
u32 = _unsigned(4)
u64 = _unsigned(8)


def i64(value: int) -> bytes:
    """Encode a signed integer as 8 little-endian bytes (two's complement); RangeError outside."""
    if not -(2**63) <= value < 2**63:
        raise RangeError("i64 field", "-2^63..2^63-1", value, "pass a value that fits the field")
    return value.to_bytes(8, "little", signed=True)


def var(data: bytes) -> bytes:
    """Encode a variable field: u32 length, then the bytes; RangeError for more than U32_MAX."""
    if len(data) > U32_MAX:
        raise RangeError("variable field", f"at most {U32_MAX} bytes", len(data), "split the data")
    return len(data).to_bytes(4, "little") + data


def exactly(data: bytes, width: int, subject: str) -> bytes:
    """Return `data` if it has exactly `width` bytes, else raise RangeError naming `subject`."""
    if len(data) != width:
        raise RangeError(subject, f"{width} bytes", f"{len(data)} bytes", "pass the raw bytes")
    return data


def b32(data: bytes, subject: str = "32-byte field") -> bytes:
    """Return a key or hash if it has exactly 32 bytes, else raise RangeError."""
    return exactly(data, 32, subject)
