"""The one implementation of `Transport`, over any wire.

Owns: the race between holders, resuming after another holder stopped, and the check before use.
Never: knows whether bytes move over HTTP or memory, nor the round on chain.
Next: `http.py`, `memory.py`, each of which makes an `Exchange` over its wire.

A fetch asks holders one after the other, best score first. When one fails, the next starts from the
byte where it stopped. When one is slow, the next starts beside it, from the first byte. The first
bytes that pass win, also those that somebody pushes to us meanwhile. If bytes of several holders do
not fit together, the fault cannot be traced to one of them: each of those holders is asked again,
for all bytes.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Self, TypeVar

from troth_attestation.errors import AttestationError
from troth_client.errors import ClientError
from troth_client.transport.base import (
    OF_RUN,
    BlobId,
    Check,
    OpeningSets,
    PushResult,
    ShownFiles,
)
from troth_client.transport.blob_cache import BlobCache
from troth_client.transport.errors import (
    FetchError,
    HolderError,
    HolderLiedError,
    HolderSilentError,
    HolderTruncatedError,
)
from troth_client.transport.scores import HolderScores
from troth_client.transport.store import StoreWire
from troth_client.transport.tally import Tally
from troth_client.transport.wire import Partial, Wire

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a holder may take, in seconds and bytes, before the next one is asked.

    Bytes longer than `inline_bytes` are checked in a thread, so that the loop goes on meanwhile.
    """

    grace_seconds: float = 5.0
    floor_bytes_per_second: float = 256 * 1024
    hedge_seconds: float = 1.5
    parallel: int = 32
    inline_bytes: int = 256 * 1024

    def attempt_seconds(self, num_bytes: int) -> float:
        """Return the time for one attempt at `num_bytes` bytes."""
        return self.grace_seconds + num_bytes / self.floor_bytes_per_second


class Pace:
    """A `limit` that grows as bytes move: whoever is slower than the floor is cut off early."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._began = asyncio.get_running_loop().time()
        self._num_bytes = 0
        self.limit = asyncio.timeout(patience.attempt_seconds(0))

    def moved(self, num_bytes: int) -> None:
        """Note that so many more bytes came or went."""
        self._num_bytes += num_bytes
        if not self.limit.expired():
            self.limit.reschedule(self._began + self._patience.attempt_seconds(self._num_bytes))


class Exchange:
    """A `Transport` over a blob cache and a wire. `tally` counts what it moves."""

    def __init__(
        self,
        cache: BlobCache,
        wire: Wire,
        patience: Patience | None = None,
        tally: Tally | None = None,
    ) -> None:
        self.tally = tally or Tally()
        self.scores = HolderScores()
        self._cache = cache
        self._wire = wire
        self._stores: dict[str, StoreWire] = {}
        self._patience = patience or Patience()
        self._slots = asyncio.Semaphore(self._patience.parallel)
        self._endpoint = ""

    @property
    def endpoint(self) -> str:
        """The address for the chain's Participant account; known once started."""
        return self._endpoint

    async def __aenter__(self) -> Self:
        """Start serving."""
        self._endpoint = await self._wire.start(self._cache)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop serving."""
        await self._wire.stop()

    def hold(self, blob: BlobId, data: bytes) -> None:
        """Keep our own bytes until `release` of their round; see `Transport.hold`."""
        self._cache.hold(blob, data)

    def release(self, round_: int) -> None:
        """Serve this round and earlier ones; see `Transport.release`."""
        self._cache.release(round_)

    def show(self, sets: OpeningSets) -> None:
        """Serve opening sets too; see `Transport.show`."""
        self._cache.show(sets)

    def show_states(self, states: ShownFiles) -> None:
        """Serve the pieces of states too; see `Transport.show_states`."""
        self._cache.show_states(states)

    def show_files(self, files: ShownFiles) -> None:
        """Serve the files of the run too; see `Transport.show_files`."""
        self._cache.show_files(files)

    def use_stores(self, urls: Iterable[str], *, signs: bool) -> None:
        """Take these addresses for object stores; see `Transport.use_stores`."""
        named = dict.fromkeys(urls, StoreWire(self._patience.grace_seconds, signs=signs))
        self._stores = self._stores | named if signs else named | self._stores

    def expect(self, blob: BlobId, num_bytes: int, check: Check[object]) -> None:
        """Accept a push of these bytes; see `Transport.expect`."""
        self._cache.expect(blob, num_bytes, check)

    def drop_before(self, round_: int) -> None:
        """Forget earlier rounds; see `Transport.drop_before`."""
        self._cache.drop_before(round_)

    def ranked(self, holders: Iterable[str]) -> list[str]:
        """Return the holders, those that answered best first; see `Transport.ranked`."""
        return self.scores.ranked(holders)

    async def push(self, round_: int, holders: Sequence[str]) -> tuple[PushResult, ...]:
        """Offer our own blobs of a round to holders; see `Transport.push`."""
        blobs = self._cache.own(round_)
        others = [holder for holder in dict.fromkeys(holders) if holder != self._endpoint]
        return tuple(await asyncio.gather(*(self._push_all(h, blobs) for h in others)))

    async def offer(self, blob: BlobId, holders: Sequence[str]) -> tuple[PushResult, ...]:
        """Offer an opening set, weights or a file to holders; see `Transport.offer`."""
        data = self._cache.served(blob.address)
        if data is None:
            return ()
        others = [holder for holder in dict.fromkeys(holders) if holder != self._endpoint]
        return tuple(await asyncio.gather(*(self._push_all(h, [(blob, data)]) for h in others)))

    async def fetch(
        self, blob: BlobId, holders: Sequence[str], num_bytes: int, check: Check[T]
    ) -> T:
        """Return `check` of the bytes from any holder; see `Transport.fetch`."""
        found = await self.held(blob, check)
        if found is not None:
            return found[1]
        others = [holder for holder in holders if holder != self._endpoint]
        race = _Race(self, blob, num_bytes, check)
        data, value = await race.run(self.scores.ranked(others), self._patience.hedge_seconds)
        self._cache.keep(blob, data)
        return value

    async def held(self, blob: BlobId, check: Check[T]) -> tuple[bytes, T] | None:
        """Return bytes that are here, with their meaning; None if they are not, or are damaged."""
        data = self._cache.find(blob)
        if data is not None:
            with contextlib.suppress(HolderLiedError):  # the store was damaged: fetch it again
                return data, await self._judged(blob, data, check)
        return None

    async def attempt(
        self, holder: str, blob: BlobId, part: Partial, check: Check[T]
    ) -> tuple[bytes, T]:
        """Complete `part` from one holder and check it; HolderError if that fails."""
        async with self._slots:
            before, pace = len(part.data), Pace(self._patience)
            part.moved = pace.moved
            try:
                async with pace.limit:
                    await self._wire_to(holder).read(holder, blob, part)
            except TimeoutError as error:
                seconds = self._patience.attempt_seconds(max(0, len(part.data) - before))
                raise HolderSilentError(
                    f"more bytes within {seconds:.1f} s",
                    f"{len(part.data)} of {part.num_bytes}",
                    "Asking another holder.",
                ) from error
            finally:
                self.tally.num_received += max(0, len(part.data) - before)
        if not part.is_complete:
            raise HolderTruncatedError(
                f"{part.num_bytes} bytes", f"{len(part.data)} bytes", "Asking another holder."
            )
        data = bytes(part.data)
        return data, await self._judged(blob, data, check)

    def _wire_to(self, holder: str) -> Wire:
        # Not by its scheme: a member may announce any text as its endpoint.
        return self._stores.get(holder, self._wire)

    async def _judged(self, blob: BlobId, data: bytes, check: Check[T]) -> T:
        if len(data) <= self._patience.inline_bytes:
            return _judge(blob, data, check)
        return await asyncio.to_thread(_judge, blob, data, check)

    async def _push_all(self, holder: str, blobs: Sequence[tuple[BlobId, bytes]]) -> PushResult:
        result = await self._pushed(holder, blobs)
        # A holder that takes bytes may still lie to those who read: only reads make up for faults.
        if result.error is not None:
            self.scores.failed(holder, result.error)
        return result

    async def _pushed(self, holder: str, blobs: Sequence[tuple[BlobId, bytes]]) -> PushResult:
        accepted = 0
        try:
            for blob, data in blobs:
                async with self._slots, asyncio.timeout(self._patience.attempt_seconds(len(data))):
                    await self._wire_to(holder).write(holder, blob, data)
                self.tally.num_sent += len(data)
                accepted += 1
        except TimeoutError:
            silent = HolderSilentError("an answer to a push", "none in time", "Serving instead.")
            return PushResult(holder, accepted, silent)
        except HolderError as error:
            return PushResult(holder, accepted, error)
        return PushResult(holder, accepted)


class _Race(Generic[T]):
    """One fetch: the waiting holders, the running attempts, the longest usable prefix."""

    def __init__(self, exchange: Exchange, blob: BlobId, num_bytes: int, check: Check[T]) -> None:
        self._exchange = exchange
        self._blob = blob
        self._check = check
        is_exact = blob.kind not in OF_RUN
        self._prefix = Partial(num_bytes, is_exact=is_exact)
        self._may_resume = is_exact
        self._waiting: deque[str] = deque()
        self._running: dict[asyncio.Task[tuple[bytes, T]], tuple[str, Partial]] = {}
        self._failures: list[tuple[str, HolderError]] = []

    async def run(self, holders: Sequence[str], hedge_seconds: float) -> tuple[bytes, T]:
        """Return the first bytes that pass, with their meaning; FetchError if none do."""
        self._waiting.extend(holders)
        try:
            while self._waiting or self._running:
                self._start_next()
                won = await self._next_result(hedge_seconds)
                # Somebody may have pushed it meanwhile.
                won = won or await self._exchange.held(self._blob, self._check)
                if won is not None:
                    return won
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
        raise FetchError(self._blob.address, tuple(self._failures))

    async def _next_result(self, seconds: float) -> tuple[bytes, T] | None:
        """Wait for an attempt to end; None if those that ended failed, or if none did in time."""
        done, _ = await asyncio.wait(
            self._running, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        results = [self._finish(task) for task in done]
        return next((won for won in results if won is not None), None)

    def _start_next(self) -> None:
        if not self._waiting:
            return
        holder = self._waiting.popleft()
        part = self._prefix.copy()
        self._prefix.restart()  # only one attempt builds on the received prefix
        work = self._exchange.attempt(holder, self._blob, part, self._check)
        self._running[asyncio.create_task(work)] = (holder, part)

    def _finish(self, task: asyncio.Task[tuple[bytes, T]]) -> tuple[bytes, T] | None:
        order = list(self._running)
        earlier = [self._running[other][0] for other in order[: order.index(task)]]
        holder, part = self._running.pop(task)
        try:
            won = task.result()
        except HolderError as error:
            self._note(holder, part, error)
            return None
        self._exchange.scores.delivered(holder)
        for slow in earlier:  # asked before it and still silent: they have made us wait
            self._exchange.scores.was_slow(slow)
        return won

    def _note(self, holder: str, part: Partial, error: HolderError) -> None:
        self._failures.append((holder, error))
        if isinstance(error, HolderLiedError):
            if part.is_complete and len(part.sources) > 1:
                self._may_resume = False
                self._prefix.restart()
                self._waiting.extend(part.sources)
                return
        elif self._may_resume and len(part.data) > len(self._prefix.data):
            self._prefix = part
        self._exchange.scores.failed(holder, error)


def _judge(blob: BlobId, data: bytes, check: Check[T]) -> T:
    """Check address, then meaning; the holder is to blame for bytes that the address excludes."""
    if not blob.matches(data):
        raise HolderLiedError(f"bytes of {blob.address}", "other bytes", "Asking another holder.")
    try:
        return check(data)
    except (ClientError, AttestationError) as error:
        if blob.is_whole:
            raise
        raise HolderLiedError(f"valid {blob.kind}", f"{error}", "Asking another holder.") from error
