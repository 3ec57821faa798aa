"""What tests put between a member of an in-process run and its doors: to lie, to refuse, to die.

Next: inprocess_support.py for the runs.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from troth_client.participant.assembly import Ports
from troth_client.transport.base import BlobId
from troth_client.transport.errors import HolderLacksError
from troth_simulation.stepped import SteppedRuntime


class Wrapped:
    """Any object with some calls replaced."""

    def __init__(self, inner, **calls):
        self.inner = inner
        self._calls = calls

    def __getattr__(self, name):
        return self._calls.get(name) or getattr(self.inner, name)


def training(ports: Ports, **calls) -> Ports:
    """The same ports, but the trainer's work has these calls instead."""
    return replace(ports, trains=lambda honest: Wrapped(ports.trains(honest), **calls))


def judging_by(ports: Ports, **calls) -> Ports:
    """The same ports, but the witness's work has these calls instead."""
    return replace(ports, judges=lambda honest: Wrapped(ports.judges(honest), **calls))


def refused_by(doors: Ports, refuses: Callable[[str, BlobId], bool]) -> Ports:
    """The same doors, but a holder lacks what `refuses(holder, blob)` says."""
    wire = doors.transport._wire

    async def read(holder, blob, into):
        if refuses(holder, blob):
            raise HolderLacksError(f"{blob.address} at {holder}", "nothing", "Asking on.")
        await wire.read(holder, blob, into)

    doors.transport._wire = Wrapped(wire, read=read)
    return doors


class Killed(BaseException):
    """What kill -9 feels like from inside; nothing in the client may catch it."""


@dataclass
class Doom:
    """The death of one process. Time stands still from then on, until `bury`."""

    runtime: SteppedRuntime
    is_dead: bool = False
    where: str = ""
    died: asyncio.Event = field(default_factory=asyncio.Event)

    def die(self):
        self.is_dead = True
        self.died.set()
        self.runtime.join()
        raise Killed(self.where)

    def bury(self):
        if self.is_dead:
            self.runtime.leave()
