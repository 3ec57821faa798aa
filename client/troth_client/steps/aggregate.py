"""Aggregate and apply: exactly the payloads that the chain included, nothing else.

Owns: waiting for the close, obtaining every included payload, reporting those that nobody serves.
Never: applies a subset. A peer that lacks an included payload waits and keeps fetching (section 4).
Next: `replay.py` for roots that disagree, `settle.py`.
"""

import asyncio
from collections.abc import Mapping

from troth_client.payload.codec import VerifiedPayload
from troth_client.peer import Peer
from troth_client.steps.crank import crank
from troth_client.steps.errors import out_of_ring
from troth_client.steps.fetch import fetch_submission
from troth_client.steps.observe import look, observe, read_round
from troth_client.steps.records import Closure, Held, Payloads, RoundPlan
from troth_coordinator.chain import instructions
from troth_coordinator.chain.errors import ProgramRefusedError
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.view import NetworkView, RoundFlag, RoundView


async def aggregate(
    peer: Peer, plan: RoundPlan, held: Mapping[int, Held]
) -> tuple[Closure, Payloads]:
    """Wait until the round is closed and return what it included, with all payloads decoded."""
    view = await observe(peer, lambda view: view.run.round > plan.round)
    return await collect(peer, view, plan.round, held)


async def apply(peer: Peer, closure: Closure, payloads: Payloads) -> None:
    """Move the replica to the next round."""
    await peer.clock.compute(peer.replica.apply, closure, payloads)
    peer.events.emit(
        "applied",
        round=closure.round,
        included=bitmap.count(closure.included),
        void=closure.is_void,
    )


async def collect(
    peer: Peer, view: NetworkView, round_: int, held: Mapping[int, Held]
) -> tuple[Closure, Payloads]:
    """Return the closure of a closed round and its included payloads, in index order.

    Fetches what is missing for as long as it takes; what nobody serves is reported on chain once,
    and may be struck from the round meanwhile. LaggingError when the ring has dropped the round.
    """
    have = dict(held)
    reported: set[int] = set()
    while True:
        account = await read_round(peer, round_)
        if account is None or not account.flags & RoundFlag.CLOSED:
            raise out_of_ring(round_, view)
        missing = [i for i in bitmap.indices_of(account.included) if i not in have]
        found = await asyncio.gather(*(fetch_submission(peer, account, view, i) for i in missing))
        have |= {i: one for i, one in zip(missing, found, strict=True) if one is not None}
        lacking = [i for i in missing if i not in have]
        if not lacking:
            return closure_of(account), _payloads(account, have)
        peer.events.emit("lagging", round=round_, missing=[int(i) for i in lacking])
        await _report(peer, view, account, [i for i in lacking if i not in reported])
        reported |= set(lacking)
        await crank(peer, view)
        await peer.clock.wait()
        view = await look(peer)


def closure_of(account: RoundView) -> Closure:
    """Return how a closed round ended."""
    return Closure(
        round=account.round,
        num_trainers=bitmap.count(account.trainers),
        included=account.included,
        is_void=bool(account.flags & RoundFlag.VOID),
        canonical_root=account.canonical_root,
    )


def _payloads(account: RoundView, have: Mapping[int, Held]) -> tuple[VerifiedPayload | None, ...]:
    return tuple(have[index].decoded for index in bitmap.indices_of(account.included))


async def _report(peer: Peer, view: NetworkView, account: RoundView, targets: list[int]) -> None:
    """Say on chain that included payloads cannot be fetched, while the next round is open."""
    current = view.round
    is_in_time = current is not None and current.round == account.round + 1
    if current is None or not is_in_time or not bitmap.has(current.members, peer.index):
        return
    session = peer.identity.session
    for target in targets:
        report = instructions.report_missing(
            peer.at, session.pubkey(), peer.index, account.round, target
        )
        try:
            await peer.chain.send([report], [session])
        except ProgramRefusedError as error:
            peer.events.emit("report_refused", round=account.round, name=error.name)
        else:
            peer.events.emit("reported_missing", round=account.round, index=target)
