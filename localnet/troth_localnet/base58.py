"""Base58 of short byte strings, as Solana writes keys, signatures and instruction data.

Owns: encode and decode for at most a transaction's length (the cost is quadratic).
Never: checksums; solders handles keys and hashes itself.
"""

from __future__ import annotations

from typing import Final

ALPHABET: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DIGITS: Final = {character: value for value, character in enumerate(ALPHABET)}
MAX_TEXT_LENGTH: Final = 2_048
"""More characters than any transaction needs; longer text is refused unread."""


def encode(data: bytes) -> str:
    """Return the base58 text; each leading zero byte becomes a leading `1`."""
    number = int.from_bytes(data, "big")
    digits: list[str] = []
    while number:
        number, remainder = divmod(number, 58)
        digits.append(ALPHABET[remainder])
    num_zeros = len(data) - len(data.lstrip(b"\0"))
    return "1" * num_zeros + "".join(reversed(digits))


def decode(text: str) -> bytes:
    """Return the bytes; ValueError on foreign characters or on text over MAX_TEXT_LENGTH."""
    if len(text) > MAX_TEXT_LENGTH:
        raise ValueError(f"base58 text of {len(text)} characters, at most {MAX_TEXT_LENGTH} here")
    number = 0
    for character in text:
        value = _DIGITS.get(character)
        if value is None:
            raise ValueError(f"{character!r} is not a base58 character")
        number = number * 58 + value
    num_zeros = len(text) - len(text.lstrip("1"))
    return b"\0" * num_zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")
