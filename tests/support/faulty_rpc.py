"""A node between the client and a real chain that loses, delays and repeats things."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from solders.hash import Hash
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction

from troth_coordinator.chain.errors import RpcUnreachableError, TransactionRejectedError
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.chain.rpc import Account, Status, TransactionRecord
from troth_localnet.direct import DirectRpc
from troth_localnet.svm import Chain

Fault = Callable[[int], bool]
"""Whether the call with this number (from 0) goes wrong."""


def never(_call: int) -> bool:
    return False


def always(_call: int) -> bool:
    return True


def first(count: int) -> Fault:
    return lambda call: call < count


@dataclass
class Faults:
    """The faults; every field takes the number of the call of its kind.

    - lose: the node takes the bytes and drops them.
    - cut: the bytes arrive, the answer does not.
    - unreachable: no connection for sending.
    - blind: statuses know nothing.
    - mute: statuses fail.
    - early: statuses are only `processed` so far, so a fork may still undo them.
    - stale: an expired blockhash is returned.
    - raw: preflight is skipped.
    - forget: no records.
    - unpriced: recent fees are not known.
    - refuse: the bytes arrive, and the node says that it refused them.
    - hashless: no blockhash is known.
    - past: accounts are shown as they were when they were first read.
    """

    lose: Fault = never
    cut: Fault = never
    unreachable: Fault = never
    blind: Fault = never
    mute: Fault = never
    early: Fault = never
    stale: Fault = never
    raw: Fault = never
    forget: Fault = never
    unpriced: Fault = never
    refuse: Fault = never
    hashless: Fault = never
    past: Fault = never
    num_calls: dict[str, int] = field(default_factory=dict)

    def strikes(self, name: str) -> bool:
        call = self.num_calls.get(name, 0)
        self.num_calls[name] = call + 1
        return bool(getattr(self, name)(call))


class FaultyRpc(DirectRpc):
    """DirectRpc with faults; `sent` lists the signatures of every submission."""

    def __init__(self, chain: Chain, faults: Faults | None = None) -> None:
        super().__init__(chain)
        self.faults = faults or Faults()
        self.sent: list[Signature] = []
        self._first_read: dict[Pubkey, Account | None] = {}

    def forget_reads(self) -> None:
        """Let `past` show accounts as they are at the next read."""
        self._first_read.clear()

    async def send(self, raw: bytes, *, skip_preflight: bool = False) -> Signature:
        signature = VersionedTransaction.from_bytes(raw).signatures[0]
        self.sent.append(signature)
        if self.faults.strikes("unreachable"):
            raise RpcUnreachableError("faulty", "no connection")
        if self.faults.strikes("lose"):
            return signature
        skip = skip_preflight or self.faults.strikes("raw")
        await super().send(raw, skip_preflight=skip)
        if self.faults.strikes("cut"):
            raise RpcUnreachableError("faulty", "the answer was lost")
        if self.faults.strikes("refuse"):
            raise TransactionRejectedError(TransactionFailure("InsufficientFundsForFee"))
        return signature

    async def statuses(
        self, signatures: Sequence[Signature], *, search_history: bool = False
    ) -> list[Status | None]:
        if self.faults.strikes("mute"):
            raise RpcUnreachableError("faulty", "no connection")
        if self.faults.strikes("blind"):
            return [None] * len(signatures)
        found = await super().statuses(signatures, search_history=search_history)
        if self.faults.strikes("early"):
            return [status and replace(status, finality="processed") for status in found]
        return found

    async def latest_blockhash(self) -> tuple[Hash, int]:
        if self.faults.strikes("stale"):
            return Hash.hash(b"long gone"), self.chain.height - 1
        if self.faults.strikes("hashless"):
            raise RpcUnreachableError("faulty", "no blockhash")
        return await super().latest_blockhash()

    async def get_accounts(self, addresses: Sequence[Pubkey]) -> tuple[int, list[Account | None]]:
        slot, found = await super().get_accounts(addresses)
        for address, account in zip(addresses, found, strict=True):
            self._first_read.setdefault(address, account)
        if self.faults.strikes("past"):
            found = [self._first_read[address] for address in addresses]
        return slot, found

    async def transaction(self, signature: Signature) -> TransactionRecord | None:
        if self.faults.strikes("forget"):
            return None
        return await super().transaction(signature)

    async def recent_fees(self, accounts: Sequence[Pubkey]) -> list[int]:
        if self.faults.strikes("unpriced"):
            raise RpcUnreachableError("faulty", "no fees")
        return await super().recent_fees(accounts)
