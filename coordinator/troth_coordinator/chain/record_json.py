"""Transactions that landed, from the JSON of a node to our records.

Owns: the fields that are read, their types and bounds. All others may change: a stranger's
transaction may be of any version, and fail for any reason.
Never: asks a node, or decodes the bytes of a call; any other error is left to `http_rpc`.
Next: rpc.py for the records; events.py, which finds our events in the inner calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from solders.pubkey import Pubkey
from solders.signature import Signature

from troth_coordinator.chain.errors import UnreadableRecordError
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.chain.rpc import InnerCall, Listed, TransactionRecord

MAX_LISTED: Final = 1_000
"""Most transactions that a node lists in one answer."""
MAX_KEYS: Final = 256
"""Account numbers are bytes."""
MAX_INNER_CALLS: Final = 256
"""Four times what the runtime allows, which is 64 calls of all depths."""


def read_listed(result: object) -> list[Listed]:
    """Read the result of getSignaturesForAddress: of each entry three fields.

    Raises TypeError, ValueError, KeyError for whatever is not as it must be.
    """
    return [_listed(_object(entry)) for entry in _list(result, MAX_LISTED)]


def read_record(result: object) -> TransactionRecord | None:
    """Read the result of getTransaction in encoding `json`; None where the node has none.

    Raises UnreadableRecordError for an object that is no record, TypeError for anything else.
    """
    if result is None:
        return None
    written = _object(result)
    try:
        return _record(written)
    except (LookupError, TypeError, ValueError) as error:
        found = f"{type(error).__name__}: {error}"[:300]
        raise UnreadableRecordError("getTransaction", found) from error


def _listed(entry: Mapping[str, Any]) -> Listed:
    slot = _number(entry["slot"], 2**64)
    return Listed(Signature.from_string(_text(entry["signature"])), slot, entry["err"] is not None)


def _record(result: Mapping[str, Any]) -> TransactionRecord:
    meta = _object(result["meta"])
    failure = TransactionFailure.from_json(meta["err"])
    return TransactionRecord(
        slot=_number(result["slot"], 2**64),
        failure=failure,
        logs=_lines(meta.get("logMessages")),
        fee_lamports=_number(meta["fee"], 2**64),
        compute_units=_number(_given(meta.get("computeUnitsConsumed"), 0), 2**64),
        inner_calls=() if failure is not None else _inner_calls(result, meta),
    )


def _inner_calls(
    result: Mapping[str, Any], meta: Mapping[str, Any]
) -> tuple[InnerCall, ...] | None:
    """Return all inner calls in order of execution; None where the node keeps none."""
    groups = meta.get("innerInstructions")
    if groups is None:
        return None
    ordered = sorted(
        (_object(group) for group in _list(groups, MAX_KEYS)),
        key=lambda group: _number(group["index"], MAX_KEYS),
    )
    calls = [call for group in ordered for call in _list(group["instructions"], MAX_INNER_CALLS)]
    # Without inner calls there are no events, whatever the message looks like.
    keys = _account_keys(result, meta) if calls else ()
    return tuple(_inner_call(_object(call), keys) for call in _list(calls, MAX_INNER_CALLS))


def _account_keys(result: Mapping[str, Any], meta: Mapping[str, Any]) -> tuple[Pubkey, ...]:
    """Return what account numbers point into: the keys of the message, then the loaded ones."""
    message = _object(_object(result["transaction"])["message"])
    loaded = _object(_given(meta.get("loadedAddresses"), {}))
    texts = [
        text
        for listed in (message["accountKeys"], loaded.get("writable"), loaded.get("readonly"))
        for text in _list(_given(listed, []), MAX_KEYS)
    ]
    return tuple(Pubkey.from_string(_text(text)) for text in _list(texts, MAX_KEYS))


def _inner_call(call: Mapping[str, Any], keys: Sequence[Pubkey]) -> InnerCall:
    program, *accounts = (
        keys[_number(number, len(keys))]
        for number in (call["programIdIndex"], *_list(call["accounts"], MAX_KEYS))
    )
    return InnerCall(program, tuple(accounts), _text(call["data"]))


def _lines(value: object) -> tuple[str, ...]:
    """Return the log, which is for people: one that cannot be read is none."""
    lines = value if isinstance(value, list) else []
    return tuple(line for line in lines if isinstance(line, str))


def _given(value: object, otherwise: object) -> object:
    return otherwise if value is None else value


def _number(value: object, end: int) -> int:
    if type(value) is not int or not 0 <= value < end:
        raise TypeError(f"expected a number below {end}, found {_name(value)}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {_name(value)}")
    return value


def _list(value: object, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise TypeError(f"expected a list of at most {most}, found {_name(value)}")
    return value


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, found {_name(value)}")
    return value


def _name(value: object) -> str:
    """Say what it is, in little time for a value of any size."""
    if isinstance(value, list | dict):
        return f"{type(value).__name__} of {len(value)}"
    return f"{value!r:.80}"
