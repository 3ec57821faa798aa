"""What tests put between a member of an in-process run and its doors: to lie, to refuse, to die.

Next: inprocess_support.py for the runs.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from support.runs import member
from troth_attestation import header as headers
from troth_client.participant.assembly import Ports
from troth_client.runtime.clock import SteppedClock
from troth_client.steps import attest as attest_step
from troth_client.transport.base import BlobId
from troth_client.transport.errors import FetchError, HolderLacksError
from troth_coordinator.rules import bitmap

LIAR = 3
LIE_ROUND = 2


class Wrapped:
    """Any object with some calls replaced."""

    def __init__(self, inner, **calls):
        self._inner = inner
        self._calls = calls

    def __getattr__(self, name):
        return self._calls.get(name) or getattr(self._inner, name)


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
class Death:
    """The death of one process. Time stands still from then on, until `bury`."""

    clock: SteppedClock
    is_dead: bool = False
    where: str = ""
    died: asyncio.Event = field(default_factory=asyncio.Event)

    def die(self):
        self.is_dead = True
        self.died.set()
        self.clock.join()
        raise Killed(self.where)

    def bury(self):
        if self.is_dead:
            self.clock.leave()


def vouch_for_everything(monkeypatch) -> None:
    """Members who vouch blindly for whatever was committed."""

    class Blind(dict):
        pass

    honest = attest_step.possession

    def possession(run, round_, owner, payloads):
        proof = bytearray(honest(run, round_, owner, payloads))
        proof[LIAR] = 1
        return bytes(proof)

    def vouched(payloads):
        return bitmap.from_indices([*payloads, LIAR])

    monkeypatch.setattr(attest_step, "possession", possession)
    monkeypatch.setattr(attest_step, "vouched", vouched)


def withhold(run, round_: int, target: str, served_to: str) -> None:
    """Only one member ever gets the target's payload of a round."""

    def wrap(one, doors):
        transport = doors.transport

        def is_withheld(blob: BlobId) -> bool:
            stored = member(run, target).here.store.load_submission(round_)
            if stored is None:
                return False
            header = headers.decode(stored.header)
            return blob.key in (headers.header_hash(header), header.payload_root)

        async def fetch(blob, holders, num_bytes, check):
            if one.name not in (target, served_to) and is_withheld(blob):
                raise FetchError(blob.address, ())
            return await transport.fetch(blob, holders, num_bytes, check)

        def expect(blob, num_bytes, check):
            if one.name in (target, served_to) or not is_withheld(blob):
                transport.expect(blob, num_bytes, check)

        return replace(doors, transport=Wrapped(transport, fetch=fetch, expect=expect))

    run.wrap = wrap
