"""Instructions of audits, from the sample to the outcome: what callers import to make them.

Owns: the list of names. Never: signs or sends, and checks nothing that the program checks.
Next: builders/audits.py for the functions, generated from the program's IDL; case_instructions.py
for what follows an accusation.

Owners who may be penalised beyond their stake are passed as `people`: their Participant accounts
hold tickets, or must remember a bar.
"""

from __future__ import annotations

from troth_coordinator.chain.builders.audits import (
    commit_verdict,
    extend_audit,
    open_audit,
    post_openings,
    request_audit,
    reveal_verdict,
    settle_audit,
)
from troth_coordinator.chain.terms import (
    Reveal,
)

__all__ = [
    "Reveal",
    "commit_verdict",
    "extend_audit",
    "open_audit",
    "post_openings",
    "request_audit",
    "reveal_verdict",
    "settle_audit",
]
