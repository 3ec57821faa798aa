"""Fetch many blobs: several at a time, from any holders, again and again until somebody delivers.

Owns: how many are asked for at a time and of whom, trying again, the progress.
Never: knows what the bytes mean, or keeps them: each is handed on as it arrives.
Next: `exchange.py` for one blob; `../checkpoint/fetch.py`, `../run_files/fetch.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

from troth_client.errors import ClientError
from troth_client.runtime.base import Runtime, end
from troth_client.telemetry.events import EventSink, JsonValue
from troth_client.telemetry.pace import Pace
from troth_client.transport.base import BlobId, BlobKind, Transport
from troth_client.transport.errors import TransportError

PARALLEL: Final = 8
"""Pieces that are asked for at a time."""

T = TypeVar("T")


class Addressed(Protocol):
    """A piece by its hash; `Piece` of a state and `ShardPiece` of the data are such."""

    @property
    def hash(self) -> bytes:
        """The `piece_hash` of the bytes."""

    @property
    def num_bytes(self) -> int:
        """How many they are."""
        ...


Part = TypeVar("Part", bound=Addressed)


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Source:
    """The holders to ask, and for how long. `holders` is called before each try: they come and go.

    `is_vain` tells whether to give up; it is asked after a try that nobody answered. `on_progress`
    is called at each step forward, like each piece.
    """

    transport: Transport
    runtime: Runtime
    events: EventSink
    holders: Callable[[], Awaitable[Sequence[str]]]
    is_vain: Callable[[], bool]
    on_progress: Callable[[], None] = _nothing


@dataclass(frozen=True, slots=True)
class Goal:
    """A name for what is fetched, its size with what is here already, its event.

    `gone` makes the error for when it is vain to go on, and `next_step` ends that.
    """

    what: str
    total_bytes: int
    gone: Callable[[str, str, str], ClientError]
    next_step: str
    event: str
    round: int = 0
    fields: Mapping[str, JsonValue] = field(default_factory=dict)


async def persist(
    source: Source, goal: Goal, attempt: Callable[[Sequence[str]], Awaitable[T]]
) -> T:
    """Try until somebody delivers. Raises `goal.gone` when it has become vain."""
    while True:
        try:
            return await attempt(await source.holders())
        except TransportError as error:
            if source.is_vain():
                expected = f"somebody who serves {goal.what}"
                raise goal.gone(expected, str(error), goal.next_step) from error
        await source.runtime.wait()


async def fetch_each(
    source: Source, goal: Goal, missing: Iterable[Part], take: Callable[[Part, bytes], None]
) -> int:
    """Hand each missing piece to `take`, in about this order; return the bytes that were fetched.

    Pieces with equal bytes are fetched once. Raises `goal.gone` and what `take` raises.
    """
    places: dict[bytes, list[Part]] = {}
    for piece in missing:
        places.setdefault(piece.hash, []).append(piece)
    work = _Work(source, goal, list(places.values()), take)
    count = min(PARALLEL, len(places))
    work.progress.report()
    await _all(source.runtime, [work.run(at) for at in range(count)])
    work.progress.report()
    return work.progress.num_fetched


class _Work(Generic[Part]):
    """The pieces that are still to be asked for; several fetches at a time take from it."""

    def __init__(
        self,
        source: Source,
        goal: Goal,
        places: list[list[Part]],
        take: Callable[[Part, bytes], None],
    ) -> None:
        self._source = source
        self._goal = goal
        self._waiting = places[::-1]
        self._take = take
        missing = sum(piece.num_bytes for same in places for piece in same)
        self.progress = _Progress(source, goal, missing)

    async def run(self, number: int) -> None:
        """Fetch pieces until none is left. Each of several begins with another holder."""
        while self._waiting:
            same = self._waiting.pop()
            data = await self._one(same[0], number)
            for piece in same:
                await self._source.runtime.compute(self._take, piece, data)
            self.progress.add(len(data), len(data) * len(same))
            self._source.on_progress()

    async def _one(self, piece: Part, number: int) -> bytes:
        wanted = BlobId(self._goal.round, BlobKind.PIECE, piece.hash)

        async def attempt(holders: Sequence[str]) -> bytes:
            first = number % max(1, len(holders))
            turned = [*holders[first:], *holders[:first]]
            return await self._source.transport.fetch(wanted, turned, piece.num_bytes, bytes)

        return await persist(self._source, self._goal, attempt)


class _Progress:
    """Bytes that are here, of how many."""

    def __init__(self, source: Source, goal: Goal, missing: int) -> None:
        self._events = source.events
        self._pace = Pace(source.runtime.seconds)
        self._goal = goal
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
            self._goal.event,
            **self._goal.fields,
            done_bytes=self._goal.total_bytes - remaining,
            total_bytes=self._goal.total_bytes,
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
