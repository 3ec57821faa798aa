"""A seat of the second committee: judge again, in reference mode, and vote.

Owns: which test answers which kind of case, and the two steps of the vote.
Never: convicts; the program counts. Next: `seat.py` for the pieces that it shares.
"""

from troth_attestation import cases
from troth_attestation import header as headers
from troth_attestation.cases import Vote
from troth_attestation.verdict import Reason, Verdict, VerdictKind
from troth_client.audit.judgement import Evidence, judge_payload, make_verdict
from troth_client.audit.seat import (
    find_exhibit,
    find_openings,
    find_submission,
    gradient_of,
    is_late,
    recall,
)
from troth_client.audit.sending import Purpose, send
from troth_client.audit.verdict_book import Entry as Said
from troth_client.peer import Peer
from troth_client.transport.errors import TransportError
from troth_coordinator.chain import case_instructions as make
from troth_coordinator.rules.audit_view import AuditKind, AuditView
from troth_coordinator.rules.audits import Act, juror_duty, run_clock
from troth_coordinator.rules.view import NetworkView


async def serve(peer: Peer, view: NetworkView, audit: AuditView) -> None:
    """Do what we owe as a juror of this case now, if we are one."""
    clock = run_clock(view.run, view.slot)
    act = juror_duty(audit, peer.index, clock)
    if act is None:
        return
    said = recall(peer, audit, act, is_juror=True)
    if act is Act.REVEAL:
        if said is not None:
            await _send(peer, view, audit, said, act)
        return
    if said is None:
        matter = (audit.key, audit.openings_root, audit.case_seed)
        is_last = is_late(audit, clock, view.run.params.committee_commit_slots)
        verdict = peer.chamber.hear(
            matter, lambda: peer.clock.beside(_judge(peer, view, audit, is_last=is_last))
        )
        if verdict is None:
            return
        peer.events.emit(
            "judged_case",
            round=audit.round,
            target=audit.target,
            kind=audit.kind.name,
            verdict=verdict.kind.name,
            reason=verdict.explain(),
        )
        said = peer.verdicts.seal_vote(
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
    await _send(peer, view, audit, said, act)


async def _judge(
    peer: Peer, view: NetworkView, audit: AuditView, *, is_last: bool
) -> Verdict | None:
    """Return the verdict on a case; None where it is worth trying again in a later slot.

    With `is_last` it is not: who got nothing to judge says so, and is not silent.
    """
    try:
        found = await _examine(peer, view, audit)
    except TransportError as error:
        peer.events.emit(
            "judging_delayed", round=audit.round, target=audit.target, reason=str(error)
        )
        found = None
    if found is None and is_last:
        return Verdict(VerdictKind.UNAVAILABLE, Reason.EVIDENCE_MISSING)
    return found


async def _examine(peer: Peer, view: NetworkView, audit: AuditView) -> Verdict | None:
    if audit.kind == AuditKind.WORK:
        return await _judge_work(peer, view, audit)
    if audit.kind == AuditKind.ROOT:
        return await peer.clock.compute(_judge_root, peer, audit)
    accused = audit.subject if audit.kind == AuditKind.POSSESSION else audit.target
    submission = await find_submission(peer, view, audit, accused)
    if submission is None:
        return None
    if audit.kind == AuditKind.PAYLOAD:
        header = headers.decode(submission.header)
        num_tiles = peer.replica.layout.num_tiles
        return judge_payload(header, submission.payload, num_tiles, peer.config)
    signer = (audit.run, audit.round, audit.owner)
    return cases.judge_possession(audit.possession, signer, audit.subject, submission.payload)


async def _judge_work(peer: Peer, view: NetworkView, audit: AuditView) -> Verdict | None:
    exhibit = await find_exhibit(peer, view, audit)
    if exhibit is None:
        return None
    openings = await find_openings(peer, view, audit, exhibit.header)
    gradient = await gradient_of(peer, audit, exhibit, in_reference=True)
    evidence = Evidence(
        audit.seed, exhibit.header, exhibit.submission.payload, openings, audit.openings_root
    )
    found = await peer.clock.compute(make_verdict, evidence, gradient, peer.config, peer.index)
    return found.verdict


def _judge_root(peer: Peer, audit: AuditView) -> Verdict:
    """Compare the vote with the root of our own copy, which exact replay made."""
    state = peer.store.load_weights(audit.round)
    replayed = None if state is None else state.state_root
    return cases.judge_root(audit.root_vote, (audit.run, audit.round, audit.owner), replayed)


async def _send(peer: Peer, view: NetworkView, audit: AuditView, said: Said, act: Act) -> None:
    key = peer.identity.session.pubkey()
    if act is Act.COMMIT:
        step = make.commit_vote(peer.at, key, audit, peer.index, said.commit())
    else:
        shown = (int(said.kind), said.evidence, said.salt)
        step = make.reveal_vote(peer.at, key, audit, peer.index, shown)
    event = "vote_committed" if act is Act.COMMIT else "vote_revealed"
    await send(peer, view, step, Purpose(event, audit.key))
