"""From bytes to a transaction with all its account keys.

Owns: decoding, the 1232-byte limit, resolving lookup tables, the keys that are writable or sign.
Never: executes or checks signatures; the VM does.
Next: `execution.py`, which runs the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from solders.address_lookup_table_account import ID as LOOKUP_TABLE_PROGRAM
from solders.address_lookup_table_account import LOOKUP_TABLE_META_SIZE, AddressLookupTable
from solders.message import Message, MessageV0
from solders.pubkey import Pubkey
from solders.transaction import SanitizeError, VersionedTransaction

from troth_localnet.errors import InvalidTransactionError
from troth_localnet.values import Json

MAX_TRANSACTION_BYTES: Final = 1_232

AccountData = Callable[[Pubkey], tuple[Pubkey, bytes] | None]
"""Reads an account's owner and data; None if there is no account."""


class TableLookupError(Exception):
    """A lookup table does not resolve; carries the RPC-shaped transaction error."""

    def __init__(self, error: Json) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class AccountKeys:
    """The keys of a transaction in the runtime's order: static, loaded writable and readonly."""

    static: tuple[Pubkey, ...]
    loaded_writable: tuple[Pubkey, ...]
    loaded_readonly: tuple[Pubkey, ...]
    num_signers: int
    num_readonly_signers: int
    num_readonly_unsigned: int

    @property
    def all(self) -> tuple[Pubkey, ...]:
        """Every key; an instruction's account index points into this."""
        return self.static + self.loaded_writable + self.loaded_readonly

    def is_signer(self, index: int) -> bool:
        """Return whether the key at this index signs."""
        return index < self.num_signers

    def is_writable(self, index: int) -> bool:
        """Return whether the transaction asks to write the key at this index."""
        if index >= len(self.static):
            return index < len(self.static) + len(self.loaded_writable)
        if index < self.num_signers:
            return index < self.num_signers - self.num_readonly_signers
        return index < len(self.static) - self.num_readonly_unsigned

    @property
    def writable(self) -> list[tuple[int, Pubkey]]:
        """Index and key of everything the transaction may write."""
        return [(i, key) for i, key in enumerate(self.all) if self.is_writable(i)]


def decode_transaction(raw: bytes) -> VersionedTransaction:
    """Parse exactly these bytes; InvalidTransactionError on anything else."""
    if not 0 < len(raw) <= MAX_TRANSACTION_BYTES:
        raise InvalidTransactionError(f"{len(raw)} bytes")
    try:
        transaction = VersionedTransaction.from_bytes(raw)
    except ValueError as error:
        raise InvalidTransactionError(f"bytes that do not decode ({error})") from error
    if bytes(transaction) != raw:
        raise InvalidTransactionError("bytes left over after the transaction")
    try:
        transaction.sanitize()
    except SanitizeError as error:
        raise InvalidTransactionError(f"a transaction that contradicts itself ({error})") from error
    return transaction


def resolve_keys(message: Message | MessageV0, account_data: AccountData) -> AccountKeys:
    """List all keys, lookup tables read; TableLookupError if one does not resolve."""
    writable: list[Pubkey] = []
    readonly: list[Pubkey] = []
    if isinstance(message, MessageV0):
        for lookup in message.address_table_lookups:
            addresses = _table_addresses(account_data(lookup.account_key))
            writable += _pick(addresses, bytes(lookup.writable_indexes))
            readonly += _pick(addresses, bytes(lookup.readonly_indexes))
    header = message.header
    return AccountKeys(
        static=tuple(message.account_keys),
        loaded_writable=tuple(writable),
        loaded_readonly=tuple(readonly),
        num_signers=header.num_required_signatures,
        num_readonly_signers=header.num_readonly_signed_accounts,
        num_readonly_unsigned=header.num_readonly_unsigned_accounts,
    )


def _table_addresses(account: tuple[Pubkey, bytes] | None) -> list[Pubkey]:
    if account is None:
        raise TableLookupError("AddressLookupTableNotFound")
    owner, data = account
    if owner != LOOKUP_TABLE_PROGRAM:
        raise TableLookupError("InvalidAddressLookupTableOwner")
    if len(data) < LOOKUP_TABLE_META_SIZE:
        raise TableLookupError("InvalidAddressLookupTableData")
    return AddressLookupTable.deserialize(data).addresses


def _pick(addresses: list[Pubkey], indexes: bytes) -> list[Pubkey]:
    if any(index >= len(addresses) for index in indexes):
        raise TableLookupError("InvalidAddressLookupTableIndex")
    return [addresses[index] for index in indexes]
