"""The duties of a witness, as tables for its end.

Owns: their form. Never: counts; `troth_client/telemetry/duties.py` does.
Next: `../commands/participation.py`, which prints them.
"""

from collections import Counter

from troth_cli.view.amounts import sol
from troth_cli.view.output import Facts, Grid
from troth_client.telemetry.duties import Duties


def duty_blocks(duties: Duties) -> list[Facts | Grid]:
    """Return what a witness judged, found and earned."""
    rows: list[tuple[str, object]] = [
        ("audits judged", _counted(duties.verdicts)),
        ("cases judged", _counted(duties.votes)),
        ("time for it", f"{duties.judging_seconds:.1f} s"),
        ("rewards", f"{sol(duties.rewards)}, vested or not, not yet claimed"),
    ]
    columns = ("round", "target", "verdict", "reason")
    found = [[event.get(name, "") for name in columns] for event in duties.findings]
    blocks: list[Facts | Grid] = [Facts(rows, "as a witness")]
    return [*blocks, Grid(columns, found, "found")] if found else blocks


def _counted(verdicts: Counter[str]) -> str:
    by_kind = ", ".join(f"{count} {name.lower()}" for name, count in sorted(verdicts.items()))
    return f"{sum(verdicts.values())} ({by_kind})" if by_kind else "none"
