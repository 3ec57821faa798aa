"""The instructions of audits: from the sample to the outcome of the seats.

Owns: which accounts and arguments each takes, as `instructions.py` does for the life of a run.
Never: signs or sends, and checks nothing that the program checks.
Next: `case_instructions.py` for what follows an accusation.

Whoever may be penalised beyond its stake is passed as `people`: owners whose Participant accounts
hold tickets, or must remember a bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solders.instruction import Instruction
from solders.pubkey import Pubkey

from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.instructions import build, with_accounts
from troth_coordinator.rules.audit_view import AuditKind, AuditView


@dataclass(frozen=True, slots=True)
class Reveal:
    """What a seat shows: verdict, evidence root[32], sketch of 64 int32, salt[32]."""

    verdict: int
    evidence: bytes
    sketch: tuple[int, ...]
    salt: bytes


def open_audit(at: RunAddresses, payer: Pubkey, round_: int, target: int) -> Instruction:
    """Open the audit of a sampled target; the payer's rent comes back at the end."""
    args = {"round": round_, "target": target}
    return build(
        at,
        "open_audit",
        args,
        payer=payer,
        round=at.round(round_),
        audit=at.audit(round_, target),
    )


def request_audit(at: RunAddresses, challenger: Pubkey, round_: int, target: int) -> Instruction:
    """Pay five witness fees in advance for one more audit of the round in its Attest phase."""
    args = {"round": round_, "target": target}
    return build(
        at,
        "request_audit",
        args,
        challenger=challenger,
        round=at.round(round_),
        audit=at.audit(round_, target),
    )


def post_openings(
    at: RunAddresses, session: Pubkey, round_: int, target: int, root: bytes
) -> Instruction:
    """Record the root[32] of the target's openings; opens the audit if nobody has."""
    args = {"round": round_, "target": target, "root": root}
    return build(
        at,
        "post_openings",
        args,
        session=session,
        payer=session,
        round=at.round(round_),
        audit=at.audit(round_, target),
    )


def commit_verdict(
    at: RunAddresses, session: Pubkey, audit: AuditView, index: int, commitment: bytes
) -> Instruction:
    """Commit a seat to the hash[32] of its verdict."""
    args = {"index": index, "commitment": commitment}
    return build(at, "commit_verdict", args, session=session, audit=address_of(at, audit))


def reveal_verdict(
    at: RunAddresses, session: Pubkey, audit: AuditView, index: int, shown: Reveal
) -> Instruction:
    """Show what a seat committed to."""
    args = {
        "index": index,
        "verdict": shown.verdict,
        "evidence": shown.evidence,
        "sketch": list(shown.sketch),
        "salt": shown.salt,
    }
    return build(at, "reveal_verdict", args, session=session, audit=address_of(at, audit))


def extend_audit(at: RunAddresses, cranker: Pubkey, audit: AuditView) -> Instruction:
    """Seat up to two more witnesses where the first three do not agree."""
    return build(at, "extend_audit", {}, cranker=cranker, audit=address_of(at, audit))


def settle_audit(
    at: RunAddresses, cranker: Pubkey, audit: AuditView, people: Sequence[Pubkey] = ()
) -> Instruction:
    """Decide by the verdicts, pay the seats, penalise who was silent."""
    built = build(
        at,
        "settle_audit",
        {},
        cranker=cranker,
        round=at.round(audit.round),
        audit=address_of(at, audit),
        challenger=challenger_of(audit) if audit.prepaid else None,
    )
    return with_accounts(built, [at.participant(owner) for owner in people])


def address_of(at: RunAddresses, audit: AuditView) -> Pubkey:
    """Return the address of an audit that was read from the chain."""
    return at.audit(audit.round, audit.target, AuditKind(audit.kind))


def challenger_of(audit: AuditView) -> Pubkey:
    """Return who paid in advance or posted the bond."""
    return Pubkey.from_bytes(audit.challenger)
