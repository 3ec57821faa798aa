"""Cheats as real processes: `python scripts/bench/cheats_as_processes.py [--seed S] [KIND …]`.

Owns: one `troth demo` after the other, each with a cheat of another kind; when each was found and
what it lost, as the demo's own logs tell it; the table of docs/results.md.
Next: convictions.py for many seeds inside one process; tests/integration/test_demo_trial.py.

Every demo is a line of JSON in --out.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from troth_attestation.quorum import AuditOutcome

KINDS = ("free-rider", "copies", "deletes-residuals", "truncated-openings", "hides-openings")
WITNESS = "trainer-0"
"""Whose log tells when something happened: any honest one's does."""
HEAD = """\
| cheat | fault | first lie in round | caught for round | rounds to that | rounds to the slash \
| taken, SOL | wall, s |
|---|---|---:|---:|---:|---:|---:|---:|"""


@dataclass(frozen=True)
class Outcome:
    """What became of one cheat.

    Rounds: that of its first payload that is not honest, that of the payload which cost it stake,
    and the one under way when the honest saw that taken; None where nothing was.
    """

    kind: str
    fault: str | None
    first_lie: int | None
    caught: int | None
    slashed: int | None
    taken_lamports: int
    is_success: bool

    def row(self, seconds: float) -> str:
        """Return one line of the table."""
        begun = [self.kind, self.fault or "none", self.first_lie, self.caught]
        since = [_since(self.first_lie, self.caught), _since(self.first_lie, self.slashed)]
        cells = [*begun, *since, f"{self.taken_lamports / 10**9:.4f}", f"{seconds:.0f}"]
        return "| " + " | ".join("-" if cell is None else str(cell) for cell in cells) + " |"


def outcome(folder: Path) -> Outcome:
    """Read the logs of a demo that has ended."""
    summary = next(read(folder, "", "summarised"))
    trial = summary["trial"]
    kind, index = trial["cheat"], trial["index"]
    lie = next(read(folder, kind, "cheating"), None) if kind else None
    caught, slashed, under_way = None, None, 0
    for event in read(folder, WITNESS):
        if event["event"] == "round_closed":
            under_way = event["round"] + 1
        elif caught is None and is_loss(event, index):
            caught, slashed = event["round"], under_way
    taken = trial["slashed_lamports"] + trial["fined_lamports"]
    first = None if lie is None else lie["round"]
    return Outcome(
        kind or "none", trial["fault"], first, caught, slashed, taken, summary["is_success"]
    )


def is_loss(event: dict[str, Any], index: int | None) -> bool:
    """Tell whether an event shows that stake of this participant was taken for its work."""
    if event["event"] != "audit_changed" or event["target"] != index:
        return False
    end = event["stage"], event["outcome"]
    return bool(event["taken"]) or end == ("SETTLED", AuditOutcome.NO_OPENINGS)


def read(folder: Path, name: str, kind: str = "") -> Iterator[dict[str, Any]]:
    """Yield the events of one log of a demo, of one kind or all."""
    for line in (folder / name / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if kind in ("", event["event"]):
            yield event


def _since(first: int | None, later: int | None) -> int | None:
    return None if first is None or later is None else later - first


def main() -> int:
    """Run the demos one by one, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=list(KINDS), metavar="KIND")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--out", type=Path, default=Path("runs/cheats_as_processes.jsonl"))
    arguments = parser.parse_args()
    rows = []
    for kind in arguments.kinds:
        folder = arguments.out.parent / f"cheat-{kind}-{arguments.seed}-{time.strftime('%H%M%S')}"
        command = [sys.executable, "-m", "troth_client.cli.main", "demo", "--json"]
        command += ["--cheat", kind, "--seed", str(arguments.seed), "--out", str(folder)]
        command += ["--rounds", str(arguments.rounds), "--margin-micro", "0"]
        started = time.monotonic()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        seconds = time.monotonic() - started
        found = outcome(folder)
        with arguments.out.open("a") as out:
            out.write(json.dumps({"seconds": round(seconds, 1), **asdict(found)}) + "\n")
        rows.append(found.row(seconds))
    print("\n".join([HEAD, *rows]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
