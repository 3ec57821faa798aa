"""Instructions of cases, from an accusation to the end of the escrow.

Generated: run scripts/gen/instructions.py instead of editing.

Owns: one function per instruction: its arguments, and where its accounts come from.
Never: signs or sends, and checks nothing that the program checks.
Next: ../case_instructions.py, which callers import; ../building.py for what `build` adds.

`at` names the run. A key that must sign has the name of its role: authority, owner, session, payer.
"""

from __future__ import annotations

from collections.abc import Sequence

from solders.instruction import Instruction
from solders.pubkey import Pubkey

from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.building import (
    build,
    challenger_of,
    payer_of,
    rewarded_challenger_of,
    with_participants,
)
from troth_coordinator.chain.terms import Claim, JurorVote
from troth_coordinator.rules.audit_view import AuditView


def open_case(at: RunAddresses, challenger: Pubkey, claim: Claim) -> Instruction:
    """Posts a bond, so that a jury judges.

    challenger: pays the fees in advance or posts the bond, and the rent of an account created here.
    """
    return build(
        at,
        "open_case",
        {
            "round": claim.round,
            "target": claim.target,
            "kind": claim.kind,
            "subject": claim.subject,
        },
        challenger=challenger,
        round=at.round(claim.round),
        audit=at.audit(claim.round, claim.target, claim.kind),
    )


def draw_jury(at: RunAddresses, cranker: Pubkey, audit: AuditView) -> Instruction:
    """Fixes the seed of a case and seats the jury.

    cranker: sender of the transaction, open to anyone.
    """
    return build(at, "draw_jury", {}, cranker=cranker, audit=at.audit(*audit.key))


def vote_case(
    at: RunAddresses, session: Pubkey, audit: AuditView, index: int, vote: JurorVote
) -> Instruction:
    """Commits to the hash of a vote (verdict 0), or shows the vote behind it.

    session: session key of the judge.
    """
    return build(
        at,
        "vote_case",
        {
            "index": index,
            "verdict": vote.verdict,
            "hash": vote.hash,
            "sketch": vote.sketch,
            "salt": vote.salt,
        },
        session=session,
        audit=at.audit(*audit.key),
    )


def settle_case(
    at: RunAddresses, cranker: Pubkey, audit: AuditView, people: Sequence[Pubkey] = ()
) -> Instruction:
    """Ends a case once its jury has voted.

    cranker: sender of the transaction, open to anyone.
    people: owners who may be penalised beyond their stake, or barred.
    """
    return with_participants(
        build(
            at,
            "settle_case",
            {},
            cranker=cranker,
            round=at.round(audit.round),
            audit=at.audit(*audit.key),
            challenger=challenger_of(audit) if audit.bond else None,
        ),
        at,
        people,
    )


def appeal_case(at: RunAddresses, owner: Pubkey, audit: AuditView) -> Instruction:
    """Asks the council to look at a conviction.

    owner: owner of the convicted participant.
    """
    return build(at, "appeal_case", {}, owner=owner, audit=at.audit(*audit.key))


def reverse_case(at: RunAddresses, council: Pubkey, audit: AuditView) -> Instruction:
    """Reverses a conviction; only the council, and nothing else.

    council: the council of the run.
    """
    return build(at, "reverse_case", {}, council=council, audit=at.audit(*audit.key))


def release_escrow(
    at: RunAddresses, cranker: Pubkey, audit: AuditView, people: Sequence[Pubkey] = ()
) -> Instruction:
    """Pays the escrow of a conviction, and closes any audit that is over.

    cranker: sender of the transaction, open to anyone.
    people: owners who may be penalised beyond their stake, or barred.
    """
    return with_participants(
        build(
            at,
            "release_escrow",
            {},
            cranker=cranker,
            audit=at.audit(*audit.key),
            payer=payer_of(audit),
            challenger=rewarded_challenger_of(audit),
        ),
        at,
        people,
    )
