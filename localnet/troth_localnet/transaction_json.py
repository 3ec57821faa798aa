"""Transactions as JSON, in the shape that solders parses.

Owns: the four encodings of a transaction, and the metadata beside it.
Never: reads the chain. Next: `methods/transactions.py`.

jsonParsed writes partially decoded instructions, as a node does for programs it cannot parse.
"""

from __future__ import annotations

import base64
from typing import Final

from solders.instruction import CompiledInstruction
from solders.message import MessageV0
from solders.transaction import VersionedTransaction

from troth_coordinator.chain import base58
from troth_localnet.execution import InnerCall, Outcome
from troth_localnet.history import LandedTransaction
from troth_localnet.jsonrpc import UNSUPPORTED_VERSION, JsonRpcError
from troth_localnet.message import AccountKeys
from troth_localnet.methods.params import TransactionEncoding
from troth_localnet.values import Json

_TOP_STACK_HEIGHT: Final = 1


def transaction_json(
    landed: LandedTransaction, encoding: TransactionEncoding, max_version: int | None
) -> dict[str, Json]:
    """Write transaction, meta and version; JsonRpcError if the reader cannot take its version."""
    written: dict[str, Json] = {
        "transaction": _encoded(landed.transaction, landed.keys, encoding),
        "meta": meta_json(landed, parsed=encoding == "jsonParsed"),
    }
    version = version_json(landed.transaction, max_version)
    if max_version is not None:
        written["version"] = version
    return written


def version_json(transaction: VersionedTransaction, max_version: int | None) -> Json:
    """Return "legacy" or the number; JsonRpcError if it is above what the reader takes."""
    if not isinstance(transaction.message, MessageV0):
        return "legacy"
    if max_version is None:
        raise JsonRpcError(
            UNSUPPORTED_VERSION,
            "Transaction version (0) is not supported by the requesting client. Please try the"
            " request again with the following configuration parameter:"
            ' "maxSupportedTransactionVersion": 0',
        )
    return 0


def meta_json(landed: LandedTransaction, *, parsed: bool) -> Json:
    """Write the effects of the transaction."""
    outcome = landed.outcome
    meta: dict[str, Json] = {
        **short_meta_json(landed),
        "innerInstructions": inner_calls_json(outcome, landed.keys, parsed=parsed),
        "logMessages": outcome.logs,
        "computeUnitsConsumed": outcome.compute_units,
    }
    if not parsed:
        meta["loadedAddresses"] = {
            "writable": [str(key) for key in landed.keys.loaded_writable],
            "readonly": [str(key) for key in landed.keys.loaded_readonly],
        }
    if outcome.return_data is not None:
        meta["returnData"] = return_data_json(outcome)
    return meta


def short_meta_json(landed: LandedTransaction) -> dict[str, Json]:
    """Write the part that block account lists show too."""
    return {
        "err": landed.outcome.error,
        "status": status_json(landed.outcome.error),
        "fee": landed.fee_lamports,
        "preBalances": landed.pre_balances,
        "postBalances": landed.post_balances,
        "preTokenBalances": [],
        "postTokenBalances": [],
        "rewards": [],
    }


def status_json(error: Json) -> Json:
    """Write the old form of an error field."""
    return {"Ok": None} if error is None else {"Err": error}


def return_data_json(outcome: Outcome) -> Json:
    """Write the return data of the last program, null if none."""
    if outcome.return_data is None:
        return None
    program, data = outcome.return_data
    return {"programId": str(program), "data": [base64.b64encode(data).decode(), "base64"]}


def inner_calls_json(outcome: Outcome, keys: AccountKeys, *, parsed: bool) -> list[Json]:
    """Write the invoked instructions, grouped by the instruction that led to them."""
    return [
        {"index": index, "instructions": [_inner_call_json(call, keys, parsed) for call in calls]}
        for index, calls in enumerate(outcome.inner_calls)
        if calls
    ]


def account_keys_json(keys: AccountKeys) -> list[Json]:
    """Write every key with its role, as jsonParsed and block account lists do."""
    return [
        {
            "pubkey": str(key),
            "signer": keys.is_signer(index),
            "writable": keys.is_writable(index),
            "source": "transaction" if index < len(keys.static) else "lookupTable",
        }
        for index, key in enumerate(keys.all)
    ]


def _encoded(
    transaction: VersionedTransaction, keys: AccountKeys, encoding: TransactionEncoding
) -> Json:
    if encoding == "base64":
        return [base64.b64encode(bytes(transaction)).decode(), "base64"]
    if encoding == "base58":
        return [base58.encode(bytes(transaction)), "base58"]
    if encoding == "binary":
        return base58.encode(bytes(transaction))
    return {
        "signatures": [str(signature) for signature in transaction.signatures],
        "message": _message_json(transaction, keys, parsed=encoding == "jsonParsed"),
    }


def _message_json(transaction: VersionedTransaction, keys: AccountKeys, *, parsed: bool) -> Json:
    message = transaction.message
    written: dict[str, Json] = {"recentBlockhash": str(message.recent_blockhash)}
    calls = [_top_call(instruction) for instruction in message.instructions]
    if parsed:
        written["accountKeys"] = account_keys_json(keys)
        written["instructions"] = [_parsed_call_json(call, keys) for call in calls]
    else:
        written["accountKeys"] = [str(key) for key in keys.static]
        written["instructions"] = [_raw_call_json(call) for call in calls]
        written["header"] = {
            "numRequiredSignatures": keys.num_signers,
            "numReadonlySignedAccounts": keys.num_readonly_signers,
            "numReadonlyUnsignedAccounts": keys.num_readonly_unsigned,
        }
    if isinstance(message, MessageV0):
        written["addressTableLookups"] = [
            {
                "accountKey": str(lookup.account_key),
                "writableIndexes": list(bytes(lookup.writable_indexes)),
                "readonlyIndexes": list(bytes(lookup.readonly_indexes)),
            }
            for lookup in message.address_table_lookups
        ]
    return written


def _top_call(instruction: CompiledInstruction) -> InnerCall:
    return InnerCall(
        program_index=instruction.program_id_index,
        account_indexes=bytes(instruction.accounts),
        data=bytes(instruction.data),
        stack_height=_TOP_STACK_HEIGHT,
    )


def _inner_call_json(call: InnerCall, keys: AccountKeys, parsed: bool) -> Json:
    return _parsed_call_json(call, keys) if parsed else _raw_call_json(call)


def _raw_call_json(call: InnerCall) -> Json:
    return {
        "programIdIndex": call.program_index,
        "accounts": list(call.account_indexes),
        "data": base58.encode(call.data),
        "stackHeight": call.stack_height,
    }


def _parsed_call_json(call: InnerCall, keys: AccountKeys) -> Json:
    known = keys.all
    return {
        "programId": str(known[call.program_index]),
        "accounts": [str(known[index]) for index in call.account_indexes],
        "data": base58.encode(call.data),
        "stackHeight": call.stack_height,
    }
