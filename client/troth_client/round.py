"""A round, from top to bottom: the table of contents of the client.

Owns the order of the steps and nothing else. Each step is one function in `steps/`, takes the peer
and the records of the steps before it, and returns the next record (`records.py`).
Never: decides who is included; the chain does, between `attest` and `aggregate`.
Next: any step; `participant/supervisor.py` for what happens around rounds.
"""

from troth_client.participant.peer import Peer
from troth_client.state.records import Closure
from troth_client.steps.aggregate import aggregate, apply
from troth_client.steps.attest import attest
from troth_client.steps.commit import commit
from troth_client.steps.gather import gather
from troth_client.steps.plan import make_plan
from troth_client.steps.produce import encode, train
from troth_client.steps.publish import publish
from troth_client.steps.replay import check_root
from troth_client.steps.settle import settle
from troth_coordinator.rules.view import NetworkView, RoundView


async def run_round(peer: Peer, view: NetworkView, open_round: RoundView) -> Closure:
    """Take part in the round that is open in `view`, from plan to settled residual.

    A peer that is no trainer of this round skips train, encode and commit; one that is no member
    does not attest either and only follows. `view` is what `observe` returned. Every step can be
    repeated: after a restart the same round is run again, and what is done already is not redone.
    """
    plan = await make_plan(peer, view, open_round)
    gradient = await train(peer, plan)
    submission = await encode(peer, plan, gradient)
    await commit(peer, plan, submission)
    published = await publish(peer, plan, submission)
    held = await gather(peer, plan, published)
    await attest(peer, plan, held)
    closure, payloads = await aggregate(peer, plan, held)
    await check_root(peer, closure.canonical_root)
    await apply(peer, closure, payloads)
    await settle(peer, closure)
    return closure
