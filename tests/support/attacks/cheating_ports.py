"""Cheats that need two people or another moment: leaks, last-second votes, holders that starve.

A variant is the honest client whose computations are other ones. Cheats that a
single process can play are in troth_simulation.cheats, where the demo finds them too.
Next: the test_cheating_trainers_* files.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol, cast

from solders.instruction import Instruction
from solders.keypair import Keypair

from support.attacks.cheats import CHEAT, FIRST_LIE, Wrap
from support.ports import Wrapped, refused_by
from troth_client.participant.assembly import Ports
from troth_client.state.residual_state import Proposal
from troth_client.state.work import HonestWork
from troth_client.train.step import Gradient
from troth_client.transport.base import BlobId, PushResult
from troth_coordinator.chain.attempts import SendWatch
from troth_coordinator.chain.client import ConfirmedTransaction, CoordinatorClient
from troth_coordinator.rules.ids import RoundIndex
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.progress import phase_end_by_time
from troth_simulation.cheats.trainer import signed
from troth_simulation.in_process import SimulatedMember

Compute = Callable[..., object]
Swap = Callable[..., Awaitable[object]]


class Propose(Protocol):
    """The honest proposal of the one that computes."""

    @property
    def __self__(self) -> HonestWork: ...

    def __call__(self, round_: RoundIndex, found: Gradient, /) -> Proposal: ...


def behind(ports: Ports, call: str, swap: Swap) -> Ports:
    """The same ports, but one computation of the trainer is done by this coroutine instead.

    swap: called with the honest computation and its arguments.
    """

    async def compute(function: Compute, *args: object, **kwargs: object) -> object:
        if isinstance(getattr(function, "__self__", None), HonestWork) and (
            function.__name__ == call
        ):
            return await swap(function, *args)
        return await ports.runtime.compute(function, *args, **kwargs)

    return replace(ports, runtime=Wrapped(ports.runtime, compute=compute))


def leaked(giver: str, call: str, take: Swap) -> Wrap:
    """Somebody passes each result of a computation on to the cheat, who uses it in its own way.

    take: called with the leaked result, the cheat's own computation and its arguments.
    """
    results: list[object] = []

    def wrap(one: SimulatedMember, ports: Ports) -> Ports:
        num_used = 0

        async def keep(function: Compute, *args: object) -> object:
            results.append(function(*args))
            return results[-1]

        async def use(function: Compute, *args: object) -> object:
            nonlocal num_used
            num_used += 1
            while len(results) < num_used:
                await ports.runtime.wait()
            return await take(results[num_used - 1], function, *args)

        swaps: dict[str, Swap] = {giver: keep, CHEAT: use}
        return behind(ports, call, swaps[one.name]) if one.name in swaps else ports

    return wrap


async def as_own_payload(
    theirs: Proposal, propose: Propose, round_: RoundIndex, found: Gradient
) -> Proposal:
    """Sign for the u of somebody else, so that payload and openings fit each other."""
    honest, own = propose(round_, found), propose.__self__
    if round_ < FIRST_LIE:
        return honest
    own.residual.proposal = signed(theirs.u, honest, own)
    return own.residual.proposal


def as_own_gradient() -> Swap:
    """Compute honestly for three rounds, then take what the twin has computed."""
    num_made = 0

    async def take(theirs: Gradient, gradient: Callable[..., Gradient], *args: object) -> Gradient:
        nonlocal num_made
        num_made += 1
        return gradient(*args) if num_made <= FIRST_LIE else theirs

    return take


def at_the_last_second(one: SimulatedMember, ports: Ports) -> Ports:
    """The cheat sends its commits in the last slot in which they count."""

    async def send_carrying(
        instructions: Sequence[Instruction],
        carried: Sequence[Instruction],
        signers: Sequence[Keypair],
        watch: SendWatch | None = None,
    ) -> ConfirmedTransaction:
        while True:
            view = await ports.chain.snapshot(one.here.chain.at.run)
            is_over = view.slot + 1 >= phase_end_by_time(view.run)
            if view.run.phase != Phase.COMMIT or is_over:
                return await ports.chain.send_carrying(instructions, carried, signers, watch)
            await ports.runtime.wait()

    if one.name != CHEAT:
        return ports
    chain = cast(CoordinatorClient, Wrapped(ports.chain, send_carrying=send_carrying))
    return replace(ports, chain=chain)


def starving(hungry: str, refused: list[BlobId]) -> Wrap:
    """The cheat gives its payloads to everybody but one, and hands out no copies.

    refused: what the hungry one asked the cheat for.
    """

    def refuses(holder: str, blob: BlobId) -> bool:
        if holder == CHEAT:
            refused.append(blob)
        return holder == CHEAT

    async def push(round_: int, holders: Sequence[str]) -> tuple[PushResult, ...]:
        return ()

    def wrap(one: SimulatedMember, ports: Ports) -> Ports:
        if one.name == CHEAT:
            return replace(ports, transport=Wrapped(ports.transport, push=push))
        return refused_by(ports, refuses) if one.name == hungry else ports

    return wrap
