"""The chain as one participant reads and changes it.

Owns: the identity that signs, the addresses of the run, looks through the watcher, and sends.
Never: decides what to send.
Next: `watch.py`; `troth_coordinator/chain/client.py` does the work.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeVar

from solders.instruction import Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_client.network.errors import out_of_ring
from troth_client.network.fee_funds import FeeFunds, Rank, rank_of
from troth_client.network.round_log import RoundLog
from troth_client.network.sends import Due, Follower, Left, phase_left
from troth_client.network.watch import ChainWatcher
from troth_client.runtime.base import Runtime
from troth_client.telemetry.events import EventSink
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import ConfirmedTransaction, CoordinatorClient
from troth_coordinator.chain.errors import (
    REFUSALS,
    InsufficientFundsError,
    ProgramRefusedError,
    Refusal,
)
from troth_coordinator.chain.rpc_health import MAX_LAG_SLOTS
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.ids import Address, Digest, ParticipantIndex
from troth_coordinator.rules.view import NetworkView, ParticipantView, RoundFlag, RoundView

T = TypeVar("T")

OUTSIDE: Final = ParticipantIndex(2**16 - 1)
"""The index of a participant that has not joined yet: no bit of any bitmap is its own."""


@dataclass(frozen=True)
class Identity:
    """The identity of a participant: owner address, session key, index in the roster."""

    owner: Pubkey
    session: Keypair
    index: ParticipantIndex

    @property
    def owner_address(self) -> Address:
        """The owner as raw bytes."""
        return Address(bytes(self.owner))

    @cached_property
    def session_key(self) -> Pubkey:
        """The session's public key, which solders would derive anew for each caller."""
        return self.session.pubkey()

    @cached_property
    def session_address(self) -> Address:
        """The session's public key as raw bytes."""
        return Address(bytes(self.session_key))

    @property
    def session_seed(self) -> bytes:
        """The 32-byte ed25519 seed that signs headers."""
        return bytes(self.session)[:32]


@dataclass(frozen=True, slots=True)
class RunChain:
    """One run on chain, as one participant reads it and signs for it."""

    client: CoordinatorClient
    at: RunAddresses
    genesis_hash: Digest
    identity: Identity
    watch: ChainWatcher
    runtime: Runtime
    events: EventSink
    log: RoundLog = field(default_factory=RoundLog, compare=False)
    sends: set["asyncio.Task[Any]"] = field(default_factory=set, compare=False)
    funds: FeeFunds = field(default_factory=FeeFunds, compare=False)

    @property
    def run(self) -> Address:
        """The run's address as raw bytes, as every hash takes it."""
        return Address(bytes(self.at.run))

    @property
    def index(self) -> ParticipantIndex:
        """The participant's index in the roster."""
        return self.identity.index

    def is_in(self, indices: int) -> bool:
        """Tell whether our bit is set in a bitmap of indices; it never is before we have joined."""
        return self.index != OUTSIDE and bitmap.has(indices, self.index)

    @property
    def payer(self) -> Pubkey:
        """The session's public key, which signs and pays."""
        return self.identity.session_key

    async def look(self) -> NetworkView:
        """Return a fresh view of the chain."""
        return await self.watch.look()

    async def recent(self) -> NetworkView:
        """Return a view that is good enough for waiting."""
        return await self.watch.recent()

    async def until(self, holds: Callable[[NetworkView], bool]) -> NetworkView:
        """Return the first view for which `holds` is true."""
        return await self.watch.until(holds)

    async def send(
        self, *instructions: Instruction, due: Due | None = None, is_in_view: bool = True
    ) -> ConfirmedTransaction:
        """Send instructions in one transaction. Raises TransactionError, RpcError.

        Raises InsufficientFundsError if that would leave too little for what matters more
        (`fee_funds.py`).

        `due` ends the repetitions of a send that is of no use any more, and says how much of its
        time is left. Where it says so, a second landing must change nothing. `is_in_view`: it
        changes what a view shows, so the next one is a fresh one.
        """
        self._check_funds(instructions)
        follower = Follower(self.events, instructions, due or Due(), self._newest)
        sent = await self.client.send(list(instructions), [self.identity.session], follower)
        if is_in_view:
            self.watch.expect_change()
        follower.landed()
        self.funds.pay(sent.fee_lamports)
        return sent

    async def send_carrying(
        self, instruction: Instruction, carried: Sequence[Instruction], due: Due
    ) -> ConfirmedTransaction:
        """Send an instruction with others that may arrive too late. Raises as `send`."""
        self._check_funds([instruction])
        if not self.funds.allows(Rank.HOUSE):
            carried = []
        follower = Follower(self.events, [instruction, *carried], due, self._newest)
        signers = [self.identity.session]
        sent = await self.client.send_carrying([instruction], carried, signers, follower)
        follower.landed()
        self.funds.pay(sent.fee_lamports)
        return sent

    def _check_funds(self, instructions: Sequence[Instruction]) -> None:
        if self.funds.spendable is not None and not self.funds.allows(rank_of(instructions)):
            found = f"{self.funds.spendable} lamports, which are kept for what matters more"
            raise InsufficientFundsError(str(self.payer), found)

    def _newest(self) -> NetworkView:
        return self.watch.latest

    async def finish(self, send: Coroutine[Any, Any, T]) -> T:
        """Do a send and what follows from it to the end, even if the caller is cancelled meanwhile.

        A transaction may have landed already: its event and fee must not be lost.
        """
        task = self._begin_send(send)
        await self.runtime.wait_for_others(task)
        return task.result()

    async def send_while(
        self,
        is_useful: Callable[[NetworkView], bool],
        send: Callable[[Due], Coroutine[Any, Any, T]],
        left: Left | None = None,
    ) -> T | None:
        """Do a send in an asyncio task of its own; wait for it while a view says it is of use.

        `left`: how much of the time in which it must land a view shows as left.

        Returns None once the send is of no use: an RPC node that swallows transactions holds up
        nobody. The send then ends by itself, without repetitions, and reports its outcome.
        """
        due, since = Due(left=left), self.watch.slot
        task = self._begin_send(send(due))
        while not task.done():
            upcoming = self.watch.upcoming()
            await self.runtime.wait_for_others(task, upcoming)
            if task.done() or not upcoming.done():
                continue
            view = upcoming.result()
            # An RPC node that lags shows the moment before the one that made the send due.
            lags = 0 < since - view.slot <= MAX_LAG_SLOTS
            if not lags and not is_useful(view):
                due.is_due = False
                task.add_done_callback(self._report_send)
                return None
        return task.result()

    async def send_awaited(
        self,
        is_awaited: Callable[[NetworkView], bool],
        send: Callable[[Due], Coroutine[Any, Any, None]],
        refused: Callable[[Refusal], None],
    ) -> None:
        """Send as `send_while` what a phase waits for, and again where the program refuses it.

        The RPC node that checks it may lag behind the one that was read. A refusal is told to
        `refused` once it is final: later views wait for nothing, or MAX_LAG_SLOTS have passed.
        """

        async def once(due: Due) -> ProgramRefusedError | None:
            try:
                await send(due)
            except REFUSALS as error:
                if due.is_due and isinstance(error, ProgramRefusedError):
                    return error
                refused(error)
            return None

        since = self.watch.slot
        while error := await self.send_while(is_awaited, once, left=phase_left):
            view = await self.watch.next()
            if not is_awaited(view) or view.slot > since + MAX_LAG_SLOTS:
                refused(error)
                return

    def _begin_send(self, send: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = self.runtime.start(send, "send")
        self.sends.add(task)
        task.add_done_callback(self._forget_send)
        return task

    def _report_send(self, task: "asyncio.Task[Any]") -> None:
        """Report the failure of a send for which nobody waits any more."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.events.emit("send_failed", reason=str(error))

    async def all_sent(self) -> None:
        """Wait for the sends under way; each gives up by itself."""
        # One that has ended may still be listed: waiting for it would return at once, for ever.
        while under_way := [send for send in self.sends if not send.done()]:
            await self.runtime.wait_for_others(*under_way)

    def _forget_send(self, task: "asyncio.Task[Any]") -> None:
        self.sends.discard(task)
        if not task.cancelled():
            task.exception()  # seen here: the one that waited may be gone

    async def read_round(self, round_: int) -> RoundView | None:
        """Return a round account as it is now; None when the ring does not hold it."""
        (found,) = await self.read_rounds([round_])
        return found

    async def read_rounds(self, rounds: Sequence[int]) -> list[RoundView | None]:
        """Return the accounts of several rounds."""
        return await self.client.read_rounds(self.at.run, rounds)

    async def rounds_of(self, view: NetworkView, rounds: Sequence[int]) -> list[RoundView | None]:
        """Return rounds as the view shows them where it does, and read the others."""
        known: dict[int, RoundView | None] = {
            one.round: one for one in (view.round, view.previous_round) if one is not None
        }
        unread = [number for number in rounds if number not in known]
        if unread:
            known |= zip(unread, await self.read_rounds(unread), strict=True)
        return [known[number] for number in rounds]

    async def read_participants(self, owners: Sequence[Pubkey]) -> list[ParticipantView | None]:
        """Return the accounts of several owners, None for those without."""
        return await self.client.read_participants(self.at.run, owners)

    async def read_closed(self, view: NetworkView, round_: int) -> RoundView:
        """Return a round that `view` shows as over, once the RPC node shows it closed.

        Several RPC nodes behind one address may lag behind each other. A round that has left the
        ring may be in the log. Raises LaggingError when it is in neither.
        """
        while True:
            (found,) = await self.rounds_of(view, [round_])
            if found is not None and found.flags & RoundFlag.CLOSED:
                return found
            if view.run.round >= round_ + view.run.params.ring:
                if round_ in self.log.rounds:
                    return self.log.rounds[round_]
                raise out_of_ring(round_, view)
            view = await self.watch.next()
