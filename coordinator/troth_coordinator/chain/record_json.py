"""The JSON of a landed transaction, as getTransaction writes it in base64, to our record.

Owns: the fields that are read, and resolving the account numbers of inner calls.
Never: asks a node; any error of a bad answer is left to `http_rpc`, the one door.
Next: rpc.py for the record; events.py, which finds our events in the inner calls.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import based58
from solders.pubkey import Pubkey
from solders.transaction import VersionedTransaction

from troth_coordinator.chain.errors import MalformedReplyError
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.chain.rpc import InnerCall, TransactionRecord

_METHOD = "getTransaction"


def read_record(result: Mapping[str, Any]) -> TransactionRecord:
    """Read the result of getTransaction; MalformedReplyError or a parser's error if it is bad."""
    slot, meta = result["slot"], result["meta"]
    if not isinstance(slot, int) or not isinstance(meta, Mapping):
        raise MalformedReplyError(_METHOD, "no slot or no meta")
    return TransactionRecord(
        slot=slot,
        failure=TransactionFailure.from_json(meta.get("err")),
        logs=tuple(str(line) for line in meta.get("logMessages") or ()),
        fee_lamports=int(meta["fee"]),
        compute_units=int(meta.get("computeUnitsConsumed") or 0),
        inner_calls=_inner_calls(result["transaction"], meta),
    )


def _inner_calls(
    transaction: Sequence[str], meta: Mapping[str, Any]
) -> tuple[InnerCall, ...] | None:
    """Return all inner calls in order of execution; None where the node keeps none."""
    groups = meta.get("innerInstructions")
    if groups is None:
        return None
    calls = [
        call
        for group in sorted(groups, key=lambda group: int(group["index"]))
        for call in group["instructions"]
    ]
    keys = _account_keys(transaction, meta) if calls else ()
    return tuple(_inner_call(call, keys) for call in calls)


def _account_keys(transaction: Sequence[str], meta: Mapping[str, Any]) -> tuple[Pubkey, ...]:
    """Return what account numbers point into: the keys of the message, then the loaded ones."""
    text, encoding = transaction
    if encoding != "base64":
        raise MalformedReplyError(_METHOD, f"a transaction in {encoding}, asked for base64")
    message = VersionedTransaction.from_bytes(base64.b64decode(text, validate=True)).message
    loaded = meta.get("loadedAddresses") or {}
    looked_up = [*loaded.get("writable", ()), *loaded.get("readonly", ())]
    return (*message.account_keys, *map(Pubkey.from_string, looked_up))


def _inner_call(call: Mapping[str, Any], keys: Sequence[Pubkey]) -> InnerCall:
    program, accounts = call["programIdIndex"], call["accounts"]
    for number in (program, *accounts):
        if not 0 <= number < len(keys):
            raise MalformedReplyError(
                _METHOD, f"account number {number} in an inner call, of {len(keys)} accounts"
            )
    return InnerCall(
        keys[program], tuple(keys[number] for number in accounts), based58.b58decode(_ascii(call))
    )


def _ascii(call: Mapping[str, Any]) -> bytes:
    return str(call["data"]).encode("ascii")
