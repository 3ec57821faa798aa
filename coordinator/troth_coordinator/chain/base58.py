"""Base58 of bytes of any length, as Solana writes calls and transactions; decoded within a bound.

Owns: the bound, and a decoder that takes a sixth of the library's time at that length: both are
quadratic, and this one goes ten characters at a time.
Never: reads keys and signatures, which are short; solders does.
Next: rpc.py, where the bytes of a call are decoded when somebody asks for them.
"""

from __future__ import annotations

from typing import Final

import based58

MAX_CHARACTERS: Final = 5_600
"""Base58 of the longest call by which the program shows events: 4096 bytes take 5594."""
_ALPHABET: Final = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DIGITS: Final = bytes(max(_ALPHABET.find(code), 0) for code in range(256))
_PIECE: Final = 10
"""58**10 fits into 64 bits."""


def encode(data: bytes) -> str:
    """Return the base58 text; each leading zero byte becomes a leading `1`."""
    return based58.b58encode(data).decode("ascii")


def decode(text: str) -> bytes:
    """Return the bytes. Raises ValueError for another alphabet, and over MAX_CHARACTERS."""
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"expected at most {MAX_CHARACTERS} characters, found {len(text)}")
    written = text.encode("ascii")
    if written.strip(_ALPHABET):
        raise ValueError("expected characters of base58, found others")
    number = 0
    for start in range(0, len(written), _PIECE):
        piece, value = written[start : start + _PIECE].translate(_DIGITS), 0
        for digit in piece:
            value = value * 58 + digit
        number = number * 58 ** len(piece) + value
    num_zeros = len(written) - len(written.lstrip(b"1"))
    return bytes(num_zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")
