"""The port to a Solana node: what we ask of one, as a protocol with frozen answers.

Owns: the `Rpc` protocol and its records. Everything is read at commitment `confirmed`.
Never: opens a socket, parses JSON or imports an RPC library.
Next: http_rpc.py implements it over HTTP; troth_localnet.direct implements it in process;
client.py is its only user in the packages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from solders.hash import Hash
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.system_program import ID as SYSTEM_PROGRAM

from troth_coordinator.chain import base58
from troth_coordinator.chain.failure import TransactionFailure

Finality = Literal["processed", "confirmed", "finalized"]

MAX_ACCOUNTS_PER_CALL = 100
"""getMultipleAccounts answers at most this many keys."""
MAX_SLOT: Final = 2**63 - 1
"""No chain gets to a later slot. Windows and pauses can be added to it within 64 bits."""
MAX_FEE_ACCOUNTS = 128
"""getRecentPrioritizationFees takes at most this many keys."""


@dataclass(frozen=True, slots=True)
class Account:
    """One account as the chain stores it."""

    lamports: int
    owner: Pubkey
    data: bytes
    executable: bool = False

    @property
    def is_bare(self) -> bool:
        """Whether it has lamports and nothing else.

        It is a wallet, or an address to which somebody has sent lamports before a program made its
        account there, or after the account was closed: anybody can.
        """
        return self.owner == SYSTEM_PROGRAM and not self.data


def made_by_program(account: Account | None) -> Account | None:
    """Return an account that a program has made: lamports that anybody sent there make none."""
    return None if account is None or account.is_bare else account


@dataclass(frozen=True, slots=True)
class Status:
    """A signature as the node knows it. `failure` is None when the transaction succeeded."""

    slot: int
    failure: TransactionFailure | None
    finality: Finality


@dataclass(frozen=True, slots=True)
class Listed:
    """A transaction in the list of an address."""

    signature: Signature
    slot: int
    has_failed: bool


@dataclass(frozen=True, slots=True)
class InnerCall:
    """An instruction that a program sent: to which program, with which accounts and bytes.

    written: the bytes, or their base58 as a node wrote it. Strangers make it long, and its cost is
    quadratic: ask for `data` only where program and accounts are those that are looked for.
    """

    program: Pubkey
    accounts: tuple[Pubkey, ...]
    written: bytes | str

    @property
    def data(self) -> bytes:
        """The bytes. Raises ValueError for other text than base58, or too much."""
        return self.written if isinstance(self.written, bytes) else base58.decode(self.written)


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """A transaction that landed: fee in lamports, compute units spent, program log lines.

    inner_calls: in order of execution, those of all depths; None where the node keeps none. Those
    of a failed transaction count for nothing, and may be left out.
    """

    slot: int
    failure: TransactionFailure | None
    logs: tuple[str, ...]
    fee_lamports: int
    compute_units: int
    inner_calls: tuple[InnerCall, ...] | None


BEHIND_CODE: Final = -32_016
"""The code of an RpcRefusedError where a node has not reached a slot that was seen before."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """The outcome that a transaction would have now. `failure` is None where it would succeed."""

    failure: TransactionFailure | None
    logs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BytesAt:
    """A filter of get_program_accounts: account data holds `value` at byte `offset`."""

    offset: int
    value: bytes


class Rpc(Protocol):
    """A node. Every method may raise RpcUnreachableError, RpcRefusedError, MalformedReplyError."""

    async def get_slot(self) -> int:
        """Return the newest confirmed slot."""
        ...

    async def block_height(self) -> int:
        """Return the number of confirmed blocks below the newest; blockhashes expire by it."""
        ...

    async def get_accounts(self, addresses: Sequence[Pubkey]) -> tuple[int, list[Account | None]]:
        """Read up to 100 accounts at one slot; the slot comes first, None stands for no account."""
        ...

    async def get_program_accounts(
        self, program: Pubkey, filters: Sequence[int | BytesAt]
    ) -> list[tuple[Pubkey, Account]]:
        """All accounts of a program; an int filters by data size, BytesAt by content."""
        ...

    async def latest_blockhash(self) -> tuple[Hash, int]:
        """Return a blockhash and the last block height at which a transaction with it can land."""
        ...

    async def send(self, raw: bytes, *, skip_preflight: bool = False) -> Signature:
        """Hand a signed transaction to the node, which forwards it: no word on whether it lands.

        Raises TransactionRejectedError when preflight refuses it, and RpcRefusedError with
        BEHIND_CODE when that would be at a slot before one that was seen.
        """
        ...

    async def simulate(self, raw: bytes) -> Simulation:
        """Return what a signed transaction would do now; nothing is sent on or changed."""
        ...

    async def statuses(
        self, signatures: Sequence[Signature], *, search_history: bool = False
    ) -> list[Status | None]:
        """Status per signature, None where the node knows none.

        Without search_history only recent ones (about 150 blocks) are looked up.
        """
        ...

    async def transaction(self, signature: Signature) -> TransactionRecord | None:
        """Return the record of a confirmed transaction, or None while the node has none.

        Raises UnreadableRecordError for one of no known shape.
        """
        ...

    async def signatures(
        self, address: Pubkey, *, before: Signature | None = None, until: Signature | None = None
    ) -> list[Listed]:
        """Return up to 1000 transactions that name an address, failed ones too, newest first.

        `before` asks for those older than that one, `until` for those newer: a node that does not
        know `until` leaves it out. Nodes may have forgotten old ones.
        """
        ...

    async def recent_fees(self, accounts: Sequence[Pubkey]) -> list[int]:
        """Return for each recent block the least price that was paid to write these accounts.

        In micro-lamports per compute unit, for up to 128 accounts; 0 for a block with room.
        """
        ...

    async def slot_micros(self) -> int | None:
        """Return the average length of the last slots in microseconds, None if not yet known."""
        ...

    async def genesis_hash(self) -> bytes:
        """Return the 32 bytes that name the network; headers carry them against replay."""
        ...

    async def request_airdrop(self, address: Pubkey, lamports: int) -> Signature:
        """Ask for free lamports (localnet, devnet)."""
        ...
