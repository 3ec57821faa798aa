"""The log of a demo without a terminal: each thing that happens is one line."""

import io
import json

from rich.console import Console

from troth_attestation.quorum import AuditOutcome
from troth_cli.demo.live import Stream
from troth_cli.demo.options import DemoOptions


def test_an_audit_that_closes_without_news_is_not_told_twice(tmp_path):
    """Missing openings are fined at once: no decision and no appeal follow."""
    log = tmp_path / "events.jsonl"
    written = io.StringIO()
    stream = Stream(DemoOptions(folder=tmp_path), Console(file=written, width=200))
    stream.follow([log])
    work = {"round": 3, "target": 5, "participant": "trainer-0"}
    settled = {"stage": "SETTLED", "outcome": AuditOutcome.NO_OPENINGS, "case_outcome": 0}
    for event in ({"event": "audit_changed", "taken": 0, **settled}, {"event": "audit_closed"}):
        with log.open("a") as file:
            file.write(json.dumps({"time": 1.0, **work, **event}) + "\n")
        stream.refresh()
        stream.refresh()
    told = [line for line in written.getvalue().splitlines() if line.startswith("round 3")]
    assert len(told) == 1, told
