"""Cheats about verdicts: the vote of a juror in place of its finding.

Owns: votes. Never: judges, or knows whom; `juror.py` asks for a vote where there is a jury.
Next: `cheat.py`.
"""

from troth_attestation.verdict import Reason, Verdict, VerdictKind


def as_found(found: Verdict) -> Verdict:
    """Vote for the finding."""
    return found


def mismatch(_found: Verdict) -> Verdict:
    """Convict whoever is accused."""
    return Verdict(VerdictKind.MISMATCH, Reason.WORK_DIFFERS)
