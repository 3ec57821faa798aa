"""What a judge needs: the audited payload and its openings, and a gradient of its own to compare.

Owns: where each comes from, and that only what the chain names is judged.
Never: judges (`judgement.py` puts this before the judge), sends, or tries a second time.
Next: `seat.py`, `juror.py`.
"""

from troth_attestation import header as headers
from troth_attestation.header import Header, header_hash
from troth_attestation.state import Float32
from troth_client.audit.drawn import sampled_payload
from troth_client.audit.judgement import Evidence
from troth_client.audit.recompute import named_sequences, recompute, recompute_reference
from troth_client.network.fetch import endpoints, obtain
from troth_client.participant.peer import Peer
from troth_client.steps.observe import read_round
from troth_client.storage.entries import Submission
from troth_client.transport.errors import TransportError
from troth_coordinator.rules.assignment import SequenceOrder, rank_start, sequences_of
from troth_coordinator.rules.audit_view import AuditKind, AuditView
from troth_coordinator.rules.view import NetworkView


async def find_evidence(peer: Peer, view: NetworkView, audit: AuditView) -> Evidence | None:
    """Return what an audit or a case is about, from disk or from holders.

    None while something of it is out of reach; another try may bring it. Only work has openings.
    """
    accused = audit.subject if audit.kind == AuditKind.POSSESSION else audit.target
    openings: bytes | None = None
    try:
        submission = await find_submission(peer, view, audit, accused)
        if submission is None:
            return None
        header = headers.decode(submission.header)
        if audit.kind == AuditKind.WORK:
            openings = await find_openings(peer, view, audit, header)
    except TransportError as error:
        tell_delay(peer, audit, error)
        return None
    return Evidence(audit.seed, header, submission.payload, openings, audit.openings_root)


async def find_submission(
    peer: Peer, view: NetworkView, audit: AuditView, index: int
) -> Submission | None:
    """Return the submission that the audit names, from disk, or from holders while the ring has it.

    Raises TransportError.
    """
    kept = kept_submission(peer, audit, index)
    account = None if kept is not None else await read_round(peer, audit.round)
    if account is None or account.slots[index].header_hash != audit.header_hash:
        return kept
    return (await obtain(peer, account, view, index)).submission


def kept_submission(peer: Peer, audit: AuditView, index: int) -> Submission | None:
    """Return the submission that the audit names if it is on disk: a fork may have left another."""
    own = [peer.store.load_submission(audit.round)] if index == peer.index else []
    for kept in (*own, peer.store.load_peer(audit.round, index)):
        if kept is not None and header_hash(headers.decode(kept.header)) == audit.header_hash:
            return kept
    return None


async def find_openings(peer: Peer, view: NetworkView, audit: AuditView, header: Header) -> bytes:
    """Return the bytes under the openings root on chain. Raises FetchError."""
    sampled = sampled_payload(audit.seed, header, peer.replica.layout.num_tiles)
    holders = await endpoints(peer, view, audit.target)
    return await peer.desk.fetch(peer.transport, sampled, audit.openings_root, holders)


async def own_gradient(
    peer: Peer, audit: AuditView, evidence: Evidence, *, in_reference: bool = False
) -> Float32:
    """Return our own D(g), fp32 [tiles, 64, 64], of the sequences that the target had to take.

    Raises WeightsLostError.
    """
    state = await peer.clock.compute(peer.kept.load, audit.round, audit.canonical_root)
    ids = await assigned_sequences(peer, audit, evidence.header, state.cursor)
    batch = await peer.clock.compute(peer.data.sequences, ids)
    if in_reference:
        return await peer.clock.compute(recompute_reference, peer.config, state.tensors, batch)
    return await peer.clock.compute(recompute, peer.config, state.tensors, batch, peer.device)


async def assigned_sequences(
    peer: Peer, audit: AuditView, header: Header, cursor: int
) -> tuple[int, ...]:
    """Return the ids that the chain assigned to the target, whatever its header says.

    Once the ring has dropped the round nobody knows its ranks: then those of the rank that the
    header names, and if it names none, those of the first one, of which its work is not either.
    `cursor` is that before the round.
    """
    order = SequenceOrder(len(peer.data), peer.config.manifest_digest())
    per_payload = peer.config.train.sequences_per_payload
    round_ = peer.tracker.round(audit.round) or await read_round(peer, audit.round)
    if round_ is not None:
        return sequences_of(order, round_, audit.target, per_payload)
    named = named_sequences(header, order, cursor, per_payload)
    return named or order.sequences(rank_start(cursor, 0, per_payload), per_payload)


def tell_delay(peer: Peer, audit: AuditView, error: Exception) -> None:
    """Say what an audit waits for."""
    peer.events.emit("judging_delayed", round=audit.round, target=audit.target, reason=str(error))
