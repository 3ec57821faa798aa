"""Instructions of audits, from the sample to the outcome.

Generated: run scripts/gen/instructions.py instead of editing.

Owns: one function per instruction: its arguments, and where its accounts come from.
Never: signs or sends, and checks nothing that the program checks.
Next: ../audit_instructions.py, which callers import; ../building.py for what `build` adds.

`at` names the run. A key that must sign has the name of its role: authority, owner, session, payer.
"""

from __future__ import annotations

from collections.abc import Sequence

from solders.instruction import Instruction
from solders.pubkey import Pubkey

from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.building import build, challenger_of, with_participants
from troth_coordinator.chain.terms import Reveal
from troth_coordinator.rules.audit_view import AuditView


def open_audit(at: RunAddresses, payer: Pubkey, round_: int, target: int) -> Instruction:
    """Opens the audit of a sampled or requested target.

    payer: pays the rent, and gets it back when the audit is closed.
    """
    return build(
        at,
        "open_audit",
        {"round": round_, "target": target},
        payer=payer,
        round=at.round(round_),
        audit=at.audit(round_, target),
    )


def request_audit(at: RunAddresses, challenger: Pubkey, round_: int, target: int) -> Instruction:
    """Pays for one more audit of the round under way, in advance.

    challenger: pays the fees in advance or posts the bond, and the rent of an account created here.
    """
    return build(
        at,
        "request_audit",
        {"round": round_, "target": target},
        challenger=challenger,
        round=at.round(round_),
        audit=at.audit(round_, target),
    )


def post_openings(
    at: RunAddresses, session: Pubkey, round_: int, target: int, root: bytes
) -> Instruction:
    """Fixes what a target shows; opens the audit if nobody has.

    session: session key of the target.
    """
    return build(
        at,
        "post_openings",
        {"round": round_, "target": target, "root": root},
        session=session,
        payer=session,
        round=at.round(round_),
        audit=at.audit(round_, target),
    )


def commit_verdict(
    at: RunAddresses, session: Pubkey, audit: AuditView, index: int, commitment: bytes
) -> Instruction:
    """Commits a seat to a hidden verdict.

    session: session key of the judge.
    """
    return build(
        at,
        "commit_verdict",
        {"index": index, "commitment": commitment},
        session=session,
        audit=at.audit(*audit.key),
    )


def reveal_verdict(
    at: RunAddresses, session: Pubkey, audit: AuditView, index: int, shown: Reveal
) -> Instruction:
    """Shows the verdict of a seat.

    session: session key of the judge.
    """
    return build(
        at,
        "reveal_verdict",
        {
            "index": index,
            "verdict": shown.verdict,
            "evidence": shown.evidence,
            "sketch": shown.sketch,
            "salt": shown.salt,
        },
        session=session,
        audit=at.audit(*audit.key),
    )


def extend_audit(at: RunAddresses, cranker: Pubkey, audit: AuditView) -> Instruction:
    """Seats the remaining witnesses where the first ones do not agree.

    cranker: sender of the transaction, open to anyone.
    """
    return build(at, "extend_audit", {}, cranker=cranker, audit=at.audit(*audit.key))


def settle_audit(
    at: RunAddresses, cranker: Pubkey, audit: AuditView, people: Sequence[Pubkey] = ()
) -> Instruction:
    """Ends an audit: outcome, fees and penalties of the seats.

    cranker: sender of the transaction, open to anyone.
    people: owners who may be penalised beyond their stake, or barred.
    """
    return with_participants(
        build(
            at,
            "settle_audit",
            {},
            cranker=cranker,
            round=at.round(audit.round),
            audit=at.audit(*audit.key),
            challenger=challenger_of(audit) if audit.prepaid else None,
        ),
        at,
        people,
    )
