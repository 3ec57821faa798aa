"""A seat of an audit: fetch, recompute, judge, commit, reveal.

Owns: the order, and when to stop waiting for openings. What is said is on disk before its hash is
sent, so that a restart reveals what it had committed to.
Never: judges (`judgement.py` puts the evidence before the judge). Next: `juror.py`.
"""

from dataclasses import dataclass

from troth_attestation import header as headers
from troth_attestation.header import Header, header_hash
from troth_attestation.state import Float32
from troth_client.audit.drawn import sampled_payload
from troth_client.audit.errors import WeightsLostError
from troth_client.audit.judgement import Evidence, Judgement, make_verdict
from troth_client.audit.recompute import named_sequences, recompute, recompute_reference
from troth_client.audit.sending import Purpose, send
from troth_client.audit.verdict_book import Duty
from troth_client.audit.verdict_book import Entry as Said
from troth_client.peer import Peer
from troth_client.steps.fetch import endpoints, obtain
from troth_client.steps.observe import read_round
from troth_client.store.entries import Submission, WeightState
from troth_client.transport.errors import TransportError
from troth_coordinator.chain import audit_instructions as make
from troth_coordinator.chain.audit_instructions import Reveal
from troth_coordinator.rules.assignment import SequenceOrder, rank_start, sequences_of
from troth_coordinator.rules.audit_view import AuditView
from troth_coordinator.rules.audits import Act, run_clock, seat_duty
from troth_coordinator.rules.view import NetworkView

LAST_SHARE = 3
"""In the last third of its window, a judge says that nobody served the openings."""


@dataclass(frozen=True, slots=True)
class Exhibit:
    """What a judge needs besides the openings: the submission and the state that it trained on."""

    submission: Submission
    header: Header
    state: WeightState


async def sit(peer: Peer, view: NetworkView, audit: AuditView) -> None:
    """Do what our seat in this audit owes now, if it has one."""
    clock = run_clock(view.run, view.slot)
    act = seat_duty(audit, peer.index, clock)
    if act is None:
        return
    said = recall(peer, audit, act)
    if act is Act.REVEAL:
        if said is not None:
            await _reveal(peer, view, audit, said)
        return
    if said is None:
        window = view.run.params.verdict_commit_slots
        is_last = is_late(audit, clock, window)
        judgement = peer.chamber.hear(
            (audit.key, audit.openings_root),
            lambda: peer.clock.beside(_judge(peer, view, audit, is_last=is_last)),
        )
        if judgement is None:
            return
        said = peer.verdicts.seal_verdict(judgement.statement, judgement.sketch)
    await _commit(peer, view, audit, said)


def is_late(audit: AuditView, clock: int, window: int) -> bool:
    """Tell whether a window of so many slots is nearly over."""
    return LAST_SHARE * (audit.stage_end - clock) <= window


def recall(peer: Peer, audit: AuditView, act: Act, *, is_juror: bool = False) -> Said | None:
    """Return what we have said of an audit.

    Where we have not committed to it on this chain and the openings are others than those that it
    speaks of, a fork drew the seed anew: it is forgotten.
    """
    duty = Duty(audit.round, audit.target, audit.kind, is_juror)
    said = peer.verdicts.find(duty)
    if said is None or act is Act.REVEAL or said.evidence == audit.openings_root:
        return said
    peer.verdicts.drop(duty)
    return None


async def find_exhibit(peer: Peer, view: NetworkView, audit: AuditView) -> Exhibit | None:
    """Return the audited submission and w_r from disk or from holders; None while out of reach."""
    try:
        submission = await find_submission(peer, view, audit, audit.target)
        if submission is None:
            return None
        state = await peer.clock.compute(peer.kept.load, audit.round, audit.canonical_root)
    except (TransportError, WeightsLostError) as error:
        peer.events.emit(
            "judging_delayed", round=audit.round, target=audit.target, reason=str(error)
        )
        return None
    return Exhibit(submission, headers.decode(submission.header), state)


async def find_submission(
    peer: Peer, view: NetworkView, audit: AuditView, index: int
) -> Submission | None:
    """Return the submission that the audit names, from disk, or from holders while the ring has it.

    On disk may lie what a fork took back.
    """
    own = [peer.store.load_submission(audit.round)] if index == peer.index else []
    for kept in (*own, peer.store.load_peer(audit.round, index)):
        if kept is not None and header_hash(headers.decode(kept.header)) == audit.header_hash:
            return kept
    account = await read_round(peer, audit.round)
    if account is None or account.slots[index].header_hash != audit.header_hash:
        return None
    return (await obtain(peer, account, view, index)).submission


async def gradient_of(
    peer: Peer, audit: AuditView, exhibit: Exhibit, *, in_reference: bool
) -> Float32:
    """Return our own D(g), fp32 [tiles, 64, 64], of the sequences that the target had to take."""
    batch = await peer.clock.compute(
        peer.data.sequences, await assigned_sequences(peer, audit, exhibit)
    )
    if in_reference:
        return await peer.clock.compute(
            recompute_reference, peer.config, exhibit.state.tensors, batch
        )
    return await peer.clock.compute(
        recompute, peer.config, exhibit.state.tensors, batch, peer.device
    )


async def assigned_sequences(peer: Peer, audit: AuditView, exhibit: Exhibit) -> tuple[int, ...]:
    """Return the ids that the chain assigned to the target, whatever its header says.

    Once the ring has dropped the round nobody knows its ranks: then those of the rank that the
    header names, and if it names none, those of the first one, of which its work is not either.
    """
    order = SequenceOrder(len(peer.data), peer.config.manifest_digest())
    per_payload = peer.config.train.sequences_per_payload
    round_ = peer.docket.round(audit.round) or await read_round(peer, audit.round)
    if round_ is not None:
        return sequences_of(order, round_, audit.target, per_payload)
    cursor = exhibit.state.cursor
    named = named_sequences(exhibit.header, order, cursor, per_payload)
    return named or order.sequences(rank_start(cursor, 0, per_payload), per_payload)


async def find_openings(peer: Peer, view: NetworkView, audit: AuditView, header: Header) -> bytes:
    """Return the bytes under the openings root on chain. Raises FetchError."""
    sampled = sampled_payload(audit.seed, header, peer.replica.layout.num_tiles)
    holders = await endpoints(peer, view, audit.target)
    return await peer.desk.fetch(peer.transport, sampled, audit.openings_root, holders)


async def _judge(
    peer: Peer, view: NetworkView, audit: AuditView, *, is_last: bool
) -> Judgement | None:
    """Return what we find; None where it is worth trying again in a later slot."""
    exhibit = await find_exhibit(peer, view, audit)
    if exhibit is None:
        return None
    openings: bytes | None = None
    try:
        openings = await find_openings(peer, view, audit, exhibit.header)
    except TransportError:
        if not is_last:
            return None
    begun = peer.clock.seconds()
    gradient = await gradient_of(peer, audit, exhibit, in_reference=False)
    evidence = Evidence(
        sigma=audit.seed,
        header=exhibit.header,
        payload=exhibit.submission.payload,
        openings=openings,
        openings_root=audit.openings_root,
    )
    found = await peer.clock.compute(make_verdict, evidence, gradient, peer.config, peer.index)
    ended = peer.clock.seconds()
    peer.events.emit(
        "judged",
        round=audit.round,
        target=audit.target,
        verdict=found.verdict.kind.name,
        reason=found.verdict.explain(),
        error=found.verdict.median_error,
        far_tiles=found.verdict.num_bad_tiles,
        residual=found.verdict.residual_ratio,
        seconds=None if begun is None or ended is None else round(ended - begun, 4),
    )
    return found


async def _commit(peer: Peer, view: NetworkView, audit: AuditView, said: Said) -> None:
    session = peer.identity.session.pubkey()
    step = make.commit_verdict(peer.at, session, audit, peer.index, said.commit())
    await send(peer, view, step, Purpose("verdict_committed", audit.key))


async def _reveal(peer: Peer, view: NetworkView, audit: AuditView, said: Said) -> None:
    session = peer.identity.session.pubkey()
    shown = Reveal(int(said.kind), said.evidence, said.sketch or (), said.salt)
    step = make.reveal_verdict(peer.at, session, audit, peer.index, shown)
    await send(peer, view, step, Purpose("verdict_revealed", audit.key))
