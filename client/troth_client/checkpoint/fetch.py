"""Fetch: the pieces of a state from any holders, each checked under the root on chain.

Owns: how many pieces are asked for at a time and of whom, trying again, and the progress.
Never: trusts a holder, or fetches a byte before the piece list has the root that the chain names.
Next: `transport/exchange.py` for one piece; `folder.py` for the draft; `steps/restore.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from troth_attestation.committed import CommittedState
from troth_attestation.pieces import Piece, PieceList, Shape, list_bytes
from troth_client.checkpoint.errors import CheckpointGoneError
from troth_client.checkpoint.folder import Draft
from troth_client.runtime.base import Runtime, end
from troth_client.telemetry.events import EventSink
from troth_client.telemetry.pace import Pace
from troth_client.transport.base import BlobId, BlobKind, Transport
from troth_client.transport.errors import TransportError

PARALLEL: Final = 8
"""Pieces that are asked for at a time."""

T = TypeVar("T")
Take = Callable[[Piece, bytes], None]


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Source:
    """The holders to ask, and for how long. `holders` is called before each try: they come and go.

    `is_vain` tells whether to give up; it is asked after a try that nobody answered. `on_progress`
    is called at each step forward: for the list, the hashing of a draft, and each piece.
    """

    transport: Transport
    runtime: Runtime
    events: EventSink
    holders: Callable[[], Awaitable[Sequence[str]]]
    is_vain: Callable[[], bool]
    on_progress: Callable[[], None] = _nothing


async def fetch_list(
    source: Source, wanted: CommittedState, shapes: Mapping[str, Shape]
) -> PieceList:
    """Return the piece list of a state, from any holder. Raises CheckpointGoneError."""
    address = BlobId(wanted.round, BlobKind.PIECES, wanted.root)

    async def attempt(holders: Sequence[str]) -> PieceList:
        size = list_bytes(shapes)
        return await source.transport.fetch(
            address, holders, size, lambda data: wanted.check_pieces(data, shapes)
        )

    found = await _persist(source, wanted.round, attempt)
    source.on_progress()
    return found


async def fetch_draft(source: Source, draft: Draft) -> int:
    """Fill a draft with the pieces that it lacks; return the bytes that were fetched.

    Raises CheckpointGoneError when nobody serves a piece, DiskFullError. Fetched pieces stay.
    """
    missing = await source.runtime.compute(draft.missing)
    source.on_progress()
    return await fetch_pieces(source, draft.pieces, missing, draft.put)


async def fetch_pieces(
    source: Source, pieces: PieceList, missing: Iterable[Piece], take: Take
) -> int:
    """Hand each missing piece of a state to `take`; return the bytes that were fetched.

    Pieces with equal bytes are fetched once. Raises CheckpointGoneError and what `take` raises.
    """
    places: dict[bytes, list[Piece]] = {}
    for piece in missing:
        places.setdefault(piece.hash, []).append(piece)
    work = _Work(source, pieces, list(places.values()), take)
    count = min(PARALLEL, len(places))
    work.progress.report()
    await _all(source.runtime, [work.run(at) for at in range(count)])
    work.progress.report()
    return work.progress.num_fetched


class _Work:
    """The pieces that are still to be asked for; several fetches at a time take from it."""

    def __init__(
        self, source: Source, pieces: PieceList, places: list[list[Piece]], take: Take
    ) -> None:
        self._source = source
        self._round = pieces.state.round
        self._waiting = places[::-1]
        self._take = take
        missing = sum(piece.num_bytes for same in places for piece in same)
        self.progress = _Progress(source, self._round, pieces.num_bytes, missing)

    async def run(self, number: int) -> None:
        """Fetch pieces until none is left. Each of several begins with another holder."""
        while self._waiting:
            same = self._waiting.pop()
            data = await self._one(same[0], number)
            for piece in same:
                await self._source.runtime.compute(self._take, piece, data)
            self.progress.add(len(data), len(data) * len(same))
            self._source.on_progress()

    async def _one(self, piece: Piece, number: int) -> bytes:
        wanted = BlobId(self._round, BlobKind.PIECE, piece.hash)

        async def attempt(holders: Sequence[str]) -> bytes:
            first = number % max(1, len(holders))
            turned = [*holders[first:], *holders[:first]]
            return await self._source.transport.fetch(wanted, turned, piece.num_bytes, bytes)

        return await _persist(self._source, self._round, attempt)


class _Progress:
    """Bytes that are here, of how many."""

    def __init__(self, source: Source, round_: int, total: int, missing: int) -> None:
        self._events = source.events
        self._pace = Pace(source.runtime.seconds)
        self._round = round_
        self._total = total
        self._missing = missing
        self._num_placed = 0
        self.num_fetched = 0

    def add(self, fetched: int, placed: int) -> None:
        """Count a piece that arrived, and the places that it fills."""
        self.num_fetched += fetched
        self._num_placed += placed
        if self._pace.is_due():
            self.report()

    def report(self) -> None:
        """Emit how far it is."""
        remaining = self._missing - self._num_placed
        self._events.emit(
            "fetching",
            round=self._round,
            done_bytes=self._total - remaining,
            total_bytes=self._total,
            seconds_left=self._pace.seconds_left(self._num_placed, remaining),
        )


async def _all(runtime: Runtime, parts: Sequence[Coroutine[None, None, None]]) -> None:
    """Run these side by side; the first error ends the others."""
    running = [runtime.start(part, f"fetch-{at}") for at, part in enumerate(parts)]
    try:
        while under_way := [one for one in running if not one.done()]:
            await runtime.wait_for_others(*under_way)
            for ended in filter(asyncio.Task.done, running):
                ended.result()
    finally:
        await end(*running)


async def _persist(
    source: Source, round_: int, attempt: Callable[[Sequence[str]], Awaitable[T]]
) -> T:
    """Try until somebody delivers. Raises CheckpointGoneError when it has become vain."""
    while True:
        try:
            return await attempt(await source.holders())
        except TransportError as error:
            if source.is_vain():
                raise CheckpointGoneError(
                    f"somebody who serves the weights of round {round_}",
                    str(error),
                    "Try again later, or take a newer checkpoint: members serve the newest two.",
                ) from error
        await source.runtime.wait()
