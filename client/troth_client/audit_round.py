"""An audit, from top to bottom: the second table of contents of the client.

Owns: the order of what a witness and a juror do, each in one pass. Never: holds up a round; every
audit runs in a task of its own (`participant/audits.py` starts and ends it).
Next: `audit/evidence.py`, `audit/verdicts.py`, `audit/votes.py` for the steps; `round.py`.

A verdict or vote is on disk before its hash is sent. A restart begins again from the top, finds
the stored statement and reveals what the earlier process had committed to. This needs no weights,
so `participant/restarting.py` does it before they are read.
"""

from troth_client.audit.evidence import fetch_evidence, kept_submission, recompute_gradient
from troth_client.audit.verdicts import (
    NOT_SERVED,
    Finding,
    commit_verdict,
    judge_gradient,
    reveal_verdict,
    seal_verdict,
)
from troth_client.audit.votes import commit_vote, judge_case, reveal_vote, seal_vote
from troth_client.audit.witness import Speaker, Witness, has_committed, recall
from troth_client.state.verdict_store import KeptStatement
from troth_coordinator.rules.audit_view import AuditKind, AuditView


async def judge_as_witness(witness: Witness, audit: AuditView) -> None:
    """Judge one sampled payload from a seat: from its evidence to the revealed verdict."""
    statement = recall(witness, audit)
    if statement is None and has_committed(witness, audit):
        # The statement that we committed to is lost with its file; no other can be revealed.
        return
    if statement is None:
        statement = seal_verdict(witness, audit, await find_verdict(witness, audit))
    await tell_verdict(witness, audit, statement)


async def tell_verdict(speaker: Speaker, audit: AuditView, statement: KeptStatement) -> None:
    """Commit to a verdict on disk and reveal it; after a restart, go on where we were."""
    await commit_verdict(speaker, audit, statement)
    await reveal_verdict(speaker, audit, statement)


async def find_verdict(witness: Witness, audit: AuditView) -> Finding:
    """Fetch the evidence, recompute the gradient, judge; none of that outlives the finding."""
    window = witness.audits.tracker.view.run.params.verdict_commit_slots
    # The target owes its openings; a payload that we alone lack is no fault of its own.
    evidence = await fetch_evidence(
        witness, audit, window, lambda: kept_submission(witness, audit) is not None
    )
    if evidence is None:
        return NOT_SERVED
    gradient = await recompute_gradient(witness, audit, evidence)
    return await judge_gradient(witness, audit, evidence, gradient)


async def vote_as_juror(witness: Witness, case: AuditView) -> None:
    """Judge one case from the jury: recompute in reference mode, commit a vote, reveal it."""
    statement = recall(witness, case, is_juror=True)
    if statement is None and has_committed(witness, case, is_juror=True):
        return  # as above
    if statement is None:
        window = witness.audits.tracker.view.run.params.jury_commit_slots
        is_root = case.kind == AuditKind.ROOT
        # A case about a root needs no evidence from others: our own replay computes the root.
        evidence = None if is_root else await fetch_evidence(witness, case, window, lambda: True)
        statement = seal_vote(witness, case, await judge_case(witness, case, evidence))
    await tell_vote(witness, case, statement)


async def tell_vote(speaker: Speaker, case: AuditView, statement: KeptStatement) -> None:
    """Commit to a vote on disk and reveal it; after a restart, go on where we were."""
    await commit_vote(speaker, case, statement)
    await reveal_vote(speaker, case, statement)
