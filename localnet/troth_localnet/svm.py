"""The embedded chain: LiteSVM with slots, blocks, blockhashes, history and a faucet.

Owns: the state of a node. Calls are synchronous; time moves only by `advance` and `skip`. There are
no forks: an executed transaction is final, and every commitment level sees the same state.
Never: opens sockets, reads a clock or a random source, formats JSON.
Next: `direct.py` for clients in this process, `rpc.py` for HTTP and websocket.

A Chain belongs to the thread that made it (LiteSVM is not to be shared).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from solders.account import Account
from solders.hash import Hash
from solders.keypair import Keypair
from solders.message import Message
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.solders import LiteSVM
from solders.system_program import ID as SYSTEM_PROGRAM
from solders.system_program import TransferParams, transfer
from solders.transaction import VersionedTransaction

from troth_localnet.accounts import Accounts
from troth_localnet.blocks import (
    MAX_BLOCKHASH_AGE_BLOCKS,
    SLOTS_PER_EPOCH,
    BlockLedger,
    SavedBlocks,
    SkipRule,
    skip_none,
)
from troth_localnet.congestion import Congestion
from troth_localnet.errors import AirdropRefusedError, RefusedTransactionError
from troth_localnet.execution import Executor, Outcome
from troth_localnet.fees import unit_price
from troth_localnet.history import History, LandedTransaction
from troth_localnet.message import (
    AccountKeys,
    TableLookupError,
    decode_transaction,
    resolve_keys,
)

FAUCET_LAMPORTS: Final = 500_000_000 * 10**9
_MILLISECONDS: Final = 1_000


@dataclass(frozen=True, slots=True)
class ChainConfig:
    """The settings of a chain; equal configs and equal steps give equal chains.

    - seed: makes hashes and the faucet key differ between chains.
    - slot_milliseconds: growth of the unix time on chain per slot.
    - genesis_unix_timestamp: unix time of slot 0, in seconds.
    - num_transactions_kept, num_blocks_kept: length of the history.
    - has_token_programs: SPL's programs for tokens and memos, which cost half of a start.
    """

    seed: bytes = b""
    slot_milliseconds: int = 400
    genesis_unix_timestamp: int = 1_700_000_000
    skip: SkipRule = skip_none
    num_transactions_kept: int = 50_000
    num_blocks_kept: int = 20_000
    has_token_programs: bool = True


class ChainObserver(Protocol):
    """Receives every change, after it happened."""

    def transaction_landed(self, landed: LandedTransaction, changed: Sequence[Pubkey]) -> None:
        """Receive a transaction in the open block and the accounts it may have changed."""
        ...

    def slot_opened(self, slot: int, parent: int) -> None:
        """Receive a new open slot over a sealed parent; of a leap only the last slot."""
        ...


def _machine(has_token_programs: bool) -> LiteSVM:
    """Return a new VM. The class in `solders.litesvm` wraps this one, and loads every program."""
    machine = LiteSVM.default()
    machine.set_builtins(None)
    machine.set_sysvars()
    machine.set_precompiles(None)
    if has_token_programs:
        machine.set_spl_programs()
    return machine


class Chain:
    """One chain of one leader; `ChainConfig` has its settings."""

    def __init__(self, config: ChainConfig | None = None) -> None:
        self.config = config or ChainConfig()
        self._svm = _machine(self.config.has_token_programs)
        self._executor = Executor(self._svm)
        self.accounts = Accounts(self._svm)
        self.history = History(self.config.num_transactions_kept)
        self.blocks = BlockLedger(
            self.config.seed, self._timestamp, self.config.skip, self.config.num_blocks_kept
        )
        self.congestion = Congestion()
        self.observers: list[ChainObserver] = []
        seed = hashlib.sha256(b"troth-localnet:faucet\0" + self.config.seed).digest()
        self._faucet = Keypair.from_seed(seed)
        self.num_airdrops = 0
        self.accounts.set(
            self._faucet.pubkey(), Account(FAUCET_LAMPORTS, b"", SYSTEM_PROGRAM, False, 2**64 - 1)
        )
        self._write_sysvars()

    @property
    def slot(self) -> int:
        """The open slot."""
        return self.blocks.open.slot

    @property
    def height(self) -> int:
        """Height of the open block; it lags behind the slot when slots are skipped."""
        return self.blocks.open.height

    @property
    def faucet(self) -> Pubkey:
        """The account that pays airdrops."""
        return self._faucet.pubkey()

    def latest_blockhash(self) -> tuple[Hash, int]:
        """Return the newest blockhash and the last block height that accepts it."""
        return self.blocks.open.blockhash, self.blocks.open.height + MAX_BLOCKHASH_AGE_BLOCKS

    def minimum_balance(self, num_bytes: int) -> int:
        """Return the lamports that make an account of this data size rent-exempt."""
        return self._svm.minimum_balance_for_rent_exemption(num_bytes)

    def add_program(self, program_id: Pubkey, image: bytes) -> None:
        """Install a program; ProgramImageError if the image is not for this VM."""
        self.accounts.add_program(program_id, image)

    def advance(self, num_slots: int = 1) -> None:
        """Move on by `num_slots` slots with a block in each (see ChainConfig.skip)."""
        self.blocks.advance(num_slots)
        self._after_time_moved()

    def skip(self, num_slots: int) -> None:
        """Leave the next `num_slots` slots without a block and open the one after them."""
        self.blocks.skip(num_slots)
        self._after_time_moved()

    def send(self, raw: bytes, *, skip_preflight: bool = False) -> Signature:
        """Execute a signed transaction in the open block and return its signature.

        With preflight, a transaction that would fail raises RefusedTransactionError and changes
        nothing. Without preflight, a failure lands: it takes the fee and is recorded. One that
        cannot get into a block (bad signature, old blockhash, duplicate, no fee, or a price below
        that of a full block) vanishes silently, as on a real network. InvalidTransactionError if
        the bytes are no transaction.
        """
        transaction = decode_transaction(raw)
        keys, outcome = self._foretell(transaction)
        if outcome.error is not None and not skip_preflight:
            raise RefusedTransactionError(outcome)
        is_outbid = unit_price(transaction.message) < self.congestion.price(self.slot)
        if keys is not None and not is_outbid:
            self._commit(transaction, keys, outcome)
        return transaction.signatures[0]

    def resume(
        self,
        blocks: SavedBlocks,
        landed: Sequence[tuple[int, LandedTransaction]],
        num_airdrops: int,
    ) -> None:
        """Go on from a kept past; the accounts were restored before.

        `landed`: the transactions that are still remembered, with their numbers, oldest first.
        """
        self.blocks.resume(blocks)
        for number, one in landed:
            block = self.blocks.block(one.slot)
            if block is not None:
                block.signatures.append(one.signature)
            self.history.num_landed = number - 1
            self.history.add(one)
        self.num_airdrops = num_airdrops
        self._write_sysvars()

    def simulate(
        self,
        transaction: VersionedTransaction,
        *,
        check_signatures: bool = False,
        check_blockhash: bool = True,
    ) -> Outcome:
        """Return the result that the transaction would have now; nothing changes."""
        if check_signatures and not all(transaction.verify_with_results()):
            return Outcome("SignatureFailure", executed=False)
        if check_blockhash and not self._is_recent(transaction):
            return Outcome("BlockhashNotFound", executed=False)
        try:
            keys = self.resolve(transaction)
        except TableLookupError as error:
            return Outcome(error.error, executed=False)
        return self._executor.simulate(transaction, keys)

    def resolve(self, transaction: VersionedTransaction) -> AccountKeys:
        """List all keys of a transaction, lookup tables read; TableLookupError if one fails."""
        return resolve_keys(transaction.message, self.accounts.owner_and_data)

    def airdrop(self, address: Pubkey, lamports: int) -> Signature:
        """Pay from the faucet by a transaction of its own; AirdropRefusedError if it cannot."""
        if not 0 < lamports <= self.accounts.balance(self.faucet):
            raise AirdropRefusedError(
                f"an airdrop of 1 to {self.accounts.balance(self.faucet)} lamports",
                f"{lamports}",
                "Ask for less",
            )
        # A second transfer of a growing amount to itself keeps equal airdrops distinct.
        self.num_airdrops += 1
        blockhash, _ = self.latest_blockhash()
        message = Message.new_with_blockhash(
            [
                transfer(TransferParams(from_pubkey=self.faucet, to_pubkey=to, lamports=amount))
                for to, amount in ((address, lamports), (self.faucet, self.num_airdrops))
            ],
            self.faucet,
            blockhash,
        )
        try:
            return self.send(bytes(VersionedTransaction(message, [self._faucet])))
        except RefusedTransactionError as error:
            raise AirdropRefusedError(
                "an airdrop that leaves the account rent-exempt",
                f"{lamports} lamports for {address}: {error.outcome.error}",
                f"Ask for at least {self.minimum_balance(0)} lamports for a new account",
            ) from error

    def _foretell(self, transaction: VersionedTransaction) -> tuple[AccountKeys | None, Outcome]:
        """Return the result of executing; keys only for transactions that can get into a block."""
        if not all(transaction.verify_with_results()):
            return None, Outcome("SignatureFailure", executed=False)
        if not self._is_recent(transaction):
            return None, Outcome("BlockhashNotFound", executed=False)
        if self.history.get(transaction.signatures[0]) is not None:
            return None, Outcome("AlreadyProcessed", executed=False)
        try:
            keys = self.resolve(transaction)
        except TableLookupError as error:
            return None, Outcome(error.error, executed=False)
        return keys, self._executor.simulate(transaction, keys)

    def _commit(
        self, transaction: VersionedTransaction, keys: AccountKeys, outcome: Outcome
    ) -> None:
        before = self._executor.balances(keys)
        if not self._executor.commit(transaction, keys, outcome):
            return
        after = self._executor.balances(keys)
        changed = [key for _, key in keys.writable] if outcome.error is None else [keys.static[0]]
        self.accounts.index(changed)
        landed = LandedTransaction(
            transaction=transaction,
            keys=keys,
            outcome=outcome.without_accounts(),
            slot=self.slot,
            height=self.height,
            unix_timestamp=self.blocks.open.unix_timestamp,
            # Transactions only move lamports, so the missing lamports are the fee.
            fee_lamports=sum(before) - sum(after),
            pre_balances=before,
            post_balances=after,
        )
        self.blocks.record(landed.signature)
        self.history.add(landed)
        for observer in self.observers:
            observer.transaction_landed(landed, changed)

    def _is_recent(self, transaction: VersionedTransaction) -> bool:
        last = self.blocks.last_valid_height(transaction.message.recent_blockhash)
        return last is not None and self.height <= last

    def _timestamp(self, slot: int) -> int:
        elapsed = slot * self.config.slot_milliseconds // _MILLISECONDS
        return self.config.genesis_unix_timestamp + elapsed

    def _after_time_moved(self) -> None:
        self._write_sysvars()
        for observer in self.observers:
            observer.slot_opened(self.slot, self.blocks.open.parent)

    def _write_sysvars(self) -> None:
        clock = self._svm.get_clock()
        clock.slot = self.slot
        clock.epoch = self.slot // SLOTS_PER_EPOCH
        clock.leader_schedule_epoch = clock.epoch + 1
        clock.epoch_start_timestamp = self._timestamp(clock.epoch * SLOTS_PER_EPOCH)
        clock.unix_timestamp = self.blocks.open.unix_timestamp
        self._svm.set_clock(clock)
        self._svm.set_slot_hashes(self.blocks.slot_hashes())
