"""Gather: obtain every committed submission, or as many as there is time for.

Owns: for how long and in which phase. Never: checks bytes; `fetch.py` does.
Next: `attest.py`.
"""

import asyncio

from troth_client.peer import Peer
from troth_client.steps.crank import crank
from troth_client.steps.fetch import expect_pushes, fetch_submission
from troth_client.steps.observe import look
from troth_client.steps.records import Held, RoundPlan
from troth_coordinator.rules import bitmap, progress
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView, RoundView


async def gather(peer: Peer, plan: RoundPlan, round_: RoundView) -> dict[int, Held]:
    """Return the submissions that passed every check, by index.

    Ends when all committed ones are held, or when it is time to attest with what there is.
    """
    held: dict[int, Held] = {}
    view = await look(peer)
    expect_pushes(peer, round_, view)
    while True:
        missing = [i for i in bitmap.indices_of(round_.committed) if i not in held]
        found = await asyncio.gather(*(fetch_submission(peer, round_, view, i) for i in missing))
        held |= {i: one for i, one in zip(missing, found, strict=True) if one is not None}
        if len(held) == bitmap.count(round_.committed) or _is_time(view, plan):
            peer.events.emit("gathered", round=plan.round, held=len(held))
            return held
        await crank(peer, view)
        await peer.clock.wait()
        view = await look(peer)


def _is_time(view: NetworkView, plan: RoundPlan) -> bool:
    """Whether to attest now: shortly before the phase may end, or when it has ended."""
    run = view.run
    if run.round != plan.round or run.phase != Phase.ATTEST:
        return True
    return view.slot >= progress.attest_deadline(run)
