"""The decisions of seats and juries (protocol sections 7 and 8).

Owns: the outcome of an audit, the outvoted sketches, the paid seats, the seats at fault, the
outcome of a jury.
Never: counts lamports (`slashing.py` does) or looks at evidence.
Next: `slashing.py` for the cost of the outcomes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import combinations

from troth_attestation.errors import ReportError
from troth_attestation.sketch import DEFAULT_FACTOR, differ
from troth_attestation.verdict import VerdictKind
from troth_coordinator.rules.audits import FIRST_SEATS, JURY_SEATS, MAX_SEATS

QUORUM = 3
"""Equal verdicts that decide an audit, and agreeing sketches that exclude another."""


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

    EXCLUDED: too few people to decide anything. NO_OPENINGS: the target served no openings, so its
    work cannot be judged.
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


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a seat; `kind` and `sketch` are None until the reveal.

    A seat that says `unavailable` is not asked for a sketch; one that it reveals is not compared.
    """

    has_committed: bool = False
    kind: VerdictKind | None = None
    sketch: tuple[int, ...] | None = None

    @property
    def compared(self) -> tuple[int, ...] | None:
        """The sketch, if it takes part in comparisons."""
        return None if self.kind == VerdictKind.UNAVAILABLE else self.sketch


def outcome(
    reports: Sequence[Report], num_available: int, factor: int = DEFAULT_FACTOR
) -> AuditOutcome:
    """Return the state of an audit from the reports of all seats so far, in seat order.

    `num_available` is the number of seats that the target can have, 3 to 5; `factor` is the run's
    `sketch_factor`. If three seats say ok and their sketches agree, the payload is cleared.
    Anything else extends once to the seats available. Then three equal verdicts decide, without
    those of outvoted sketches. Raises ReportError for a number of reports that is neither the
    first three nor all.
    """
    _check_count(len(reports), num_available)
    if len(reports) == FIRST_SEATS and _is_unanimous(reports, factor):
        return AuditOutcome.CLEARED
    if len(reports) < num_available:
        return AuditOutcome.EXTEND
    out = outvoted(reports, factor)
    kinds = [report.kind for seat, report in enumerate(reports) if seat not in out]
    if kinds.count(VerdictKind.OK) >= QUORUM:
        return AuditOutcome.CLEARED
    if kinds.count(VerdictKind.MISMATCH) >= QUORUM:
        return AuditOutcome.ACCUSED
    if kinds.count(VerdictKind.UNAVAILABLE) >= QUORUM:
        return AuditOutcome.UNAVAILABLE
    return AuditOutcome.UNPROVEN


def outvoted(reports: Sequence[Report], factor: int = DEFAULT_FACTOR) -> frozenset[int]:
    """Return the seats whose sketch differs from three others that agree pairwise."""
    sketches = {n: report.compared for n, report in enumerate(reports) if report.compared}
    apart = {
        pair: differ(sketches[pair[0]], sketches[pair[1]], factor)
        for pair in combinations(sorted(sketches), 2)
    }

    def is_apart(first: int, second: int) -> bool:
        return apart[min(first, second), max(first, second)]

    groups = [
        group
        for group in combinations(sorted(sketches), QUORUM)
        if not any(is_apart(*pair) for pair in combinations(group, 2))
    ]
    return frozenset(
        seat
        for seat in sketches
        for group in groups
        if seat not in group and all(is_apart(seat, other) for other in group)
    )


def paid_seats(reports: Sequence[Report], factor: int = DEFAULT_FACTOR) -> frozenset[int]:
    """Return the seats that earn the witness fee.

    A seat earns it with a verdict and a sketch that agrees with more than half of the compared
    ones, its own included. A seat that answered unavailable is paid once a jury says so too.
    """
    sketches = {n: report.compared for n, report in enumerate(reports) if report.compared}
    paid = {
        seat
        for seat, own in sketches.items()
        if 2 * sum(not differ(own, other, factor) for other in sketches.values()) > len(sketches)
    }
    return frozenset(paid)


def seat_faults(
    reports: Sequence[Report], case: CaseOutcome | None = None, factor: int = DEFAULT_FACTOR
) -> dict[int, SeatFault]:
    """Return the faults of the seats of an audit, one per seat, by seat number.

    `case` is the outcome of the jury, if there was one; `unavailable` and
    `inconclusive` are never a fault. An outvoted sketch is named before a wrong verdict.
    """
    out = outvoted(reports, factor)
    faults: dict[int, SeatFault] = {}
    for seat, report in enumerate(reports):
        fault = _fault_of(report, seat in out, case)
        if fault is not None:
            faults[seat] = fault
    return faults


def case_outcome(votes: Sequence[VerdictKind | None], *, is_work: bool) -> CaseOutcome:
    """Return the decision of a jury; a vote of None is a juror who did not reveal.

    `votes` has one entry per juror, so that silence counts against every side. A decision needs
    ceil(2m/3) equal votes: mismatch convicts, ok acquits. In a case of work, unavailable finds a
    refusal of openings. In the exact cases (payload, root, possession) mismatch stands for "the
    fault is there", ok for "it is not", and nobody owes the evidence.
    """
    num_members = len(votes)
    if num_members > JURY_SEATS:
        raise ReportError("jury", f"at most {JURY_SEATS}", num_members, "draw it again")
    if num_members < FIRST_SEATS:
        return CaseOutcome.EXCLUDED
    needed = -(-2 * num_members // 3)
    if votes.count(VerdictKind.MISMATCH) >= needed:
        return CaseOutcome.CONVICTED
    if votes.count(VerdictKind.OK) >= needed:
        return CaseOutcome.ACQUITTED
    if is_work and votes.count(VerdictKind.UNAVAILABLE) >= needed:
        return CaseOutcome.NO_OPENINGS
    return CaseOutcome.NOT_PROVEN


def _check_count(num_reports: int, num_available: int) -> None:
    is_allowed = FIRST_SEATS <= num_available <= MAX_SEATS
    if not is_allowed or num_reports not in (FIRST_SEATS, num_available):
        raise ReportError(
            "reports of an audit",
            f"{FIRST_SEATS} or all of 3..{MAX_SEATS} seats",
            f"{num_reports} of {num_available}",
            "wait for the deadline; missing reports are empty ones",
        )


def _is_unanimous(reports: Sequence[Report], factor: int) -> bool:
    if any(report.kind != VerdictKind.OK for report in reports):
        return False
    sketches = [report.compared for report in reports]
    return all(
        first is not None and second is not None and not differ(first, second, factor)
        for first, second in combinations(sketches, 2)
    )


def _fault_of(report: Report, is_outvoted: bool, case: CaseOutcome | None) -> SeatFault | None:
    if report.kind is None:
        return SeatFault.NO_REVEAL if report.has_committed else SeatFault.NO_COMMIT
    # A seat without a claim cannot have made a false one; its sketch is only not paid.
    if is_outvoted and report.kind is not VerdictKind.INCONCLUSIVE:
        return SeatFault.OUTVOTED_SKETCH
    if (report.kind, case) == (VerdictKind.OK, CaseOutcome.CONVICTED):
        return SeatFault.WRONG_OK
    if (report.kind, case) == (VerdictKind.MISMATCH, CaseOutcome.ACQUITTED):
        return SeatFault.FALSE_MISMATCH
    return None
