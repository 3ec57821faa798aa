"""The judges of an audit, or of a jury, with their sketches compared (protocol sections 7 and 8).

Owns: the outcome of an audit, the outvoted sketches, the paid judges, the seats at fault.
Never: counts lamports (`slashing.py` does) or looks at evidence.
Next: `slashing.py` for the cost of the outcomes.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from troth_attestation.errors import ReportError
from troth_attestation.quorum import AuditOutcome, CaseOutcome, SeatFault
from troth_attestation.sketch import DEFAULT_FACTOR, differ
from troth_attestation.verdict import VerdictKind
from troth_coordinator.rules.audits import FIRST_SEATS, MAX_SEATS, SECOND_SEATS

QUORUM = 3
"""Equal verdicts that decide an audit, where no other verdict has as many."""

DECIDED = {
    VerdictKind.OK: AuditOutcome.CLEARED,
    VerdictKind.MISMATCH: AuditOutcome.ACCUSED,
    VerdictKind.UNAVAILABLE: AuditOutcome.UNAVAILABLE,
}
"""The outcome that a verdict decides; `inconclusive` can only prevent one."""


RIGHT = {
    CaseOutcome.CONVICTED: (VerdictKind.MISMATCH,),
    CaseOutcome.ACQUITTED: (VerdictKind.OK,),
    CaseOutcome.NO_OPENINGS: (VerdictKind.MISMATCH, VerdictKind.UNAVAILABLE),
    CaseOutcome.NOT_PROVEN: (VerdictKind.OK, VerdictKind.MISMATCH, VerdictKind.INCONCLUSIVE),
    CaseOutcome.EXCLUDED: (),
}
"""The votes that each outcome of a jury pays."""


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a judge; `kind` and `sketch` are None until the reveal.

    One that says `unavailable` is not asked for a sketch; one that it reveals is ignored. A sketch
    of zeros proves no work: it agrees with none.
    """

    has_committed: bool = False
    kind: VerdictKind | None = None
    sketch: tuple[int, ...] | None = None

    @property
    def shown(self) -> tuple[int, ...] | None:
        """The sketch, if the verdict needs one."""
        return None if self.kind == VerdictKind.UNAVAILABLE else self.sketch

    @property
    def compared(self) -> tuple[int, ...] | None:
        """The sketch, if it takes part in comparisons."""
        return self.shown if self.shown and any(self.shown) else None


class Panel:
    """The reports of an audit in seat order, or those of a jury, with their sketches compared once.

    `factor` is the run's `sketch_factor`. `outvoted` are the places whose sketch the others
    contradict. It agrees with no other while two others agree, or it differs from a group of
    agreeing ones that is more than half of all compared. `inconclusive` forms neither.
    """

    def __init__(self, reports: Sequence[Report], factor: int = DEFAULT_FACTOR) -> None:
        self.reports = tuple(reports)
        sketches = {n: report.compared for n, report in enumerate(reports) if report.compared}
        self._apart = {
            frozenset(pair)
            for pair in combinations(sketches, 2)
            if differ(sketches[pair[0]], sketches[pair[1]], factor)
        }
        self._compared = frozenset(sketches)
        self.outvoted = self._alone() | self._in_minority()

    def outcome(self, num_available: int) -> AuditOutcome:
        """Return the state of an audit.

        `num_available` is the number of seats that the target can have, 3 to 7. If three seats say
        ok and their sketches agree, the payload is cleared. Anything else extends to five seats.
        Then at least three equal verdicts decide, more than of any other and without those of
        outvoted sketches. Undecided, it extends once more. Where all have judged, mismatch and
        unavailable count together: serving a part of the seats brings the work before a jury.
        Raises ReportError for a number of reports that is neither the first three, nor the first
        five, nor all.
        """
        num, second = len(self.reports), min(SECOND_SEATS, num_available)
        _check_count(num, num_available)
        if num == FIRST_SEATS and self._is_unanimous():
            return AuditOutcome.CLEARED
        decided = self._decided() if num >= second else None
        if decided is not None:
            return decided
        return AuditOutcome.EXTEND if num < num_available else self._decided_together()

    def paid_seats(self) -> frozenset[int]:
        """Return the seats that earn the witness fee.

        `ok` and `mismatch` earn it with a sketch that agrees with more than half of the compared
        ones, its own included. `inconclusive` earns it where more than half of all verdicts say so
        with agreeing sketches. A seat that said `unavailable` is paid once a jury says so too.
        """
        return self._paid({VerdictKind.OK, VerdictKind.MISMATCH, VerdictKind.INCONCLUSIVE})

    def paid_jurors(self, decided: CaseOutcome, *, is_work: bool) -> frozenset[int]:
        """Return the jurors that earn the witness fee.

        Right is the verdict of the majority; where nothing is proven `ok` and `mismatch`, and in a
        case of work `inconclusive`. In a case of work the sketch must agree as that of a seat.
        """
        right = set(RIGHT[decided])
        if is_work:
            return self._paid(right)
        right.discard(VerdictKind.INCONCLUSIVE)
        return frozenset(n for n, report in enumerate(self.reports) if report.kind in right)

    def faults(self, case: CaseOutcome | None = None) -> dict[int, SeatFault]:
        """Return the faults of the seats of an audit, one per seat, by seat number.

        `case` is the outcome of the jury, if there was one; `unavailable` and `inconclusive` alone
        are never a fault. An outvoted sketch is named before a wrong verdict.
        """
        found: dict[int, SeatFault] = {}
        for seat, report in enumerate(self.reports):
            fault = _fault_of(report, seat in self.outvoted, case)
            if fault is not None:
                found[seat] = fault
        return found

    def _paid(self, right: Collection[VerdictKind]) -> frozenset[int]:
        revealed = sum(report.kind is not None for report in self.reports)
        unsure = self._saying(VerdictKind.INCONCLUSIVE)
        paid = set()
        for place, report in enumerate(self.reports):
            agreeing = self._agreeing(place)
            if report.kind == VerdictKind.UNAVAILABLE:
                is_paid = True
            elif report.kind == VerdictKind.INCONCLUSIVE:
                is_paid = 2 * len(agreeing & unsure) > revealed
            else:
                is_paid = 2 * len(agreeing) > len(self._compared)
            if report.kind in right and is_paid:
                paid.add(place)
        return frozenset(paid)

    def _decided(self) -> AuditOutcome | None:
        """Return the outcome that at least three want, and more than want any other."""
        kind = self._leading({kind: self._saying(kind) for kind in VerdictKind})
        return None if kind is None else DECIDED.get(kind)

    def _decided_together(self) -> AuditOutcome:
        """Return the same with mismatch and unavailable as one side."""
        sides = {kind: self._saying(kind) for kind in VerdictKind}
        sides[VerdictKind.UNAVAILABLE] |= sides.pop(VerdictKind.MISMATCH)
        is_starved = self._leading(sides) == VerdictKind.UNAVAILABLE
        return AuditOutcome.UNAVAILABLE if is_starved else AuditOutcome.UNPROVEN

    def _leading(self, sides: Mapping[VerdictKind, frozenset[int]]) -> VerdictKind | None:
        counts = {kind: len(places - self.outvoted) for kind, places in sides.items()}
        most = max(counts.values())
        leading = [kind for kind, count in counts.items() if count == most]
        return leading[0] if most >= QUORUM and len(leading) == 1 else None

    def _saying(self, kind: VerdictKind) -> frozenset[int]:
        return frozenset(n for n, report in enumerate(self.reports) if report.kind == kind)

    def _agreeing(self, place: int) -> frozenset[int]:
        if place not in self._compared:
            return frozenset()
        apart = {n for n in self._compared if frozenset((place, n)) in self._apart}
        return self._compared - apart

    def _agree(self, group: Iterable[int]) -> bool:
        return not any(frozenset(pair) in self._apart for pair in combinations(group, 2))

    def _is_unanimous(self) -> bool:
        all_ok = all(report.kind == VerdictKind.OK for report in self.reports)
        return all_ok and len(self._compared) == FIRST_SEATS and self._agree(self._compared)

    def _alone(self) -> frozenset[int]:
        speaking = self._compared - self._saying(VerdictKind.INCONCLUSIVE)
        if not any(self._agree(pair) for pair in combinations(speaking, 2)):
            return frozenset()
        shown = {n for n, report in enumerate(self.reports) if report.shown is not None}
        return frozenset(n for n in shown if not self._agreeing(n) - {n})

    def _in_minority(self) -> frozenset[int]:
        speaking = self._compared - self._saying(VerdictKind.INCONCLUSIVE)
        groups = [
            group
            for size in range(len(self._compared) // 2 + 1, len(speaking) + 1)
            for group in combinations(sorted(speaking), size)
            if self._agree(group)
        ]
        return frozenset(
            place
            for place in self._compared
            for group in groups
            if place not in group and not self._agreeing(place) & set(group)
        )


def _check_count(num_reports: int, num_available: int) -> None:
    is_allowed = FIRST_SEATS <= num_available <= MAX_SEATS
    stages = (FIRST_SEATS, min(SECOND_SEATS, num_available), num_available)
    if not is_allowed or num_reports not in stages:
        raise ReportError(
            "reports of an audit",
            f"{FIRST_SEATS}, {SECOND_SEATS} or all of 3..{MAX_SEATS} seats",
            f"{num_reports} of {num_available}",
            "wait for the deadline; missing reports are empty ones",
        )


def _fault_of(report: Report, is_outvoted: bool, case: CaseOutcome | None) -> SeatFault | None:
    if report.kind is None:
        return SeatFault.NO_REVEAL if report.has_committed else SeatFault.NO_COMMIT
    if is_outvoted:
        return SeatFault.OUTVOTED_SKETCH
    if (report.kind, case) == (VerdictKind.OK, CaseOutcome.CONVICTED):
        return SeatFault.WRONG_OK
    if (report.kind, case) == (VerdictKind.MISMATCH, CaseOutcome.ACQUITTED):
        return SeatFault.FALSE_MISMATCH
    return None
