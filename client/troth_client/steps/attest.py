"""Attest: say on chain which payloads we hold, with the proof that we do.

Owns: the one attestation of a member in a round. Never: vouches for what `gather` did not pass,
nor attests twice. Next: `aggregate.py`.
"""

from collections.abc import Mapping
from dataclasses import replace

from solders.instruction import Instruction

from troth_attestation.possession import possession, vouched
from troth_client.participant.peer import Peer
from troth_client.state.records import Held, RoundPlan
from troth_client.steps.crank import closing
from troth_client.steps.observe import look
from troth_client.telemetry.spans import timed
from troth_coordinator.chain import instructions
from troth_coordinator.chain.errors import ProgramRefusedError
from troth_coordinator.rules import bitmap, progress
from troth_coordinator.rules.ids import Bitmap
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView


@timed("attest")
async def attest(peer: Peer, plan: RoundPlan, held: Mapping[int, Held]) -> None:
    """Send the attestation of this round; the last one carries the close in the same transaction.

    An attestation that is refused (too late) is reported; the round goes on without it.
    """
    view = await look(peer)
    round_ = view.round
    if not plan.is_member or round_ is None or round_.round != plan.round:
        return
    if view.run.phase != Phase.ATTEST or bitmap.has(round_.attested, peer.index):
        return
    payloads = {i: one.submission.payload for i, one in held.items() if one.decoded is not None}
    session = peer.identity.session
    proof = possession(peer.run, plan.round, peer.identity.owner_address, payloads)
    attestation = instructions.attest(
        peer.at, session.pubkey(), peer.index, plan.round, vouched(payloads), proof
    )
    try:
        carried = _closing(peer, view, vouched(payloads))
        sent = await peer.chain.send_carrying([attestation], carried, [session])
    except ProgramRefusedError as error:
        peer.events.emit("attest_refused", round=plan.round, name=error.name, reason=str(error))
        return
    peer.events.emit(
        "attested", round=plan.round, held=len(payloads), fee=sent.fee_lamports, slot=sent.slot
    )


def _closing(peer: Peer, view: NetworkView, bits: int) -> list[Instruction]:
    """Return the close that our attestation makes due, if everyone else has attested already."""
    round_ = view.round
    who = progress.attendance(view)
    if round_ is None or who.missing != bitmap.from_indices([peer.index]):
        return []
    own = replace(round_.slots[peer.index], attest_bitmap=Bitmap(bits))
    slots = (*round_.slots[: peer.index], own, *round_.slots[peer.index + 1 :])
    attested = Bitmap(round_.attested | 1 << peer.index)
    after = replace(view, round=replace(round_, slots=slots, attested=attested))
    return closing(peer, after)
