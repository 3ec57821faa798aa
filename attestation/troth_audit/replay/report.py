"""The result of an audit: counts, findings, and a few numbers of each round.

Owns: the record, its conclusion, and a bound on how many findings are kept.
Never: prints.
Next: `auditor.py`, which fills it; `troth_cli` shows it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from troth_audit.replay.findings import Finding, Grade, Rule
from troth_audit.replay.order import Order
from troth_coordinator.rules.audit_view import AuditKey, AuditKind

MOST_FINDINGS = 1_000
"""Findings of one grade that are kept; the rest is counted. So no ledger fills the memory."""


class Conclusion(IntEnum):
    """How an audit ended; the values are exit codes (protocol section 11)."""

    GOOD = 0
    WRONG = 1
    INCOMPLETE = 2


@dataclass(frozen=True, slots=True)
class RoundLine:
    """One closed round for a picture. `loss` is the mean of the included headers, in nats."""

    round: int
    num_members: int
    num_committed: int
    num_included: int
    is_void: bool
    loss: float | None


@dataclass(slots=True)
class Report:
    """The result of an audit, as far as it has come."""

    counts: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    num_findings: dict[Grade, int] = field(default_factory=lambda: dict.fromkeys(Grade, 0))
    num_by_rule: Counter[tuple[Rule, Grade]] = field(default_factory=Counter)
    rounds: list[RoundLine] = field(default_factory=list)
    sources: tuple[str, ...] = ()
    is_offline: bool = True
    is_cut_short: bool = False
    order: Order | None = None
    resumed_round: int | None = None
    """An earlier process checked headers, payloads and weights before this round, as it says."""

    @property
    def conclusion(self) -> Conclusion:
        """The result in one word, as an exit code."""
        if self.num_findings[Grade.DISCREPANCY]:
            return Conclusion.WRONG
        return Conclusion.INCOMPLETE if self.num_findings[Grade.MISSING] else Conclusion.GOOD

    def add(self, findings: Iterable[Finding]) -> None:
        """Take in findings."""
        for one in findings:
            if self.num_findings[one.grade] < MOST_FINDINGS:
                self.findings.append(one)
            self.num_findings[one.grade] += 1
            self.num_by_rule[one.rule, one.grade] += 1

    def excuse(self, judged: Collection[AuditKey], why: str) -> None:
        """Take false possession for a note where a jury convicted its maker, or is still to judge.

        `judged` are the audits with such a case; `why` is added to what was found.
        """
        for at, one in enumerate(self.findings):
            key = (one.round, one.participant, AuditKind.POSSESSION)
            if one.rule is Rule.POSSESSION and one.grade is Grade.DISCREPANCY and key in judged:
                self.findings[at] = replace(one, grade=Grade.NOTE, found=f"{one.found}: {why}")
                self.num_findings[Grade.DISCREPANCY] -= 1
                self.num_findings[Grade.NOTE] += 1
                self.num_by_rule[one.rule, Grade.DISCREPANCY] -= 1
                self.num_by_rule[one.rule, Grade.NOTE] += 1

    def count(self, counts: Mapping[str, int]) -> None:
        """Take in the newest counts of a checker."""
        self.counts |= counts
