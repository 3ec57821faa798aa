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
    Reveal,
)
from troth_coordinator.rules.audit_view import AuditView
from troth_coordinator.rules.ids import ZERO_DIGEST

SKETCH_LEN = 64
"""Numbers of a sketch."""

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
    none = (0,) * SKETCH_LEN
    return vote_case(at, session, audit, index, JurorVote(0, commitment, none, ZERO_DIGEST))


def reveal_vote(
    at: RunAddresses, session: Pubkey, audit: AuditView, index: int, shown: Reveal
) -> Instruction:
    """Show a juror's vote and the sketch behind it, zeros in the exact cases."""
    vote = JurorVote(shown.verdict, shown.evidence, shown.sketch, shown.salt)
    return vote_case(at, session, audit, index, vote)
