"""Transactions that landed, by signature and by address.

Owns: the records, and forgetting the oldest ones, except those that could still be sent again.
Never: executes or encodes. Next: `methods/transactions.py`, which writes records as JSON.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction

from troth_localnet.blocks import MAX_BLOCKHASH_AGE_BLOCKS
from troth_localnet.execution import Outcome
from troth_localnet.message import AccountKeys


@dataclass(frozen=True, slots=True)
class LandedTransaction:
    """A transaction in a block, successful or failed. Fee and balances in lamports."""

    transaction: VersionedTransaction
    keys: AccountKeys
    outcome: Outcome
    slot: int
    height: int
    unix_timestamp: int
    fee_lamports: int
    pre_balances: tuple[int, ...]
    post_balances: tuple[int, ...]

    @property
    def signature(self) -> Signature:
        """The first signature, which names the transaction."""
        return self.transaction.signatures[0]


class History:
    """Landed transactions, oldest forgotten beyond `num_kept`."""

    def __init__(self, num_kept: int) -> None:
        self._num_kept = num_kept
        self._by_signature: dict[Signature, LandedTransaction] = {}
        self._by_address: defaultdict[Pubkey, deque[Signature]] = defaultdict(deque)
        self.num_landed = 0

    def add(self, landed: LandedTransaction) -> None:
        """Remember one more."""
        self._by_signature[landed.signature] = landed
        for key in set(landed.keys.all):
            self._by_address[key].append(landed.signature)
        self.num_landed += 1
        self._forget(landed.height)

    def get(self, signature: Signature) -> LandedTransaction | None:
        """Return the record, None if it never landed or is forgotten."""
        return self._by_signature.get(signature)

    def newest_first(self, address: Pubkey) -> Iterator[LandedTransaction]:
        """Yield all remembered transactions that name the address."""
        signatures = self._by_address.get(address, ())
        return (self._by_signature[signature] for signature in reversed(signatures))

    def _forget(self, height: int) -> None:
        while len(self._by_signature) > self._num_kept:
            oldest = next(iter(self._by_signature.values()))
            if oldest.height + MAX_BLOCKHASH_AGE_BLOCKS >= height:
                return
            del self._by_signature[oldest.signature]
            for key in set(oldest.keys.all):
                signatures = self._by_address[key]
                signatures.popleft()
                if not signatures:
                    del self._by_address[key]
