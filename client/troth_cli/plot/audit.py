"""The report of an audit as one page: conclusion, counts, findings, and the picture of the run.

Owns: the same numbers as `collect.py` makes of logs, from an audit; the page around them.
Never: judges. Next: `page.py`, whose page this is.
"""

from collections.abc import Iterator
from html import escape

from solders.pubkey import Pubkey

from troth_cli.plot.data import PlotData, RoundRow, Slash, StakeLine
from troth_cli.plot.draw import INLINE, svg_of
from troth_cli.plot.page import page_of, table
from troth_cli.view.audit import CONCLUSIONS, sources_of
from troth_cli.view.audit_checks import COLUMNS, rows_of
from troth_cli.workflows.audit import Done
from troth_client.telemetry.printable import one_line
from troth_coordinator.ledger.file import LedgerHead

NO_ROUND = RoundRow(0, None, None, 0, 0, None, is_void=False)
"""A run without a closed round has a picture too: an empty one."""


def audit_page(head: LedgerHead, done: Done) -> str:
    """Return the page, which needs no script and loads nothing."""
    data = page_data(head, done)
    return page_of(data, svg_of(data, INLINE), "".join(_lead(done)))


def _lead(done: Done) -> Iterator[str]:
    report = done.report
    yield f"<p><strong>{escape(CONCLUSIONS[report.conclusion])}</strong></p>\n"
    yield f"<p>Compared with {escape(one_line(sources_of(report)))}.</p>\n"
    yield table("What was checked.", COLUMNS, rows_of(report)) + "\n"
    if not report.findings:
        return
    rows = (
        (one.grade, one.place, one.rule, one_line(one.expected), one_line(one.found))
        for one in report.findings
    )
    columns = ("grade", "where", "rule", "expected", "found")
    yield "<h2>Findings</h2>\n" + table("What does not fit, or is missing.", columns, rows) + "\n"


def page_data(head: LedgerHead, done: Done) -> PlotData:
    """Return the numbers of the run that the picture shows."""
    rows = [
        RoundRow(one.round, one.loss, None, one.num_committed, one.num_included, None, one.is_void)
        for one in done.report.rounds
    ]
    return PlotData(
        run=head.run,
        names=(),
        rounds=tuple(rows or [NO_ROUND]),
        stakes=tuple(
            StakeLine(_name(owner), tuple(points)) for owner, points in done.series.stakes.items()
        ),
        slashes=tuple(
            Slash(one.round, _name(one.owner), one.lamports) for one in done.series.slashes
        ),
    )


def _name(owner: bytes) -> str:
    return str(Pubkey.from_bytes(owner))
