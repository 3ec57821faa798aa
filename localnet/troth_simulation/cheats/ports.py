"""A participant that cheats: its doors, with a clock that does something else than was asked.

Owns: turning a cheat of the catalogue into ports. Never: changes a step of a round; what
a cheat does is done behind the doors, as a real one would do it with a changed copy of the client.
Next: `player.py`, which opens such doors; `cheating_work.py` for what is computed behind them;
`troth_simulation/cheats` for the cheats.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import ParamSpec, TypeVar, cast

from troth_client.participant.assembly import Ports
from troth_client.runtime.clock import Clock, Work
from troth_client.state.openings_store import OpeningsStore
from troth_client.state.residual_archive import ResidualArchive
from troth_client.steps import produce
from troth_client.telemetry.events import EventSink, JsonValue
from troth_client.train.step import gradient
from troth_client.transport.base import BlobId, OpeningSets, PushResult, Transport
from troth_simulation.cheats.cheat import Cheat, Hidden
from troth_simulation.cheats.conduct import Conduct, Forger, Idler

P = ParamSpec("P")
T = TypeVar("T")


def cheating(cheat: Cheat, doors: Ports) -> Ports:
    """Return the same doors, but they cheat once enough payloads were included."""
    conduct = Conduct(cheat, doors.events.emit)
    clock = _CheatingClock(doors.clock, conduct)
    transport = cast(Transport, _HidingTransport(doors.transport, conduct))
    return replace(doors, events=_Record(doors.events, conduct), clock=clock, transport=transport)


class _Record:
    """An event sink that counts how many of our payloads were included."""

    def __init__(self, events: EventSink, conduct: Conduct) -> None:
        self._events = events
        self._conduct = conduct

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        self._conduct.num_included += event == "round_closed" and bool(fields.get("own"))
        self._events.emit(event, **fields)


class _CheatingClock:
    """A clock that does the work of a trainer its own way, and everything else as it is told."""

    def __init__(self, clock: Clock, conduct: Conduct) -> None:
        self._clock = clock
        self._idler = Idler(conduct)
        self._forger = Forger(conduct)

    async def wait(self, work: Work[T] = ()) -> None:
        await self._clock.wait(work)

    async def compute(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._clock.compute(self._instead_of(function), *args, **kwargs)

    async def beside(self, work: Awaitable[T]) -> T:
        return await self._clock.beside(work)

    def seconds(self) -> float | None:
        return self._clock.seconds()

    def _instead_of(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return what is computed when this function is asked for."""
        swaps: dict[object, Callable[..., object]] = {
            gradient: self._idler.gradient,
            produce._propose: self._forger.propose,
            OpeningsStore.make: self._forger.make,
            ResidualArchive.pair: self._forger.pair,
        }
        own = getattr(function, "__func__", None)
        if own in swaps:
            return cast(Callable[P, T], partial(swaps[own], getattr(function, "__self__", None)))
        return cast(Callable[P, T], swaps.get(function, function))


class _HidingTransport:
    """A transport that never serves what its owner hides."""

    def __init__(self, transport: Transport, conduct: Conduct) -> None:
        self._transport = transport
        self._conduct = conduct

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)

    def hold(self, blob: BlobId, data: bytes) -> None:
        if not self._conduct.is_hiding(Hidden.PAYLOADS, blob.round):
            self._transport.hold(blob, data)

    async def push(self, round_: int, holders: Sequence[str]) -> tuple[PushResult, ...]:
        if self._conduct.is_hiding(Hidden.PAYLOADS, round_):
            return ()
        return await self._transport.push(round_, holders)

    def show(self, sets: OpeningSets) -> None:
        self._transport.show(_Unseen(sets, self._conduct))


class _Unseen:
    """Opening sets, some of which nobody may see."""

    def __init__(self, sets: OpeningSets, conduct: Conduct) -> None:
        self._sets = sets
        self._conduct = conduct

    def shown(self, root: bytes) -> bytes | None:
        return None if root in self._conduct.hidden_roots else self._sets.shown(root)
