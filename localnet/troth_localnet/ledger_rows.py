"""The rows of a ledger: accounts as bytes, blocks and transactions as JSON, and back.

Owns: these forms. Never: touches a file or a chain. Next: `ledger.py`, which keeps them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from solders.account import Account
from solders.hash import Hash
from solders.pubkey import Pubkey
from solders.transaction import VersionedTransaction

from troth_localnet.blocks import Block
from troth_localnet.execution import InnerCall, Outcome
from troth_localnet.history import LandedTransaction
from troth_localnet.message import AccountKeys
from troth_localnet.svm import ChainConfig

_KEY_BYTES: Final = 32
_HEAD_BYTES: Final = 8 + 8 + 1 + _KEY_BYTES


def account_bytes(account: Account) -> bytes:
    """Return lamports, rent epoch, whether it is a program, owner and data, laid end to end."""
    numbers = account.lamports.to_bytes(8, "little") + account.rent_epoch.to_bytes(8, "little")
    return numbers + bytes([account.executable]) + bytes(account.owner) + bytes(account.data)


def account_of(state: bytes) -> Account:
    """Inverse of `account_bytes`."""
    lamports, epoch = (int.from_bytes(state[at : at + 8], "little") for at in (0, 8))
    owner = Pubkey.from_bytes(state[17:_HEAD_BYTES])
    return Account(lamports, state[_HEAD_BYTES:], owner, bool(state[16]), epoch)


def block_text(block: Block) -> str:
    """Return a block without its signatures, which are those of its transactions."""
    hashes = [str(block.blockhash), str(block.previous_blockhash)]
    return json.dumps([block.slot, block.parent, block.height, *hashes, block.unix_timestamp])


def block_of(text: str) -> Block:
    """Inverse of `block_text`."""
    slot, parent, height, blockhash, previous, timestamp = json.loads(text)
    hashes = Hash.from_string(blockhash), Hash.from_string(previous)
    return Block(slot, parent, height, *hashes, timestamp)


def transaction_text(landed: LandedTransaction) -> str:
    """Return a transaction with its result."""
    keys, outcome = landed.keys, landed.outcome
    returned = outcome.return_data
    return json.dumps(
        {
            "transaction": _text(bytes(landed.transaction)),
            "loaded": [[str(key) for key in part] for part in _loaded(keys)],
            "error": outcome.error,
            "logs": outcome.logs,
            "compute_units": outcome.compute_units,
            "inner_calls": [[_call_parts(call) for call in calls] for calls in outcome.inner_calls],
            "return_data": returned and [str(returned[0]), _text(returned[1])],
            "slot": landed.slot,
            "height": landed.height,
            "unix_timestamp": landed.unix_timestamp,
            "fee_lamports": landed.fee_lamports,
            "balances": [landed.pre_balances, landed.post_balances],
        },
        separators=(",", ":"),
    )


def transaction_of(text: str) -> LandedTransaction:
    """Inverse of `transaction_text`."""
    row: dict[str, Any] = json.loads(text)
    transaction = VersionedTransaction.from_bytes(base64.b64decode(row["transaction"]))
    before, after = row["balances"]
    return LandedTransaction(
        transaction=transaction,
        keys=_keys(transaction, row["loaded"]),
        outcome=_outcome(row),
        slot=row["slot"],
        height=row["height"],
        unix_timestamp=row["unix_timestamp"],
        fee_lamports=row["fee_lamports"],
        pre_balances=tuple(before),
        post_balances=tuple(after),
    )


def config_of(config: ChainConfig, settings: Mapping[str, Any]) -> ChainConfig:
    """Return the config with the beginning of a kept chain."""
    seed, begun = bytes.fromhex(settings["seed"]), settings["genesis_unix_timestamp"]
    return replace(config, seed=seed, genesis_unix_timestamp=begun)


def _outcome(row: Mapping[str, Any]) -> Outcome:
    returned = row["return_data"]
    return Outcome(
        error=row["error"],
        logs=tuple(row["logs"]),
        compute_units=row["compute_units"],
        inner_calls=tuple(tuple(_call(*call) for call in calls) for calls in row["inner_calls"]),
        return_data=returned and (Pubkey.from_string(returned[0]), base64.b64decode(returned[1])),
    )


def _keys(transaction: VersionedTransaction, loaded: list[list[str]]) -> AccountKeys:
    header = transaction.message.header
    writable, readonly = (tuple(map(Pubkey.from_string, part)) for part in loaded)
    return AccountKeys(
        tuple(transaction.message.account_keys),
        writable,
        readonly,
        header.num_required_signatures,
        header.num_readonly_signed_accounts,
        header.num_readonly_unsigned_accounts,
    )


def _loaded(keys: AccountKeys) -> tuple[tuple[Pubkey, ...], tuple[Pubkey, ...]]:
    return keys.loaded_writable, keys.loaded_readonly


def _call_parts(call: InnerCall) -> list[object]:
    accounts, data = _text(call.account_indexes), _text(call.data)
    return [call.program_index, accounts, data, call.stack_height]


def _call(program: int, accounts: str, data: str, height: int) -> InnerCall:
    return InnerCall(program, base64.b64decode(accounts), base64.b64decode(data), height)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
