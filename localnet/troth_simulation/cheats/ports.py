"""A participant that cheats: its ports, with other work behind them.

Owns: turning a cheat of the catalogue into ports. Never: changes a step of a round; a cheat uses
the same ports as a changed copy of the client would.
Next: `trainer.py` for the computations; `catalogue.py` for the cheats.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from troth_client.audit.witness import HonestWitnessWork, WitnessWork
from troth_client.participant.assembly import Ports
from troth_client.telemetry.events import EventSink, JsonValue
from troth_client.transport.base import BlobId, OpeningSets, PushResult, Transport
from troth_coordinator.rules.view import Role
from troth_simulation.cheats.cheat import Cheat, Hidden
from troth_simulation.cheats.conduct import Conduct
from troth_simulation.cheats.juror import CheatingJuror
from troth_simulation.cheats.trainer import CheatingWork


def cheating(cheat: Cheat, ports: Ports) -> Ports:
    """Return the same ports, but they cheat once enough payloads were included."""
    conduct = Conduct(cheat, ports.events.emit)
    events = _FollowedEvents(ports.events, conduct)
    if cheat.role & Role.WITNESS:
        return replace(ports, events=events, judges=partial(_juror, conduct=conduct))
    return replace(
        ports,
        events=events,
        transport=cast(Transport, _HidingTransport(ports.transport, conduct)),
        trains=lambda honest: CheatingWork(honest, conduct, ports.store),
    )


def _juror(honest: HonestWitnessWork, conduct: Conduct) -> WitnessWork:
    return cast(WitnessWork, CheatingJuror(honest, conduct))


class _FollowedEvents:
    """An event sink that lets the cheat follow what its own client reports."""

    def __init__(self, events: EventSink, conduct: Conduct) -> None:
        self._events = events
        self._conduct = conduct

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        self._conduct.follow(event, fields)
        self._events.emit(event, **fields)


class _HidingTransport:
    """A transport that does not serve the bytes that its owner hides."""

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
        self._transport.show(cast(OpeningSets, _Unseen(sets, self._conduct)))


class _Unseen:
    """Opening sets, some of which nobody may see."""

    def __init__(self, sets: OpeningSets, conduct: Conduct) -> None:
        self._sets = sets
        self._conduct = conduct

    def __getattr__(self, name: str) -> object:
        return getattr(self._sets, name)

    def shown(self, root: bytes) -> bytes | None:
        return None if self._conduct.is_unseen(root) else self._sets.shown(root)
