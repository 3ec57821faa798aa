"""The checks of an audit as a table: what, how many, and how it went.

Owns: which rules belong to which row. Never: decides what is a discrepancy.
Next: `audit.py` for the rest of a report.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from troth_audit.replay.findings import Grade, Rule
from troth_audit.replay.report import Report

COLUMNS: Final = ("what", "checked", "result")
CHECKS: Final[Mapping[str, tuple[Rule, ...]]] = {
    "events": (Rule.CHAIN_HASH,),
    "accounts": (Rule.RUN_ACCOUNT, Rule.VAULT),
    "run_files": (Rule.CONFIG, Rule.MANIFEST),
    "rounds": (Rule.PHASE, Rule.ROUND_SETS, Rule.CLOSE),
    "headers": (Rule.HEADER, Rule.SIGNATURE, Rule.ROOT_VOTE),
    "payloads": (Rule.PAYLOAD, Rule.POSSESSION),
    "roots": (Rule.STATE_ROOT,),
    "checkpoints": (Rule.CHECKPOINT,),
    "seeds": (Rule.SEED,),
    "samples": (Rule.SAMPLE,),
    "audits": (Rule.SEATS, Rule.OUTCOME),
    "openings": (Rule.OPENINGS,),
    "verdicts": (Rule.VERDICT,),
    "cases": (Rule.CASE,),
    "votes": (Rule.JURY,),
    "penalties": (Rule.PENALTY,),
    "rewards": (Rule.REWARD,),
    "recomputed_audits": (Rule.WORK,),
}
"""Counts of a report with the rules whose findings are about them."""
TESTED: Final[Mapping[str, tuple[str, str]]] = {"openings": ("exact_tests", "openings_not_kept")}
"""Rows about bytes that sources may lack: the counts of those that were tested, and that lack."""

DRAWN: Final = ("drawn_opened", "drawn_audits")
"""Counts that are told together: so many of so many."""


@dataclass(frozen=True, slots=True)
class Check:
    """One row: how many were checked, and how many of them are wrong or missing.

    `num_not_kept` are those that no source has to keep: they were not checked, and are no fault.
    """

    name: str
    num_checked: int
    num_wrong: int
    num_missing: int
    num_not_kept: int = 0

    @property
    def result(self) -> str:
        """The result in words."""
        if self.num_wrong:
            return f"FAIL: {self.num_wrong:,}"
        if self.num_missing:
            return f"missing: {self.num_missing:,}"
        if self.num_not_kept:
            told = f"not kept: {self.num_not_kept:,}"
            return f"pass, {told}" if self.num_checked else told
        return "pass" if self.num_checked else "none"


def checks_of(report: Report) -> Iterator[Check]:
    """Yield all rows; work that nobody wanted to see computed again has none."""
    for name, rules in CHECKS.items():
        wrong, gone = (
            sum(report.num_by_rule[rule, grade] for rule in rules)
            for grade in (Grade.DISCREPANCY, Grade.MISSING)
        )
        checked, not_kept = TESTED.get(name, (name, ""))
        if checked in report.counts or wrong or gone:
            num_checked, num_not_kept = (report.counts.get(one, 0) for one in (checked, not_kept))
            yield Check(name, num_checked, wrong, gone, num_not_kept)


def rows_of(report: Report) -> list[tuple[str, str, str]]:
    """Return the rows of the table."""
    return [
        (one.name.replace("_", " "), f"{one.num_checked:,}", one.result)
        for one in checks_of(report)
    ]


def other_counts(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the counts that are no check of their own."""
    if set(DRAWN) <= report.counts.keys():
        opened, drawn = (report.counts[name] for name in DRAWN)
        yield "drawn audits", f"{opened:,} of {drawn:,} took place"
    for name, count in report.counts.items():
        if name not in CHECKS and name not in DRAWN:
            yield name.replace("_", " "), f"{count:,}"
