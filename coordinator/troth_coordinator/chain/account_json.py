"""Accounts as RPC nodes write them in JSON, unfolded within bounds.

Owns: base64 and base64+zstd, and how many bytes one answer may unfold to.
Never: asks a node; `http_rpc.py` does. It turns whatever is raised here into one of our errors.
"""

from __future__ import annotations

import base64
import io
import json
from typing import Final

import zstandard
from solders.pubkey import Pubkey

from troth_coordinator.chain.rpc import MAX_SLOT, Account

ENCODING: Final = "base64+zstd"
"""Of a run's accounts most bytes are zero: a roster of eight shrinks to a tenth."""
MAX_UNFOLDED_BYTES: Final = 16 << 20
"""Data of all accounts of one answer. The largest account that Solana has is 10 MiB."""
MAX_WINDOW_BYTES: Final = 8 << 20
"""Memory that a frame may ask for; every decoder of the format has to allow this much."""


class AccountsText:
    """The result of one answer; `text` is the whole JSON-RPC reply.

    Methods raise ValueError, KeyError, TypeError for whatever is not as it must be.
    """

    def __init__(self, text: str) -> None:
        self._result = json.loads(text)["result"]
        self._bytes_left = MAX_UNFOLDED_BYTES

    def at_slot(self) -> tuple[int, list[Account | None]]:
        """Read the answer of getMultipleAccounts: the slot, and an account or None per address."""
        values = self._result["value"]
        return _slot(self._result), [self._maybe(value) for value in _listed(values)]

    def keyed(self) -> list[tuple[Pubkey, Account]]:
        """Read the answer of getProgramAccounts."""
        return [
            (Pubkey.from_string(entry["pubkey"]), self._account(entry["account"]))
            for entry in _listed(self._result)
        ]

    def _maybe(self, value: object) -> Account | None:
        return None if value is None else self._account(value)

    def _account(self, value: object) -> Account:
        if not isinstance(value, dict):
            raise TypeError(f"expected an account, found {value!r:.80}")
        text, encoding = value["data"]
        data = unfold(text, encoding, self._bytes_left)
        self._bytes_left -= len(data)
        lamports, executable = value["lamports"], value["executable"]
        if type(lamports) is not int or not 0 <= lamports < 2**64 or type(executable) is not bool:
            raise TypeError(f"expected lamports and a mark, found {lamports!r:.80}, {executable!r}")
        return Account(lamports, Pubkey.from_string(value["owner"]), data, executable)


def unfold(text: str, encoding: str, max_bytes: int) -> bytes:
    """Return account data; ValueError for another encoding, or if it has more than so many bytes.

    Never more than `max_bytes` and one window are held, whatever a frame says of itself.
    """
    data = base64.b64decode(text, validate=True)
    if encoding == ENCODING:
        data = _decompressed(data, max_bytes)
    elif encoding != "base64":
        raise ValueError(f"expected {ENCODING} or base64, found {encoding!r:.80}")
    if len(data) > max_bytes:
        raise ValueError(f"expected at most {max_bytes} bytes of accounts, found more")
    return data


def _decompressed(data: bytes, max_bytes: int) -> bytes:
    """Return what a frame unfolds to, or one byte more than allowed."""
    decoder = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    try:
        with decoder.stream_reader(io.BytesIO(data)) as reader:
            return reader.read(max_bytes + 1)
    except zstandard.ZstdError as error:
        raise ValueError(f"expected a zstd frame, found another: {error}") from error


def _slot(result: dict[str, dict[str, int]]) -> int:
    slot = result["context"]["slot"]
    if type(slot) is not int or not 0 <= slot <= MAX_SLOT:
        raise TypeError(f"expected a slot of at most 63 bits, found {slot!r:.80}")
    return slot


def _listed(value: object) -> list[dict[str, str]]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, found {value!r:.80}")
    return value
