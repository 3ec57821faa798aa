"""An audit, from top to bottom: the second table of contents of the client.

Owns: the order of what a witness and a juror do, each in one pass. Never: holds up a round; every
audit runs in a task of its own (`participant/audits.py` starts and ends it).
Next: `audit/evidence.py`, `audit/verdicts.py`, `audit/votes.py` for the steps; `round.py`.

What is said is on disk before its hash is sent. So a restart begins again from the top, finds its
statement and reveals what it had committed to.
"""

from troth_client.audit.evidence import fetch_evidence, kept_submission, recompute_gradient
from troth_client.audit.verdicts import (
    NOT_SERVED,
    commit_verdict,
    judge_gradient,
    reveal_verdict,
    seal_verdict,
)
from troth_client.audit.votes import commit_vote, judge_case, reveal_vote, seal_vote
from troth_client.audit.witness import Witness, has_committed, recall
from troth_coordinator.rules.audit_view import AuditKind, AuditView


async def judge_as_witness(witness: Witness, audit: AuditView) -> None:
    """Judge one sampled payload from a seat: from its evidence to the revealed verdict."""
    statement = recall(witness, audit)
    if statement is None and has_committed(witness, audit):
        # The statement that we committed to is lost with its file; no other can be revealed.
        return
    if statement is None:
        window = witness.audits.tracker.view.run.params.verdict_commit_slots
        # The target owes its openings; a payload that we alone lack is no fault of its own.
        evidence = await fetch_evidence(
            witness, audit, window, lambda: kept_submission(witness, audit) is not None
        )
        if evidence is None:
            finding = NOT_SERVED
        else:
            gradient = await recompute_gradient(witness, audit, evidence)
            finding = await judge_gradient(witness, audit, evidence, gradient)
        statement = seal_verdict(witness, audit, finding)
    await commit_verdict(witness, audit, statement)
    await reveal_verdict(witness, audit, statement)


async def vote_as_juror(witness: Witness, case: AuditView) -> None:
    """Judge one case from the jury: recompute in reference mode, commit a vote, reveal it."""
    statement = recall(witness, case, is_juror=True)
    if statement is None and has_committed(witness, case, is_juror=True):
        return  # as above
    if statement is None:
        window = witness.audits.tracker.view.run.params.committee_commit_slots
        is_root = case.kind == AuditKind.ROOT
        # A case about a root needs nothing from others: our own replay made the evidence.
        evidence = None if is_root else await fetch_evidence(witness, case, window, lambda: True)
        verdict = await judge_case(witness, case, evidence)
        statement = seal_vote(witness, case, verdict)
    await commit_vote(witness, case, statement)
    await reveal_vote(witness, case, statement)
