"""A seat of the second committee: judge again, in reference mode, and vote.

Owns: which test answers which kind of case, and the two steps of the vote.
Never: convicts; the program counts. Next: `seat.py` for the pieces that it shares.
"""

from troth_attestation import cases
from troth_attestation.cases import Vote
from troth_attestation.verdict import Reason, Verdict, VerdictKind
from troth_client.audit.evidence import kept_submission, own_gradient
from troth_client.audit.judgement import Evidence, judge_payload, judge_work
from troth_client.audit.seat import fetched, is_given_up, recall
from troth_client.audit.sending import Purpose, send
from troth_client.participant.peer import Peer
from troth_client.state.errors import WeightsLostError
from troth_client.state.verdict_store import Entry as Said
from troth_coordinator.chain import case_instructions as make
from troth_coordinator.rules.audit_view import AuditKind, AuditView
from troth_coordinator.rules.audits import Act, juror_duty, run_clock
from troth_coordinator.rules.view import NetworkView


async def serve(peer: Peer, view: NetworkView, audit: AuditView) -> None:
    """Do what we owe as a juror of this case now, if we are one."""
    act = juror_duty(audit, peer.index, run_clock(view.run, view.slot))
    if act is None:
        return
    said = recall(peer, audit, act, is_juror=True)
    if said is None and act is Act.COMMIT:
        verdict = _find(peer, view, audit)
        said = None if verdict is None else _seal(peer, audit, verdict)
    if said is None:
        return
    key = peer.identity.session.pubkey()
    if act is Act.COMMIT:
        step = make.commit_vote(peer.at, key, audit, peer.index, said.commit())
        await send(peer, view, step, Purpose("vote_committed", audit.key))
    else:
        shown = (int(said.kind), said.evidence, said.salt)
        step = make.reveal_vote(peer.at, key, audit, peer.index, shown)
        await send(peer, view, step, Purpose("vote_revealed", audit.key))


def _find(peer: Peer, view: NetworkView, audit: AuditView) -> Verdict | None:
    """Return the verdict on a case; None where it is worth asking again in a later slot."""
    matter = (audit.key, audit.openings_root, audit.case_seed)
    if audit.kind == AuditKind.ROOT:
        return peer.chamber.hear(
            matter, lambda: peer.clock.beside(peer.clock.compute(_judge_root, peer, audit))
        )
    evidence = fetched(peer, view, audit)
    if evidence is None:
        window = view.run.params.committee_commit_slots
        is_over = is_given_up(peer, view, audit, window)
        return _without_evidence(peer, audit) if is_over else None
    return peer.chamber.hear(matter, lambda: peer.clock.beside(_judge(peer, audit, evidence)))


async def _judge(peer: Peer, audit: AuditView, evidence: Evidence) -> Verdict:
    header, payload = evidence.header, evidence.payload
    if audit.kind == AuditKind.PAYLOAD:
        return judge_payload(header, payload, peer.replica.layout.num_tiles, peer.config)
    if audit.kind == AuditKind.POSSESSION:
        signer = (audit.run, audit.round, audit.owner)
        return cases.judge_possession(audit.possession, signer, audit.subject, payload)
    async with peer.chamber.turn:
        try:
            gradient = await own_gradient(peer, audit, evidence, in_reference=True)
        except WeightsLostError as error:
            return Verdict(VerdictKind.INCONCLUSIVE, Reason.EVIDENCE_MISSING, detail=str(error))
        return await peer.clock.compute(judge_work, evidence, gradient, peer.config)


def _without_evidence(peer: Peer, audit: AuditView) -> Verdict:
    """Say what is missing, rather than be silent.

    In a case of work `unavailable` fines the target, who owes its openings and nothing else.
    """
    if audit.kind != AuditKind.WORK:
        return Verdict(VerdictKind.UNAVAILABLE, Reason.EVIDENCE_MISSING)
    if kept_submission(peer, audit, audit.target) is None:
        return Verdict(VerdictKind.INCONCLUSIVE, Reason.EVIDENCE_MISSING)
    return Verdict(VerdictKind.UNAVAILABLE, Reason.NOT_SERVED)


def _judge_root(peer: Peer, audit: AuditView) -> Verdict:
    """Compare the vote with the root of our own copy, which exact replay made."""
    state = peer.store.load_weights(audit.round)
    replayed = None if state is None else state.state_root
    return cases.judge_root(audit.root_vote, (audit.run, audit.round, audit.owner), replayed)


def _seal(peer: Peer, audit: AuditView, verdict: Verdict) -> Said:
    peer.events.emit(
        "judged_case",
        round=audit.round,
        target=audit.target,
        kind=audit.kind.name,
        verdict=verdict.kind.name,
        reason=verdict.explain(),
    )
    return peer.verdicts.seal_vote(
        Vote(
            run=peer.run,
            round=audit.round,
            target=audit.target,
            case_kind=audit.kind,
            witness=peer.index,
            kind=verdict.kind,
            evidence=audit.openings_root,
        )
    )
