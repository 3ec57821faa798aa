"""Cheats that need two people or another moment: leaks, last-second votes, holders that starve.

A variant is the honest client whose clock computes something else, as in judges.py. Cheats that a
single process can play are in troth_simulation.cheats, where the demo finds them too.
Next: the test_cheating_trainers_* files.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from integration.inprocess_doors import Wrapped, refused_by

from support.attacks.cheats import CHEAT, FIRST_LIE, Wrap
from troth_client.participant.assembly import Ports
from troth_client.state.residual_state import Proposal
from troth_client.steps import produce
from troth_client.train.step import Gradient, gradient
from troth_client.transport.base import BlobId
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.progress import phase_end_by_time
from troth_simulation.cheats.conduct import signed

Swap = Callable[..., Awaitable[object]]


def behind(doors: Ports, swaps: dict[Callable, Swap]) -> Ports:
    """The same doors, but some functions are computed by these coroutines instead."""

    async def compute(function, *args, **kwargs):
        if function in swaps:
            return await swaps[function](*args, **kwargs)
        return await doors.clock.compute(function, *args, **kwargs)

    return replace(doors, clock=Wrapped(doors.clock, compute=compute))


def leaked(giver: str, function: Callable, take: Callable[..., Awaitable[object]]) -> Wrap:
    """Somebody passes each result of a function on to the cheat, who uses it in its own way.

    take: called with the leaked result and the cheat's arguments.
    """
    results: list[object] = []

    def wrap(one, doors):
        async def keep(*args):
            results.append(function(*args))
            return results[-1]

        async def use(*args):
            use.calls += 1
            while len(results) < use.calls:
                await doors.clock.wait()
            return await take(results[use.calls - 1], *args)

        use.calls = 0
        swaps = {giver: {function: keep}, CHEAT: {function: use}}
        return behind(doors, swaps[one.name]) if one.name in swaps else doors

    return wrap


async def as_own_payload(theirs: Proposal, peer, plan, found: Gradient) -> Proposal:
    """Sign for the u of somebody else, so that payload and openings fit each other."""
    honest = produce._propose(peer, plan, found)
    if plan.round < FIRST_LIE:
        return honest
    peer.residual.proposal = signed(theirs.u, honest, peer.config.demo.k)
    return peer.residual.proposal


def as_own_gradient() -> Callable[..., Awaitable[Gradient]]:
    """Compute honestly for three rounds, then take what the twin has computed."""
    num_made = 0

    async def take(theirs: Gradient, *args) -> Gradient:
        nonlocal num_made
        num_made += 1
        return gradient(*args) if num_made <= FIRST_LIE else theirs

    return take


def at_the_last_second(one, doors: Ports) -> Ports:
    """The cheat sends its commits in the last slot in which they count."""

    async def send_carrying(instructions, carried, signers):
        while True:
            view = await doors.chain.snapshot(one.here.at.run)
            is_over = view.slot + 1 >= phase_end_by_time(view.run)
            if view.run.phase != Phase.COMMIT or is_over:
                return await doors.chain.send_carrying(instructions, carried, signers)
            await doors.clock.wait()

    if one.name != CHEAT:
        return doors
    return replace(doors, chain=Wrapped(doors.chain, send_carrying=send_carrying))


def starving(hungry: str, refused: list[BlobId]) -> Wrap:
    """The cheat gives its payloads to everybody but one, and hands out no copies.

    refused: what the hungry one asked the cheat for.
    """

    def refuses(holder, blob):
        if holder == CHEAT:
            refused.append(blob)
        return holder == CHEAT

    async def push(round_, holders):
        return ()

    def wrap(one, doors):
        if one.name == CHEAT:
            return replace(doors, transport=Wrapped(doors.transport, push=push))
        return refused_by(doors, refuses) if one.name == hungry else doors

    return wrap
