"""Sending until it is known: landed once, refused, or expired. Never twice.

Owns: blockhashes, resending, polling for `confirmed`, telling a repetition from a refusal, and
`ConfirmedTransaction`, which nothing else can make.
Never: chooses what to send, or when.
Next: client.py, which offers one coroutine per instruction on top of it.

    sign under a fresh blockhash -> send -> poll the signatures of all attempts so far
        landed and succeeded        -> done, under whichever signature it was
        landed and failed           -> named error
        refused by preflight        -> done if an earlier attempt landed, else named error
        node behind the newest slot -> send the same bytes again at the next poll
        blockhash too old           -> next attempt, once a node says that this one did not land
        node silent                 -> send the same bytes again until their blockhash expires
        window closing              -> sign anew for a higher price: the program takes one of them
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from solders.hash import Hash
from solders.instruction import Instruction
from solders.keypair import Keypair
from solders.signature import Signature

from troth_coordinator.chain.attempts import Alone, Attempts, SendState, SendWatch
from troth_coordinator.chain.codec import ProgramCodec
from troth_coordinator.chain.errors import (
    BlockhashExpiredError,
    ChainError,
    RpcError,
    RpcRefusedError,
    TransactionRejectedError,
    UnconfirmedError,
)
from troth_coordinator.chain.events import Event, EventReader
from troth_coordinator.chain.pricing import Pricing
from troth_coordinator.chain.program_errors import sort_failure
from troth_coordinator.chain.rpc import BEHIND_CODE, Rpc, Simulation, Status, TransactionRecord
from troth_coordinator.chain.transactions import (
    FEE_PER_SIGNATURE_LAMPORTS,
    MAX_SPARE_UNITS,
    ComputeBudget,
    SignedTransaction,
    assemble,
)

Sleeper = Callable[[float], Awaitable[None]]
"""Waits some seconds; tests pass one that steps the chain instead."""

OUTBID = 2
"""A send under way is signed anew only for so many times its price."""
LAG_POLLS = 40
"""Eight seconds: a node that lags has caught up after so many polls."""
_SEAL = object()


@dataclass(frozen=True, slots=True)
class ConfirmedTransaction:
    """Proof that a transaction landed and succeeded at `confirmed`; only Sender makes it.

    events: those of the program, in order. is_complete: False when nobody wanted the record, or
    the node had none, or one without inner calls: then events are missing. Without a record
    compute_units is 0, and the fee is what the chain charges for the signature that landed.
    """

    signature: Signature
    slot: int
    fee_lamports: int
    compute_units: int
    events: tuple[Event, ...]
    is_complete: bool
    seal: object = None

    def __post_init__(self) -> None:
        if self.seal is not _SEAL:
            raise ChainError(
                "ConfirmedTransaction",
                "to be made by sending a transaction",
                "a direct construction",
                "call CoordinatorClient.send",
            )


@dataclass(frozen=True, slots=True)
class SendPolicy:
    """The patience of a sender. Defaults suit a public network of 0.4 s slots.

    max_attempts: blockhashes used, each good for about 150 slots. resend_every: polls between
    repetitions of the same bytes. height_every: polls between looks at the block height.
    max_polls: per attempt; beyond it the chain is taken to stand still. record_polls: how often
    the record of a landed transaction is asked for. undue_pace: how many times longer polls last
    once the send is of no use, so that many of them load no node. outbid_after: polls that a
    signature gets before it is outbid because time is short.
    """

    poll_seconds: float = 0.2
    max_attempts: int = 4
    resend_every: int = 10
    height_every: int = 5
    max_polls: int = 1500
    record_polls: int = 25
    undue_pace: int = 8
    outbid_after: int = 4


class Sender:
    """Sends instructions over an Rpc; see the module docstring for the rule."""

    def __init__(
        self,
        rpc: Rpc,
        codec: ProgramCodec,
        *,
        budget: ComputeBudget | None = None,
        policy: SendPolicy | None = None,
        pricing: Pricing | None = None,
        sleeper: Sleeper = asyncio.sleep,
    ) -> None:
        self._rpc = rpc
        self._codec = codec
        self._events = EventReader(codec)
        self._budget = budget or ComputeBudget.packaged(codec)
        self._policy = policy or SendPolicy()
        self._pricing = pricing or Pricing(rpc)
        self._sleeper = sleeper
        self._num_sent = 0

    async def send(
        self,
        instructions: Sequence[Instruction],
        signers: Sequence[Keypair],
        watch: SendWatch | None = None,
    ) -> ConfirmedTransaction:
        """Send one transaction and wait until it is confirmed. The first signer pays.

        Once `watch` says that it is not due any more, it is neither repeated nor signed anew. A
        payment that lands twice pays twice, and an RPC node may hide the first: `Once` prevents it.
        Raises ProgramRefusedError, InsufficientFundsError, TransactionFailedError and the like for
        a transaction that cannot succeed, BlockhashExpiredError when no attempt landed,
        UnconfirmedError when nothing can be known, MissingSignerError and TransactionTooLargeError
        before anything is sent.
        """
        # Two equal transactions under one blockhash are one to the chain, which would swallow the
        # second of two deliberate payments; a few spare compute units tell them apart.
        self._num_sent += 1
        spare_units = self._num_sent % (MAX_SPARE_UNITS + 1)
        attempts = Attempts(instructions, signers, spare_units, watch or Alone())
        try:
            return await self._confirmed(attempts, *await self._land_once(attempts))
        finally:
            # A signature that may have landed, or may land yet, counts as paid: the cap holds.
            held = sum(attempts.held.values())
            self._pricing.epoch.settle(held, 0 if attempts.is_refused else held)

    async def _land_once(self, attempts: Attempts) -> tuple[Signature, Status]:
        """Sign under one blockhash after another until an attempt has landed."""
        for _attempt in range(self._policy.max_attempts):
            price = await self._price(attempts)
            blockhash = await self._rpc.latest_blockhash()
            if not attempts.watch.may_sign():
                break
            self._sign(attempts, blockhash, price)
            attempts.is_sent, attempts.num_unknown = False, 0
            landed = await self._land(attempts)
            if landed is not None:
                return landed
            self._release(attempts)
            if not attempts.watch.is_due:
                break
            await self._sleeper(self._policy.poll_seconds)
        raise BlockhashExpiredError(attempts.num_blockhashes)

    async def simulate(
        self, instructions: Sequence[Instruction], signers: Sequence[Keypair]
    ) -> None:
        """Ask whether a transaction would succeed now; nothing is sent.

        Raises what `send` would raise for a transaction that cannot succeed, and RpcError.
        """
        blockhash = await self._rpc.latest_blockhash()
        signed = assemble(instructions, signers, blockhash, self._budget)
        found = await self._simulated(signed.raw)
        if found.failure is not None:
            refused = TransactionRejectedError(found.failure, found.logs)
            attempts = Attempts(instructions, signers, 0, Alone(), latest=signed)
            raise self._sorted(attempts, refused, landed=False)

    async def _simulated(self, raw: bytes) -> Simulation:
        for _poll in range(LAG_POLLS):
            try:
                return await self._rpc.simulate(raw)
            except RpcRefusedError as error:
                if error.code != BEHIND_CODE:
                    raise
            await self._sleeper(self._policy.poll_seconds)
        return await self._rpc.simulate(raw)

    def _release(self, attempts: Attempts) -> None:
        """Forget what was set aside for signatures that did not land and cannot any more."""
        self._pricing.epoch.settle(sum(attempts.held.values()), 0)
        attempts.held.clear()

    async def _price(self, attempts: Attempts) -> int:
        units = self._budget.limit(attempts.instructions) + attempts.spare_units
        return await self._pricing.price(attempts.instructions, units, attempts.urgency)

    def _sign(self, attempts: Attempts, blockhash: tuple[Hash, int], price: int) -> None:
        budget = replace(self._budget, micro_lamports_per_unit=price)
        parts = attempts.instructions, attempts.signers
        signed = assemble(*parts, blockhash, budget, attempts.spare_units)
        attempts.latest, attempts.price, attempts.level = signed, price, attempts.urgency
        attempts.signed_at = attempts.num_polls
        attempts.num_blockhashes += 1
        if signed.signature not in attempts.signatures:
            attempts.signatures.append(signed.signature)
            attempts.held[signed.signature] = self._pricing.hold(price, signed.num_units)

    def _is_late(self, attempts: Attempts) -> bool:
        """Tell whether the time of a send has grown short since it was signed, some polls ago."""
        num_polls = attempts.num_polls - attempts.signed_at
        return attempts.urgency > attempts.level and num_polls >= self._policy.outbid_after

    async def _repeat(self, attempts: Attempts) -> bool:
        """Send again; False when the blockhash is too old. With a window, perhaps at a new price.

        It is signed anew only for OUTBID times the price: of two signatures both may land.
        """
        is_new, price = False, 0
        if attempts.watch.window_left is not None:
            price = await self._price(attempts)
            attempts.level = attempts.urgency
        if price >= max(1, OUTBID * attempts.price) and attempts.watch.is_due:
            try:
                blockhash = await self._rpc.latest_blockhash()
                is_new = attempts.watch.may_sign()
                if is_new:
                    self._sign(attempts, blockhash, price)
            except RpcError as error:
                attempts.last_error = error
        # A node that lags may not know a new blockhash; the earlier signature may land still.
        return await self._submit(attempts) or is_new

    async def _land(self, attempts: Attempts) -> tuple[Signature, Status] | None:
        """Bring one signed transaction onto the chain; None when its blockhash has expired."""
        policy = self._policy
        is_open = await self._submit(attempts)
        for poll in range(policy.max_polls):
            is_known, found = await self._look(attempts, search_history=not is_open)
            # An expired one that no node could be asked about may have landed: ask again.
            if found is not None or (is_known and not is_open):
                return found
            pace = 1 if attempts.watch.is_due else policy.undue_pace
            await self._sleeper(policy.poll_seconds * pace)
            attempts.num_polls += pace
            if is_open and poll % policy.height_every == policy.height_every - 1:
                is_open = not await self._has_expired(attempts.signed)
            is_repeated = poll % policy.resend_every == policy.resend_every - 1
            if is_repeated:
                attempts.watch.waiting(self._state(attempts))
            is_repeated = is_repeated or attempts.is_behind or self._is_late(attempts)
            if is_open and attempts.watch.is_due and is_repeated:
                is_open = await self._repeat(attempts)
        raise UnconfirmedError(str(attempts.signed.signature), attempts.last_error)

    async def _submit(self, attempts: Attempts) -> bool:
        """Hand the bytes to the node; False when their blockhash is too old to try further.

        A silent node is no answer: the bytes may be on their way, so polling decides.
        """
        attempts.num_tries += 1
        attempts.is_behind = False
        try:
            await self._rpc.send(attempts.signed.raw)
        except TransactionRejectedError as error:
            if error.failure.kind == "BlockhashNotFound":
                return await self._is_unknown_yet(attempts)
            if error.failure.kind == "AlreadyProcessed":
                return True
            # The refusal may be the echo of our own success, here or under an earlier signature.
            _is_known, found = await self._look(attempts, search_history=True)
            if found is None:
                attempts.is_refused = len(attempts.held) == 1
                raise self._sorted(attempts, error, landed=False) from error
        except RpcError as error:
            code = error.code if isinstance(error, RpcRefusedError) else None
            attempts.is_behind = code == BEHIND_CODE
            if code not in (None, BEHIND_CODE) and not attempts.is_sent:
                attempts.is_refused = True
                raise
            attempts.last_error = error
        attempts.is_sent |= not attempts.is_behind
        return True

    async def _is_unknown_yet(self, attempts: Attempts) -> bool:
        """Tell whether a blockhash that a node does not know is too new for it, not too old.

        Bytes that were taken before may land for as long as their blockhash lives.
        """
        if await self._has_expired(attempts.signed):
            return False
        attempts.num_unknown += 1
        attempts.is_behind = attempts.num_unknown <= LAG_POLLS
        return attempts.is_behind or attempts.is_sent

    async def _look(
        self, attempts: Attempts, *, search_history: bool
    ) -> tuple[bool, tuple[Signature, Status] | None]:
        """Return whether a node answered, and the attempt that succeeded, else one that failed.

        Of several attempts a failed one may be the echo of another's success long ago, so the
        history is always searched then.
        """
        everywhere = search_history or len(attempts.signatures) > 1
        try:
            statuses = await self._rpc.statuses(attempts.signatures, search_history=everywhere)
        except RpcError as error:
            attempts.last_error = error
            return False, None
        attempts.last_error = None
        found = [
            (signature, status)
            for signature, status in zip(attempts.signatures, statuses, strict=True)
            if status is not None and status.finality != "processed"
        ]
        for signature, status in found:
            if status.failure is None:
                return True, (signature, status)
        return True, found[-1] if found else None

    def _state(self, attempts: Attempts) -> SendState:
        error, seconds = attempts.last_error, attempts.num_polls * self._policy.poll_seconds
        return SendState(
            attempts.num_tries,
            attempts.num_blockhashes,
            round(seconds, 1),
            "" if error is None else str(error),
        )

    async def _has_expired(self, signed: SignedTransaction) -> bool:
        try:
            return await self._rpc.block_height() > signed.last_valid_height
        except RpcError:
            return False

    async def _confirmed(
        self, attempts: Attempts, signature: Signature, status: Status
    ) -> ConfirmedTransaction:
        priority = attempts.held.get(signature)
        is_asked = attempts.watch.wants_record or priority is None or status.failure is not None
        record = await self._record(signature) if is_asked else None
        if status.failure is not None:
            logs = () if record is None else record.logs
            failed = TransactionRejectedError(status.failure, logs)
            raise self._sorted(attempts, failed, landed=True)
        base_fee = FEE_PER_SIGNATURE_LAMPORTS * attempts.signed.num_signatures
        base = ConfirmedTransaction(
            signature=signature,
            slot=status.slot,
            fee_lamports=base_fee + (priority or 0),
            compute_units=0,
            events=(),
            is_complete=False,
            seal=_SEAL,
        )
        if record is None:
            return base
        parsed = self._events.read(record)
        return replace(
            base,
            slot=record.slot,
            fee_lamports=record.fee_lamports,
            compute_units=record.compute_units,
            events=parsed.events,
            is_complete=parsed.is_complete,
        )

    async def _record(self, signature: Signature) -> TransactionRecord | None:
        """Fetch the record; a node may confirm a signature some moments before it can show it."""
        for _poll in range(self._policy.record_polls):
            try:
                record = await self._rpc.transaction(signature)
            except RpcError:
                record = None
            if record is not None:
                return record
            await self._sleeper(self._policy.poll_seconds)
        return None

    def _sorted(
        self, attempts: Attempts, error: TransactionRejectedError, *, landed: bool
    ) -> ChainError:
        failure = error.failure
        if failure.instruction is not None:
            own = failure.instruction - attempts.signed.num_added
            failure = replace(failure, instruction=own)
        return sort_failure(failure, error.logs, attempts.payer, self._codec, landed=landed)
