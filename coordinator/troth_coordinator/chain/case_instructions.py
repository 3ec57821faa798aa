"""The instructions of cases: from an accusation to the end of the escrow.

Owns: which accounts and arguments each takes. Never: signs or sends, and checks nothing that the
program checks.
Next: `audit_instructions.py` for what comes before; `people` are explained there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solders.instruction import Instruction
from solders.pubkey import Pubkey

from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.audit_instructions import address_of, challenger_of
from troth_coordinator.chain.instructions import build, with_accounts
from troth_coordinator.rules.audit_view import AuditKind, AuditView
from troth_coordinator.rules.ids import NO_INDEX, ZERO_DIGEST

NO_SUBJECT = NO_INDEX
"""A case that is not about somebody else's payload."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a challenger says: `target` did `kind` in `round`.

    `subject` is the index whose payload a false possession is about, else NO_SUBJECT.
    """

    round: int
    target: int
    kind: AuditKind
    subject: int = NO_SUBJECT


def open_case(at: RunAddresses, challenger: Pubkey, claim: Claim) -> Instruction:
    """Accuse with a bond; the challenger also pays the rent of a new account."""
    args = {
        "round": claim.round,
        "target": claim.target,
        "kind": int(claim.kind),
        "subject": claim.subject,
    }
    return build(
        at,
        "open_case",
        args,
        challenger=challenger,
        round=at.round(claim.round),
        audit=at.audit(claim.round, claim.target, claim.kind),
    )


def draw_committee(at: RunAddresses, cranker: Pubkey, audit: AuditView) -> Instruction:
    """Draw the second committee, name another seed slot, or give the seed up: whichever is due."""
    return build(at, "draw_committee", {}, cranker=cranker, audit=address_of(at, audit))


def commit_vote(
    at: RunAddresses, session: Pubkey, audit: AuditView, index: int, commitment: bytes
) -> Instruction:
    """Commit a juror to the hash[32] of its vote."""
    return _vote(at, session, audit, (index, 0, commitment, ZERO_DIGEST))


def reveal_vote(
    at: RunAddresses, session: Pubkey, audit: AuditView, index: int, shown: tuple[int, bytes, bytes]
) -> Instruction:
    """Show a juror's vote: verdict, evidence root[32], salt[32]."""
    return _vote(at, session, audit, (index, *shown))


def settle_case(
    at: RunAddresses, cranker: Pubkey, audit: AuditView, people: Sequence[Pubkey] = ()
) -> Instruction:
    """Count the votes: convict, acquit or neither."""
    built = build(
        at,
        "settle_case",
        {},
        cranker=cranker,
        round=at.round(audit.round),
        audit=address_of(at, audit),
        challenger=challenger_of(audit) if audit.bond else None,
    )
    return with_accounts(built, [at.participant(owner) for owner in people])


def appeal_case(at: RunAddresses, owner: Pubkey, audit: AuditView) -> Instruction:
    """Ask the council to look at one's own conviction."""
    return build(at, "appeal_case", {}, owner=owner, audit=address_of(at, audit))


def resolve_appeal(at: RunAddresses, council: Pubkey, audit: AuditView) -> Instruction:
    """Reverse a conviction: all that the council can do."""
    return build(at, "resolve_appeal", {}, council=council, audit=address_of(at, audit))


def release_escrow(
    at: RunAddresses, cranker: Pubkey, audit: AuditView, people: Sequence[Pubkey] = ()
) -> Instruction:
    """Pay out what a conviction took, and close an audit that is over."""
    has_bounty = audit.escrow > 0 and audit.challenger != bytes(32)
    built = build(
        at,
        "release_escrow",
        {},
        cranker=cranker,
        audit=address_of(at, audit),
        payer=Pubkey.from_bytes(audit.payer),
        challenger=challenger_of(audit) if has_bounty else None,
    )
    return with_accounts(built, [at.participant(owner) for owner in people])


def _vote(
    at: RunAddresses,
    session: Pubkey,
    audit: AuditView,
    said: tuple[int, int, bytes, bytes],
) -> Instruction:
    args = dict(zip(("index", "verdict", "hash", "salt"), said, strict=True))
    return build(at, "vote_case", args, session=session, audit=address_of(at, audit))
