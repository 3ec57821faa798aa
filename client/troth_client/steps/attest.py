"""Attest: report on chain which payloads we hold, with the proof that we do.

Owns: the one attestation of a member in a round. Never: vouches for a submission that `gather` did
not pass, nor attests twice. Next: `await_close.py`.
"""

from collections.abc import Mapping
from functools import partial

from troth_attestation.possession import possession, vouched
from troth_client.network.chain import RunChain
from troth_client.network.sends import Due
from troth_client.state.records import Held, OwnRoot, RoundPlan
from troth_client.steps.transitions import close_by
from troth_client.telemetry.spans import timed
from troth_coordinator.chain import instructions
from troth_coordinator.chain.errors import Refusal
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView


@timed("attest")
async def attest(
    chain: RunChain, own: OwnRoot | None, plan: RoundPlan, held: Mapping[int, Held]
) -> None:
    """Send the attestation of this round; the last one closes the round in the same transaction.

    `own` is the root that the close would propose. An attestation that comes too late is refused
    and reported; the round goes on without it.
    """
    view = await chain.look()
    round_ = view.round
    if not plan.is_member or round_ is None or round_.round != plan.round:
        return
    if view.run.phase != Phase.ATTEST or bitmap.has(round_.attested, chain.index):
        return
    payloads = {i: one.submission.payload for i, one in held.items() if one.decoded is not None}
    await chain.send_awaited(
        lambda now: _is_awaited(chain, plan, now),
        partial(_send, chain, own, view, payloads),
        partial(_refused, chain, plan),
    )


def _is_awaited(chain: RunChain, plan: RoundPlan, view: NetworkView) -> bool:
    """Whether the chain shows that the round waits for our attestation."""
    round_ = view.round
    if round_ is None or round_.round != plan.round or view.run.phase != Phase.ATTEST:
        return False
    return not bitmap.has(round_.attested, chain.index)


async def _send(
    chain: RunChain,
    own: OwnRoot | None,
    view: NetworkView,
    payloads: Mapping[int, bytes],
    due: Due,
) -> None:
    round_ = view.run.round
    proof = possession(chain.run, round_, chain.identity.owner_address, payloads)
    attestation = instructions.attest(
        chain.at, chain.payer, chain.index, round_, vouched(payloads), proof
    )
    carried = close_by(chain, own, view, vouched(payloads))
    sent = await chain.send_carrying(attestation, carried, due)
    chain.events.emit(
        "attested", round=round_, held=len(payloads), fee=sent.fee_lamports, slot=sent.slot
    )


def _refused(chain: RunChain, plan: RoundPlan, error: Refusal) -> None:
    chain.events.emit("attest_refused", round=plan.round, name=error.name, reason=str(error))
