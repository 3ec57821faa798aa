"""Accounts as nodes last showed them: an answer that contradicts the past is a bad one.

Owns: the bound of what is remembered. Never: holds account data, only owner and length.
Next: failover.py, which asks the next node after a complaint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from solders.pubkey import Pubkey
from solders.system_program import ID as SYSTEM_PROGRAM

from troth_coordinator.chain.rpc import Account

MAX_KNOWN: Final = 4_096
"""Accounts whose last good answer is remembered."""


class KnownAccounts:
    """Owner and length of each account, by its address."""

    def __init__(self) -> None:
        self._known: dict[Pubkey, tuple[Pubkey, int]] = {}

    def complaint(self, addresses: Sequence[Pubkey], accounts: Sequence[Account | None]) -> str:
        """Say which account is foreign or shorter than it was; "" for none."""
        for address, account in zip(addresses, accounts, strict=False):
            if address not in self._known or account is None or account.is_bare:
                continue
            owner, num_bytes = self._known[address]
            if owner == SYSTEM_PROGRAM:
                continue  # lamports lay there before a program made its account
            if account.owner != owner:
                return f"account {address} of {account.owner}, which was of {owner}"
            if len(account.data) < num_bytes:
                return f"account {address} of {len(account.data)} bytes, which had {num_bytes}"
        return ""

    def loss(self, addresses: Sequence[Pubkey], accounts: Sequence[Account | None]) -> str:
        """Say which account is gone; "" for none. Accounts are closed in time, so it may be so."""
        for address, account in zip(addresses, accounts, strict=False):
            if address not in self._known:
                continue
            # Anybody may send lamports to the address of an account that was closed.
            was_made = self._known[address][0] != SYSTEM_PROGRAM
            if account is None or (account.is_bare and was_made):
                return f"no account at {address}, where there was one"
        return ""

    def remember(self, addresses: Sequence[Pubkey], accounts: Sequence[Account | None]) -> None:
        """Take a good answer, also that an account is gone for good."""
        for address, account in zip(addresses, accounts, strict=False):
            self._known.pop(address, None)
            if account is not None:
                self._known[address] = (account.owner, len(account.data))
        while len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]
