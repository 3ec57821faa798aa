"""Instructions of cases, from an accusation to the end of the escrow: what callers import.

Owns: the two forms of a juror's vote, and the list of all other names.
Never: signs or sends, and checks nothing that the program checks.
Next: builders/cases.py for the functions, generated from the program's IDL; audit_instructions.py
for what comes before, and for what `people` are.
"""

from __future__ import annotations

from solders.instruction import Instruction
from solders.pubkey import Pubkey

from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.builders.cases import (
    appeal_case,
    draw_jury,
    open_case,
    release_escrow,
    reverse_case,
    settle_case,
    vote_case,
)
from troth_coordinator.chain.terms import (
    NO_SUBJECT,
    Claim,
    JurorVote,
)
from troth_coordinator.rules.audit_view import AuditView
from troth_coordinator.rules.ids import ZERO_DIGEST

__all__ = [
    "NO_SUBJECT",
    "Claim",
    "JurorVote",
    "appeal_case",
    "commit_vote",
    "draw_jury",
    "open_case",
    "release_escrow",
    "reveal_vote",
    "reverse_case",
    "settle_case",
    "vote_case",
]


def commit_vote(
    at: RunAddresses, session: Pubkey, audit: AuditView, index: int, commitment: bytes
) -> Instruction:
    """Commit a juror to the hash[32] of its vote."""
    return vote_case(at, session, audit, index, JurorVote(0, commitment, ZERO_DIGEST))


def reveal_vote(
    at: RunAddresses, session: Pubkey, audit: AuditView, index: int, shown: tuple[int, bytes, bytes]
) -> Instruction:
    """Show a juror's vote: verdict, evidence root[32], salt[32]."""
    return vote_case(at, session, audit, index, JurorVote(*shown))
