"""Base58 of short byte strings, as Solana writes keys, signatures and instruction data.

Owns: the length limit of texts; the library's cost is quadratic.
Never: checksums; solders handles keys and hashes itself.
Next: methods/params.py and transaction_json.py, which use it.
"""

from __future__ import annotations

from typing import Final

import based58

MAX_TEXT_LENGTH: Final = 2_048
"""More characters than any transaction needs; longer text is refused unread."""


def encode(data: bytes) -> str:
    """Return the base58 text; each leading zero byte becomes a leading `1`."""
    return based58.b58encode(data).decode("ascii")


def decode(text: str) -> bytes:
    """Return the bytes; ValueError on foreign characters or on text over MAX_TEXT_LENGTH."""
    if len(text) > MAX_TEXT_LENGTH:
        raise ValueError(f"base58 text of {len(text)} characters, at most {MAX_TEXT_LENGTH} here")
    return based58.b58decode(text.encode())
