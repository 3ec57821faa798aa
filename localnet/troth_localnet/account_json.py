"""Accounts as JSON, in the shape that solders parses.

Owns: account encodings, data slices, getProgramAccounts filters.
Never: reads the chain. Next: `methods/accounts.py`.

jsonParsed falls back to base64, as a node does for programs it has no parser for. Unlike a node,
a request that names no encoding gets base64, not base58 with its 128-byte limit.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import zstandard
from solders.account import Account
from solders.pubkey import Pubkey

from troth_coordinator.chain import base58
from troth_localnet.jsonrpc import INVALID_REQUEST, JsonRpcError
from troth_localnet.methods.params import AccountConfig, DataSlice, Filter
from troth_localnet.values import Json

NEVER_PAYS_RENT: Final = 2**64 - 1
"""The rent epoch that nodes write for rent-exempt accounts; LiteSVM keeps 0."""

_MAX_BASE58_BYTES: Final = 128
_ZSTD: Final = "base64+zstd"
_NUM_FOLDED: Final = 64


def account_json(account: Account | None, config: AccountConfig) -> Json:
    """Write one account; null for none. JsonRpcError if base58 is asked for more than 128 bytes."""
    if account is None:
        return None
    return {
        "data": _data_json(account.data, config),
        "executable": account.executable,
        "lamports": account.lamports,
        "owner": str(account.owner),
        "rentEpoch": NEVER_PAYS_RENT,
        "space": len(account.data),
    }


def keyed_account_json(address: Pubkey, account: Account | None, config: AccountConfig) -> Json:
    """Write an account with its address, as getProgramAccounts lists it."""
    return {"pubkey": str(address), "account": account_json(account, config)}


def passes(account: Account, filters: Sequence[Filter]) -> bool:
    """Return whether the account passes every filter."""
    return all(_passes_one(account.data, condition) for condition in filters)


def _passes_one(data: bytes, condition: Filter) -> bool:
    if condition.memcmp is None:
        return len(data) == condition.data_size
    value = condition.memcmp.value
    offset = condition.memcmp.offset
    return data[offset : offset + len(value)] == value


def _data_json(data: bytes, config: AccountConfig) -> Json:
    data = _sliced(data, config.data_slice)
    if config.encoding in ("base58", "binary"):
        if len(data) > _MAX_BASE58_BYTES:
            raise JsonRpcError(
                INVALID_REQUEST,
                "Encoded binary (base 58) data should be less than 128 bytes,"
                " please use Base64 encoding.",
            )
        text = base58.encode(data)
        return text if config.encoding == "binary" else [text, "base58"]
    if config.encoding == _ZSTD:
        return [_folded(data), _ZSTD]
    return [base64.b64encode(data).decode(), "base64"]


@lru_cache(_NUM_FOLDED)
def _folded(data: bytes) -> str:
    """Return zstd in base64; kept, because all members read the same accounts after a change."""
    # In pieces, as nodes do: then the frame does not say how long its content is.
    compressor = zstandard.ZstdCompressor().compressobj()
    return base64.b64encode(compressor.compress(data) + compressor.flush()).decode()


def _sliced(data: bytes, part: DataSlice | None) -> bytes:
    return data if part is None else data[part.offset : part.offset + part.length]
