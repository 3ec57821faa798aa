"""Wrappers between a member of a run and its ports: to lie, to refuse, to die.

Owns: wrappers of ports. Never: starts a run. Next: runs.py.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, TypeVar

import pytest

from support.runs import member
from troth_attestation import header as headers
from troth_attestation import possession as honest
from troth_client.compression.codec import payload_root
from troth_client.participant.assembly import Ports
from troth_client.state.residual_state import Proposal
from troth_client.state.work import EncodedPayload
from troth_client.steps import attest as attest_step
from troth_client.transport.base import BlobId, Check
from troth_client.transport.errors import FetchError, HolderLacksError, HolderRefusedError
from troth_client.transport.exchange import Exchange
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.ids import Bitmap, Digest
from troth_simulation.in_process import InProcessRun, SimulatedMember
from troth_simulation.stepped import SteppedRuntime

T = TypeVar("T")
Failure = HolderLacksError | HolderRefusedError
LIAR = 3
LIE_ROUND = 2


class Wrapped:
    """Any object with some calls replaced."""

    def __init__(self, inner: Any, **calls: Callable[..., Any]) -> None:
        self.inner = inner
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return self._calls.get(name) or getattr(self.inner, name)


def training(ports: Ports, **calls: Callable[..., Any]) -> Ports:
    """The same ports, but the trainer's work has these calls instead."""
    return replace(ports, trains=lambda honest: Wrapped(ports.trains(honest), **calls))


def encoding(ports: Ports, encode: Callable[[Proposal], bytes]) -> Ports:
    """The same ports, but the trainer sends these bytes, under their own root."""

    def call(proposal: Proposal) -> EncodedPayload:
        data = encode(proposal)
        return EncodedPayload(data, Digest(payload_root(data)))

    return training(ports, encode=call)


def computing(ports: Ports, compute: Callable[..., Awaitable[Any]]) -> Ports:
    """The same ports, but heavy work goes through `compute`."""
    return replace(ports, runtime=Wrapped(ports.runtime, compute=compute))


def fail_once(run: InProcessRun, name: str, function: str) -> list[str]:
    """Let one member find no memory for the first call of a heavy function; return its calls."""
    calls: list[str] = []
    wrap = run.wrap

    def failing(one: SimulatedMember, ports: Ports) -> Ports:
        async def compute(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
            if call.__qualname__ == function:
                calls.append(function)
                if len(calls) == 1:
                    raise MemoryError("out of memory")
            return await ports.runtime.compute(call, *args, **named)

        wrapped = wrap(one, ports)
        return computing(wrapped, compute) if one.name == name else wrapped

    run.wrap = failing
    return calls


def refused_by(ports: Ports, refuses: Callable[[str, BlobId], bool]) -> Ports:
    """The same ports, but a holder lacks what `refuses(holder, blob)` says."""

    def lacks(holder: str, blob: BlobId) -> Failure:
        return HolderLacksError(f"{blob.address} at {holder}", "nothing", "Asking on.")

    return _failing(ports, "read", refuses, lacks)


def withheld_by(ports: Ports, withholds: Callable[[str, BlobId], bool]) -> Ports:
    """The same ports, but nothing is pushed where `withholds(holder, blob)` says so."""

    def refused(holder: str, _blob: BlobId) -> Failure:
        return HolderRefusedError(f"{holder} to take a push", "none sent", "Nothing.")

    return _failing(ports, "write", withholds, refused)


def _failing(
    ports: Ports,
    call: str,
    fails: Callable[[str, BlobId], bool],
    error: Callable[[str, BlobId], Failure],
) -> Ports:
    """The same ports, but one call of the wire raises for some holders and blobs."""
    assert isinstance(ports.transport, Exchange)
    wire = ports.transport._wire

    async def failing(holder: str, blob: BlobId, data: Any) -> None:
        if fails(holder, blob):
            raise error(holder, blob)
        await getattr(wire, call)(holder, blob, data)

    ports.transport._wire = Wrapped(wire, **{call: failing})
    return ports


class Killed(BaseException):
    """Ends a member as kill -9 ends a process; nothing in the client may catch it."""


@dataclass
class Death:
    """The death of one member. Time stands still from then on, until `release_clock`."""

    runtime: SteppedRuntime
    is_dead: bool = False
    where: str = ""
    died: asyncio.Event = field(default_factory=asyncio.Event)

    def die(self) -> NoReturn:
        self.is_dead = True
        self.died.set()
        self.runtime.join()
        raise Killed(self.where)

    def release_clock(self) -> None:
        """Let slots pass again after the death."""
        if self.is_dead:
            self.runtime.leave()


def vouch_for_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every member vouch for the payload of the liar without looking at it."""

    def possession(run: bytes, round_: int, owner: bytes, payloads: Mapping[int, bytes]) -> bytes:
        proof = bytearray(honest.possession(run, round_, owner, payloads))
        proof[LIAR] = 1
        return bytes(proof)

    def vouched(payloads: Mapping[int, bytes]) -> Bitmap:
        return bitmap.from_indices([*payloads, LIAR])

    monkeypatch.setattr(attest_step, "possession", possession)
    monkeypatch.setattr(attest_step, "vouched", vouched)


def withhold(run: InProcessRun, round_: int, target: str, served_to: str) -> None:
    """Only one member ever gets the target's payload of a round."""

    def wrap(one: SimulatedMember, ports: Ports) -> Ports:
        transport = ports.transport

        def is_withheld(blob: BlobId) -> bool:
            stored = member(run, target).here.state.store.load_submission(round_)
            if stored is None:
                return False
            header = headers.decode(stored.header)
            return blob.key in (headers.header_hash(header), header.payload_root)

        async def fetch(blob: BlobId, holders: Sequence[str], num_bytes: int, check: Check[T]) -> T:
            if one.name not in (target, served_to) and is_withheld(blob):
                raise FetchError(blob.address, ())
            return await transport.fetch(blob, holders, num_bytes, check)

        def expect(blob: BlobId, num_bytes: int, check: Check[object]) -> None:
            if one.name in (target, served_to) or not is_withheld(blob):
                transport.expect(blob, num_bytes, check)

        return replace(ports, transport=Wrapped(transport, fetch=fetch, expect=expect))

    run.wrap = wrap
