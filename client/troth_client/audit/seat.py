"""A seat of an audit: fetch, recompute, judge, commit, reveal.

Owns: the order, and when to stop waiting for openings. What is said is on disk before its hash is
sent, so that a restart reveals what it had committed to.
Never: judges (`judgement.py` puts the evidence before the judge). Next: `juror.py`.
"""

from collections.abc import Hashable
from dataclasses import dataclass

from troth_attestation.sketch import NUM_BUCKETS, Sketch, sketch, sketch_hash
from troth_attestation.verdict import Reason, Statement, Verdict, VerdictKind
from troth_client.audit.evidence import find_evidence, kept_submission, own_gradient, tell_delay
from troth_client.audit.judgement import Evidence, judge_work
from troth_client.audit.sending import Purpose, send
from troth_client.participant.peer import Peer
from troth_client.state.errors import WeightsLostError
from troth_client.state.verdict_store import Duty
from troth_client.state.verdict_store import Entry as Said
from troth_coordinator.chain import audit_instructions as make
from troth_coordinator.chain.audit_instructions import Reveal
from troth_coordinator.rules.audit_view import AuditView
from troth_coordinator.rules.audits import Act, run_clock, seat_duty
from troth_coordinator.rules.view import NetworkView

LAST_SHARE = 3
"""In the last third of its window, a judge says that nobody served the openings."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a seat says, with the sketch of its gradient and the seconds that it took to compute."""

    verdict: Verdict
    sketch: Sketch
    seconds: float | None = None


NOT_SERVED = Finding(Verdict(VerdictKind.UNAVAILABLE, Reason.NOT_SERVED), (0,) * NUM_BUCKETS)
"""Nothing to compare a gradient with: none is computed. The sketch beside it is not looked at."""


async def sit(peer: Peer, view: NetworkView, audit: AuditView) -> None:
    """Do what our seat in this audit owes now, if it has one."""
    act = seat_duty(audit, peer.index, run_clock(view.run, view.slot))
    if act is None:
        return
    said = recall(peer, audit, act)
    if said is None and act is Act.COMMIT:
        found = _find(peer, view, audit)
        said = None if found is None else _seal(peer, audit, found)
    if said is None:
        return
    session = peer.identity.session.pubkey()
    if act is Act.COMMIT:
        step = make.commit_verdict(peer.at, session, audit, peer.index, said.commit())
        await send(peer, view, step, Purpose("verdict_committed", audit.key))
    else:
        shown = Reveal(int(said.kind), said.evidence, said.sketch or (), said.salt)
        step = make.reveal_verdict(peer.at, session, audit, peer.index, shown)
        await send(peer, view, step, Purpose("verdict_revealed", audit.key))


def fetched(peer: Peer, view: NetworkView, audit: AuditView) -> Evidence | None:
    """Return what is to be judged once it is here; ask at any slot."""
    return peer.chamber.hear(
        _search(audit), lambda: peer.clock.beside(find_evidence(peer, view, audit))
    )


def is_given_up(peer: Peer, view: NetworkView, audit: AuditView, window: int) -> bool:
    """Tell whether a window of so many slots is nearly over, and `fetched` has looked in vain.

    Another search may be under way: who never answers keeps nobody beyond its window.
    """
    is_late = LAST_SHARE * (audit.stage_end - run_clock(view.run, view.slot)) <= window
    return is_late and peer.chamber.was_in_vain(_search(audit))


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


def _search(audit: AuditView) -> Hashable:
    return "search", audit.key, audit.openings_root, audit.case_seed


def _find(peer: Peer, view: NetworkView, audit: AuditView) -> Finding | None:
    """Return what is there to say; None where it is worth asking again in a later slot."""
    evidence = fetched(peer, view, audit)
    if evidence is None:
        window = view.run.params.verdict_commit_slots
        # The target owes its openings; a payload that we alone lack is no fault of its own.
        is_hidden = kept_submission(peer, audit, audit.target) is not None
        return NOT_SERVED if is_hidden and is_given_up(peer, view, audit, window) else None
    matter = (audit.key, evidence.openings_root)
    return peer.chamber.hear(matter, lambda: peer.clock.beside(_judge(peer, audit, evidence)))


async def _judge(peer: Peer, audit: AuditView, evidence: Evidence) -> Finding | None:
    """Recompute and compare; None without the weights: who cannot recompute says nothing."""
    async with peer.chamber.turn:
        begun = peer.clock.seconds()
        try:
            gradient = await own_gradient(peer, audit, evidence)
        except WeightsLostError as error:
            tell_delay(peer, audit, error)
            return None
        verdict = await peer.clock.compute(judge_work, evidence, gradient, peer.config)
        proof = await peer.clock.compute(sketch, gradient, audit.seed, audit.target)
        ended = peer.clock.seconds()
    took = None if begun is None or ended is None else round(ended - begun, 4)
    return Finding(verdict, proof, took)


def _seal(peer: Peer, audit: AuditView, found: Finding) -> Said:
    verdict = found.verdict
    peer.events.emit(
        "judged",
        round=audit.round,
        target=audit.target,
        verdict=verdict.kind.name,
        reason=verdict.explain(),
        error=verdict.median_error,
        far_tiles=verdict.num_bad_tiles,
        residual=verdict.residual_ratio,
        seconds=found.seconds,
    )
    statement = Statement(
        run=peer.run,
        round=audit.round,
        target=audit.target,
        witness=peer.index,
        kind=verdict.kind,
        evidence=audit.openings_root,
        sketch_hash=sketch_hash(found.sketch),
    )
    return peer.verdicts.seal_verdict(statement, found.sketch)
