"""`SharingRpc`: what several sends ask of a node, asked once.

Owns: one blockhash and the recent fees for all sends of some seconds, and one poll for the statuses
of all that are under way.
Never: repeats or judges; all else is passed on.
Next: sender.py, which asks; failover.py, which is asked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

from solders.hash import Hash
from solders.pubkey import Pubkey
from solders.signature import Signature

from troth_coordinator.chain.errors import TransactionRejectedError
from troth_coordinator.chain.rpc import (
    Account,
    BytesAt,
    Listed,
    Rpc,
    Simulation,
    Status,
    TransactionRecord,
)

HASH_POLLS: Final = 60
"""A blockhash is used for so many polls: two fifths of its life at public slot time."""
HEIGHT_POLLS: Final = 10
FEE_POLLS: Final = 64
"""Recent fees are those of the last 150 slots: an answer is used for less than half of that."""
STATUS_POLLS: Final = 2
"""A node is asked about a transaction every so many polls; the first time one poll after it was
sent, because a public network needs two slots."""
MAX_STATUSES: Final = 256
"""getSignatureStatuses takes at most this many."""
FORGET_POLLS: Final = 50
"""A signature that nobody has asked about for so long is under way no more."""

_T = TypeVar("_T")


class _Kept(Generic[_T]):
    """An answer that is good for some seconds."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = seconds, clock
        self._answer: _T | None = None
        self._at = 0.0
        self._asking = asyncio.Lock()

    async def get(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        """Return the kept answer, or ask for a new one; callers at the same time share it."""
        async with self._asking:
            now = self._clock()
            if self._answer is None or now - self._at >= self._seconds:
                self._answer, self._at = await ask(), now
            return self._answer

    def drop(self) -> None:
        """Ask anew next time."""
        self._answer = None


class SharingRpc:
    """An `Rpc` for senders over another one; clock in seconds."""

    def __init__(
        self, rpc: Rpc, poll_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rpc = rpc
        self._clock = clock
        self._blockhash = _Kept[tuple[Hash, int]](HASH_POLLS * poll_seconds, clock)
        self._height = _Kept[int](HEIGHT_POLLS * poll_seconds, clock)
        self._fees = _Kept[list[int]](FEE_POLLS * poll_seconds, clock)
        self._gap_seconds = STATUS_POLLS * poll_seconds
        self._forget_seconds = FORGET_POLLS * poll_seconds
        self._under_way: dict[Signature, _Watched] = {}

    async def latest_blockhash(self) -> tuple[Hash, int]:
        """See Rpc.latest_blockhash; at most some polls old, and not one that was refused."""
        return await self._blockhash.get(self._rpc.latest_blockhash)

    async def block_height(self) -> int:
        """See Rpc.block_height; at most some polls old."""
        return await self._height.get(self._rpc.block_height)

    async def send(self, raw: bytes, *, skip_preflight: bool = False) -> Signature:
        """See Rpc.send."""
        try:
            signature = await self._rpc.send(raw, skip_preflight=skip_preflight)
        except TransactionRejectedError as error:
            if error.failure.kind == "BlockhashNotFound":
                self._blockhash.drop()
            raise
        self._watched(signature, self._clock() - self._gap_seconds / STATUS_POLLS)
        return signature

    async def statuses(
        self, signatures: Sequence[Signature], *, search_history: bool = False
    ) -> list[Status | None]:
        """See Rpc.statuses. Without the history: as the last shared poll shows them."""
        if search_history:
            self._blockhash.drop()  # one of them may have expired
            return await self._rpc.statuses(signatures, search_history=True)
        now = self._clock()
        wanted = [self._watched(one, now - self._gap_seconds) for one in signatures]
        for watched in wanted:
            watched.wanted_at = now
        if any(now - watched.asked_at >= self._gap_seconds for watched in wanted):
            await self._poll(now)
        return [watched.status for watched in wanted]

    def _watched(self, signature: Signature, asked_at: float) -> _Watched:
        return self._under_way.setdefault(signature, _Watched(asked_at, self._clock()))

    async def _poll(self, now: float) -> None:
        """Ask about all that are under way, and forget those about which nobody asks any more."""
        for one, watched in list(self._under_way.items()):
            if now - watched.wanted_at >= self._forget_seconds:
                del self._under_way[one]
        asked = {one: each for one, each in self._under_way.items() if each.status is None}
        newest = dict(list(asked.items())[-MAX_STATUSES:])
        for watched in newest.values():
            watched.asked_at = now
        try:
            found = await self._rpc.statuses(list(newest))
        except BaseException:
            for watched in newest.values():
                watched.asked_at = now - self._gap_seconds  # nothing was learnt
            raise
        for watched, status in zip(newest.values(), found, strict=True):
            if status is not None and status.finality != "processed":
                watched.status = status

    async def get_slot(self) -> int:
        """See Rpc.get_slot."""
        return await self._rpc.get_slot()

    async def get_accounts(self, addresses: Sequence[Pubkey]) -> tuple[int, list[Account | None]]:
        """See Rpc.get_accounts."""
        return await self._rpc.get_accounts(addresses)

    async def get_program_accounts(
        self, program: Pubkey, filters: Sequence[int | BytesAt]
    ) -> list[tuple[Pubkey, Account]]:
        """See Rpc.get_program_accounts."""
        return await self._rpc.get_program_accounts(program, filters)

    async def simulate(self, raw: bytes) -> Simulation:
        """See Rpc.simulate."""
        return await self._rpc.simulate(raw)

    async def recent_fees(self, accounts: Sequence[Pubkey]) -> list[int]:
        """See Rpc.recent_fees; some polls old, and perhaps those of another send's accounts.

        All sends of a participant write to the same run, for which everybody competes.
        """
        return await self._fees.get(lambda: self._rpc.recent_fees(accounts))

    async def transaction(self, signature: Signature) -> TransactionRecord | None:
        """See Rpc.transaction."""
        return await self._rpc.transaction(signature)

    async def signatures(
        self, address: Pubkey, *, before: Signature | None = None, until: Signature | None = None
    ) -> list[Listed]:
        """See Rpc.signatures."""
        return await self._rpc.signatures(address, before=before, until=until)

    async def slot_micros(self) -> int | None:
        """See Rpc.slot_micros."""
        return await self._rpc.slot_micros()

    async def genesis_hash(self) -> bytes:
        """See Rpc.genesis_hash."""
        return await self._rpc.genesis_hash()

    async def request_airdrop(self, address: Pubkey, lamports: int) -> Signature:
        """See Rpc.request_airdrop."""
        return await self._rpc.request_airdrop(address, lamports)


class _Watched:
    """A signature under way: when a node was asked about it, and somebody asked us."""

    def __init__(self, asked_at: float, wanted_at: float) -> None:
        self.asked_at, self.wanted_at = asked_at, wanted_at
        self.status: Status | None = None
