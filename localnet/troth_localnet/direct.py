"""A chain in this process, offered to clients as the `Rpc` port: no sockets, no JSON.

Owns: translating between Chain and the records of troth_coordinator.chain.rpc.
Never: moves time; the owner of the Chain steps it.
Next: troth_coordinator.chain.client uses it like any node.

Every status is `finalized` at once: this chain has no forks.
"""

from __future__ import annotations

from collections.abc import Sequence

from solders.account import Account as ChainAccount
from solders.hash import Hash
from solders.pubkey import Pubkey
from solders.signature import Signature

from troth_coordinator.chain.errors import RpcRefusedError, TransactionRejectedError
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.chain.rpc import (
    MAX_ACCOUNTS_PER_CALL,
    Account,
    BytesAt,
    InnerCall,
    Listed,
    Simulation,
    Status,
    TransactionRecord,
)
from troth_localnet.blocks import MAX_BLOCKHASH_AGE_BLOCKS
from troth_localnet.congestion import recent_prices
from troth_localnet.errors import (
    AirdropRefusedError,
    InvalidTransactionError,
    RefusedTransactionError,
)
from troth_localnet.history import LandedTransaction
from troth_localnet.message import decode_transaction
from troth_localnet.svm import Chain

_INVALID_PARAMS = -32_602
_INTERNAL_ERROR = -32_603


class DirectRpc:
    """Implements `troth_coordinator.chain.rpc.Rpc` on a Chain; to be used in the Chain's thread."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain

    async def genesis_hash(self) -> bytes:
        """Return the 32 bytes that tell this chain from others."""
        return bytes(self.chain.blocks.genesis_hash)

    async def get_slot(self) -> int:
        """Return the open slot."""
        return self.chain.slot

    async def block_height(self) -> int:
        """Return the height of the open block."""
        return self.chain.height

    async def get_accounts(self, addresses: Sequence[Pubkey]) -> tuple[int, list[Account | None]]:
        """Read up to 100 accounts at the open slot."""
        if len(addresses) > MAX_ACCOUNTS_PER_CALL:
            raise RpcRefusedError(
                "getMultipleAccounts", _INVALID_PARAMS, f"{len(addresses)} keys, at most 100"
            )
        accounts = [self.chain.accounts.get(address) for address in addresses]
        return self.chain.slot, [None if found is None else _account(found) for found in accounts]

    async def get_program_accounts(
        self, program: Pubkey, filters: Sequence[int | BytesAt]
    ) -> list[tuple[Pubkey, Account]]:
        """Read all accounts of a program that pass every filter."""
        return [
            (address, _account(account))
            for address, account in self.chain.accounts.of_program(program)
            if all(_passes(account.data, condition) for condition in filters)
        ]

    async def latest_blockhash(self) -> tuple[Hash, int]:
        """Return the newest blockhash and the last height that accepts it."""
        return self.chain.latest_blockhash()

    async def send(self, raw: bytes, *, skip_preflight: bool = False) -> Signature:
        """Execute at once in the open block; TransactionRejectedError if preflight refuses."""
        try:
            return self.chain.send(raw, skip_preflight=skip_preflight)
        except RefusedTransactionError as error:
            failure = TransactionFailure.from_json(error.outcome.error)
            if failure is None:
                raise
            raise TransactionRejectedError(failure, error.outcome.logs) from error
        except InvalidTransactionError as error:
            raise RpcRefusedError("sendTransaction", _INVALID_PARAMS, str(error)) from error

    async def simulate(self, raw: bytes) -> Simulation:
        """Execute without a trace."""
        try:
            transaction = decode_transaction(raw)
        except InvalidTransactionError as error:
            raise RpcRefusedError("simulateTransaction", _INVALID_PARAMS, str(error)) from error
        outcome = self.chain.simulate(transaction, check_signatures=True)
        return Simulation(TransactionFailure.from_json(outcome.error), tuple(outcome.logs))

    async def statuses(
        self, signatures: Sequence[Signature], *, search_history: bool = False
    ) -> list[Status | None]:
        """Return each status; without search_history those of the last 150 blocks only."""
        oldest = 0 if search_history else self.chain.height - MAX_BLOCKHASH_AGE_BLOCKS
        return [self._status(signature, oldest) for signature in signatures]

    async def transaction(self, signature: Signature) -> TransactionRecord | None:
        """Return what landed under the signature, or None."""
        landed = self.chain.history.get(signature)
        return None if landed is None else record_of(landed)

    async def signatures(
        self, address: Pubkey, *, before: Signature | None = None, until: Signature | None = None
    ) -> list[Listed]:
        """Return the transactions that name an address, newest first."""
        listed = [
            Listed(landed.signature, landed.slot, landed.outcome.error is not None)
            for landed in self.chain.history.newest_first(address)
        ]
        signatures = [one.signature for one in listed]
        end = signatures.index(until) if until in signatures else len(listed)
        return listed[0 if before is None else signatures.index(before) + 1 : end]

    async def recent_fees(self, accounts: Sequence[Pubkey]) -> list[int]:
        """Return the least price per recent block for writing these accounts."""
        return [price for _slot, price in recent_prices(self.chain, set(accounts))]

    async def slot_micros(self) -> int:
        """Return the length of a slot on this chain's own clock."""
        return 1_000 * self.chain.config.slot_milliseconds

    async def request_airdrop(self, address: Pubkey, lamports: int) -> Signature:
        """Pay from the chain's faucet."""
        try:
            return self.chain.airdrop(address, lamports)
        except AirdropRefusedError as error:
            raise RpcRefusedError("requestAirdrop", _INTERNAL_ERROR, str(error)) from error

    def _status(self, signature: Signature, oldest_height: int) -> Status | None:
        landed = self.chain.history.get(signature)
        if landed is None or landed.height < oldest_height:
            return None
        failure = TransactionFailure.from_json(landed.outcome.error)
        return Status(landed.slot, failure, "finalized")


def record_of(landed: LandedTransaction) -> TransactionRecord:
    """Return a transaction of the chain's history as clients see it."""
    keys = landed.keys.all
    return TransactionRecord(
        slot=landed.slot,
        failure=TransactionFailure.from_json(landed.outcome.error),
        logs=landed.outcome.logs,
        fee_lamports=landed.fee_lamports,
        compute_units=landed.outcome.compute_units,
        inner_calls=tuple(
            InnerCall(
                keys[call.program_index],
                tuple(keys[index] for index in call.account_indexes),
                call.data,
            )
            for calls in landed.outcome.inner_calls
            for call in calls
        ),
    )


def _account(account: ChainAccount) -> Account:
    return Account(account.lamports, account.owner, account.data, account.executable)


def _passes(data: bytes, condition: int | BytesAt) -> bool:
    if isinstance(condition, int):
        return len(data) == condition
    end = condition.offset + len(condition.value)
    return data[condition.offset : end] == condition.value
