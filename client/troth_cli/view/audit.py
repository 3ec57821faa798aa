"""An audit as people and as scripts read it.

Owns: the words of a report, and its JSON. Never: decides what is a discrepancy.
Next: `../commands/audit.py`.
"""

from collections.abc import Mapping
from typing import Final

from troth_audit.replay.findings import Finding, Grade
from troth_audit.replay.report import Conclusion, Report
from troth_cli.view.audit_checks import COLUMNS, checks_of, other_counts, rows_of
from troth_cli.view.output import Facts, Grid, Json
from troth_coordinator.ledger.file import LedgerHead

CONCLUSIONS: Final = {
    Conclusion.GOOD: "PASS: everything that was checked is as the protocol says.",
    Conclusion.WRONG: "FAIL: the discrepancies above are proven.",
    Conclusion.INCOMPLETE: "INCOMPLETE: nothing wrong was found, and not all could be checked.",
}
MOST_SHOWN: Final = 50
"""Findings that are printed for people; --json has all that were kept."""


def audit_values(head: LedgerHead, report: Report) -> dict[str, Json]:
    """Return the report as one JSON object."""
    return {
        "run": head.run,
        "program": head.program,
        "conclusion": report.conclusion.name.lower(),
        "sources": list(report.sources),
        "is_offline": report.is_offline,
        "is_cut_short": report.is_cut_short,
        "first_round": 0 if report.order is None else report.order.start,
        "draw": "" if report.order is None else report.order.draw_key,
        "resumed_round": report.resumed_round,
        "counts": dict(report.counts),
        "checks": [
            {"what": one.name, "checked": one.num_checked, "result": one.result}
            for one in checks_of(report)
        ],
        "discrepancies": report.num_findings[Grade.DISCREPANCY],
        "missing": report.num_findings[Grade.MISSING],
        "notes": report.num_findings[Grade.NOTE],
        "findings": [_finding(one) for one in report.findings],
    }


def audit_blocks(head: LedgerHead, report: Report) -> list[Facts | Grid | str]:
    """Return the report for people: counts, findings, conclusion."""
    rows: list[tuple[str, object]] = [("run", head.run), ("compared with", sources_of(report))]
    if report.order is not None and report.order.start:
        rows.append(("replayed from round", report.order.start))
    if report.order is not None and report.order.draw_key:
        rows.append(("drawn with --draw", report.order.draw_key))
    if report.resumed_round is not None:
        rows.append(("went on from", f"round {report.resumed_round:,}, as the kept state says"))
    rows += other_counts(report)
    blocks: list[Facts | Grid | str] = [Facts(rows), Grid(COLUMNS, rows_of(report))]
    if report.findings:
        blocks.append(
            Grid(
                ("grade", "where", "rule", "expected", "found"),
                [
                    (one.grade, one.place, one.rule, one.expected, one.found)
                    for one in report.findings[:MOST_SHOWN]
                ],
                "Findings",
            )
        )
    num_left_out = sum(report.num_findings.values()) - min(len(report.findings), MOST_SHOWN)
    if num_left_out:
        blocks.append(f"{num_left_out:,} further findings are left out here.")
    if report.is_cut_short:
        blocks.append("The audit ended there: nothing that comes later was checked.")
    return [*blocks, CONCLUSIONS[report.conclusion]]


def sources_of(report: Report) -> str:
    """Return with what the ledger was compared, for a person."""
    if not report.sources:
        return "nothing: neither an RPC node nor an archive has the Run account"
    named = ", ".join(report.sources)
    return f"{named} (its own word, no proof: give --rpc)" if report.is_offline else named


def _finding(one: Finding) -> Mapping[str, Json]:
    return {
        "grade": one.grade.value,
        "rule": one.rule.value,
        "round": one.round,
        "participant": one.participant,
        "expected": one.expected,
        "found": one.found,
    }
