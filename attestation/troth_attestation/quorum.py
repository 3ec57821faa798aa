"""Outcomes of audits and cases (protocol sections 7 and 8), and the decision of a jury.

Owns: their numbers, and what two thirds of a jury decide.
Never: counts lamports or looks at evidence.
Next: `panel.py` for the decision of the seats, `slashing.py` for the cost of the outcomes.
"""

from collections.abc import Sequence
from enum import IntEnum

from troth_attestation.errors import ReportError
from troth_attestation.verdict import VerdictKind
from troth_coordinator.rules.audits import FIRST_SEATS, JURY_SEATS


class AuditOutcome(IntEnum):
    """The state of an audit after its reveals.

    NO_OPENINGS: the program saw none. UNAVAILABLE: three seats say that they got none, so a jury
    judges the work. The program has a number 6 of its own, for audits that never began.
    """

    CLEARED = 1
    EXTEND = 2
    ACCUSED = 3
    NO_OPENINGS = 4
    UNPROVEN = 5
    UNAVAILABLE = 7


class CaseOutcome(IntEnum):
    """The decision of a jury.

    EXCLUDED: too few people to decide anything. NO_OPENINGS: the target did not serve its openings
    to all that must judge its work.
    """

    CONVICTED = 1
    ACQUITTED = 2
    NOT_PROVEN = 3
    EXCLUDED = 4
    NO_OPENINGS = 5


class SeatFault(IntEnum):
    """The fault of a seat: silence (the first two) or a verdict that did not hold."""

    NO_COMMIT = 1
    NO_REVEAL = 2
    WRONG_OK = 3
    FALSE_MISMATCH = 4
    OUTVOTED_SKETCH = 5


def case_outcome(votes: Sequence[VerdictKind | None], *, is_work: bool) -> CaseOutcome:
    """Return the decision of a jury; a vote of None is a juror who did not reveal.

    `votes` has one entry per juror, so that silence counts against every side. A decision needs
    ceil(2m/3) equal votes: mismatch convicts, ok acquits. In a case of work, as many that say
    mismatch or unavailable find a refusal of openings. Else serving a part of the jury would cost
    less than serving nobody. In the exact cases (payload, root, possession) mismatch stands for
    "the fault is there", ok for "it is not", and nobody owes the evidence.
    """
    num_members = len(votes)
    if num_members > JURY_SEATS:
        raise ReportError("jury", f"at most {JURY_SEATS}", num_members, "draw it again")
    if num_members < FIRST_SEATS:
        return CaseOutcome.EXCLUDED
    needed, num_mismatch = -(-2 * num_members // 3), votes.count(VerdictKind.MISMATCH)
    if num_mismatch >= needed:
        return CaseOutcome.CONVICTED
    if votes.count(VerdictKind.OK) >= needed:
        return CaseOutcome.ACQUITTED
    if is_work and num_mismatch + votes.count(VerdictKind.UNAVAILABLE) >= needed:
        return CaseOutcome.NO_OPENINGS
    return CaseOutcome.NOT_PROVEN
