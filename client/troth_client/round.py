"""A round, from top to bottom: the first table of contents of the client.

Owns: the order of the steps and nothing else. Each step is one function in `steps/`, which takes
what it uses and the records of the steps before it (`state/records.py`).
Never: decides who is included; the chain does, between `attest` and `await_close`.
Next: any step; `audit_round.py` for what happens beside rounds, `participant/` for who calls both.
"""

from troth_client.member import Member
from troth_client.state.records import Closure
from troth_client.steps.attest import attest
from troth_client.steps.await_close import await_close
from troth_client.steps.commit import commit
from troth_client.steps.gather import gather
from troth_client.steps.plan import make_plan
from troth_client.steps.produce import encode, train
from troth_client.steps.publish import publish
from troth_client.steps.replay import check_root
from troth_client.steps.settle import apply, carry, settle
from troth_coordinator.rules.view import NetworkView, RoundView


async def run_round(member: Member, view: NetworkView, open_round: RoundView) -> Closure:
    """Take part in the round that is open in `view`, from plan to settled residual.

    `view` is the newest view of the chain. A participant that is not a trainer of this round skips
    train, encode and commit. A participant that is not a member does not attest either; it only
    follows. Every step can be repeated: a restarted process runs the same round again and skips
    the steps that are already done.
    """
    chain, state, submissions = member.chain, member.state, member.submissions
    plan = await make_plan(state, chain.index, view, open_round)
    gradient = await train(state, member.work, plan)
    submission = await encode(state, member.work, chain, plan, gradient)
    await commit(chain, state, plan, submission)
    published = await publish(chain, submissions, plan, submission)
    held = await gather(chain, submissions, plan, published)
    await attest(chain, state.replica.known_root, plan, held)
    closure, payloads = await await_close(chain, submissions, plan.round, held)
    await check_root(member.replay, closure.canonical_root)
    await carry(state, closure)
    await apply(state, closure, payloads)
    await settle(chain, submissions, closure, member.audits.tracker)
    return closure
