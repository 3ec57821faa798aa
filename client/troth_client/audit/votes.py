"""The vote of a juror: judged again in reference mode, sealed, committed, revealed.

Owns: which test answers which kind of case. Never: convicts; the program counts votes.
Next: `audit_round.py`, which calls these in order.
"""

from functools import partial

from troth_attestation import cases
from troth_attestation.cases import NO_SKETCH, Vote
from troth_attestation.sketch import sketch_hash
from troth_attestation.verdict import Reason, Verdict, VerdictKind
from troth_client.audit.duty import while_owed
from troth_client.audit.evidence import (
    is_late,
    kept_submission,
    or_none,
    recompute_in_reference,
)
from troth_client.audit.judgement import Evidence, judge_payload
from troth_client.audit.sending import Purpose, send
from troth_client.audit.verdicts import Finding, judge_and_sketch
from troth_client.audit.witness import Speaker, Witness
from troth_client.state.errors import WeightsLostError
from troth_client.state.verdict_store import KeptStatement
from troth_coordinator.chain import case_instructions as make
from troth_coordinator.chain.audit_instructions import Reveal
from troth_coordinator.rules.audit_view import AuditKind, AuditView
from troth_coordinator.rules.audits import Act, juror_duty


async def judge_case(witness: Witness, case: AuditView, evidence: Evidence | None) -> Finding:
    """Return the finding on a case; `evidence` is None where nobody served it in time.

    Its sketch is under the seed of the case, zeros where no gradient was computed.
    """
    if case.kind == AuditKind.WORK and evidence is not None:
        return await _judge_work(witness, case, evidence)
    return Finding(await _judge_exactly(witness, case, evidence), NO_SKETCH)


async def _judge_exactly(witness: Witness, case: AuditView, evidence: Evidence | None) -> Verdict:
    if case.kind == AuditKind.ROOT:
        await _until_replayed(witness, case)
        judge = partial(_judge_root, witness, case)
        found = await witness.chain.runtime.compute(or_none, witness, case, judge)
        return found or Verdict(VerdictKind.INCONCLUSIVE, Reason.EVIDENCE_MISSING)
    if evidence is None:
        return _without_evidence(witness, case)
    state, header, payload = witness.state, evidence.header, evidence.payload
    if case.kind == AuditKind.PAYLOAD:
        return judge_payload(header, payload, state.num_tiles, state.config)
    signer = (case.run, case.round, case.owner)
    return cases.judge_possession(case.possession, signer, case.subject, payload)


async def _judge_work(witness: Witness, case: AuditView, evidence: Evidence) -> Finding:
    await _until_replayed(witness, case)
    try:
        own = await recompute_in_reference(witness, case, evidence)
    except WeightsLostError as error:
        verdict = Verdict(VerdictKind.INCONCLUSIVE, Reason.EVIDENCE_MISSING, detail=str(error))
        return Finding(verdict, NO_SKETCH)
    return Finding(*await judge_and_sketch(witness, case, evidence, own, case.case_seed))


def seal_vote(witness: Witness, case: AuditView, found: Finding) -> KeptStatement:
    """Write the vote, its sketch and its salt to disk: a restarted process reveals the same."""
    verdict = found.verdict
    witness.chain.events.emit(
        "judged_case",
        round=case.round,
        target=case.target,
        kind=case.kind.name,
        verdict=verdict.kind.name,
        reason=verdict.explain(),
    )
    return witness.audits.verdicts.seal_vote(
        Vote(
            run=witness.chain.run,
            round=case.round,
            target=case.target,
            case_kind=case.kind,
            witness=witness.chain.index,
            kind=verdict.kind,
            evidence=case.openings_root,
            sketch_hash=sketch_hash(found.sketch),
        ),
        found.sketch,
    )


async def commit_vote(witness: Speaker, case: AuditView, statement: KeptStatement) -> None:
    """Send the hash of our vote until the chain shows it or the window has ended."""
    chain, tracker = witness.chain, witness.audits.tracker
    async for view, now in while_owed(witness, case, juror_duty, Act.COMMIT):
        step = make.commit_vote(chain.at, chain.payer, now, chain.index, statement.commit())
        await send(chain, tracker, view, step, Purpose("vote_committed", now.key))


async def reveal_vote(witness: Speaker, case: AuditView, statement: KeptStatement) -> None:
    """Show our vote once all may, until the chain shows it or the window has ended."""
    chain, tracker = witness.chain, witness.audits.tracker
    shown = Reveal(int(statement.kind), statement.evidence, statement.sketch, statement.salt)
    async for view, now in while_owed(witness, case, juror_duty, Act.REVEAL):
        step = make.reveal_vote(chain.at, chain.payer, now, chain.index, shown)
        await send(chain, tracker, view, step, Purpose("vote_revealed", now.key))


async def _until_replayed(witness: Witness, case: AuditView) -> None:
    """Wait until our weights have come to the round of a case, or the last third of its window.

    After a restart they are replayed first; a juror that spoke before could only be inconclusive.
    """
    tracker, replica = witness.audits.tracker, witness.state.replica
    view = tracker.view
    while replica.round < case.round and not is_late(view, case, view.run.params.jury_commit_slots):
        view = await tracker.next()


def _without_evidence(witness: Witness, case: AuditView) -> Verdict:
    """Return the vote of a juror that lacks evidence; silence would be fined.

    In a case about work, `unavailable` fines the target. The target owes its openings and nothing
    else.
    """
    if case.kind != AuditKind.WORK:
        return Verdict(VerdictKind.UNAVAILABLE, Reason.EVIDENCE_MISSING)
    if kept_submission(witness, case) is None:
        return Verdict(VerdictKind.INCONCLUSIVE, Reason.EVIDENCE_MISSING)
    return Verdict(VerdictKind.UNAVAILABLE, Reason.NOT_SERVED)


def _judge_root(witness: Witness, case: AuditView) -> Verdict:
    """Compare the target's root vote with the root that our own exact replay computed."""
    saved = witness.state.store.load_weights(case.round)
    replayed = None if saved is None else saved.state_root
    return cases.judge_root(case.root_vote, (case.run, case.round, case.owner), replayed)
