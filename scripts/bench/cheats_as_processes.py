"""Cheats as real processes: `python scripts/bench/cheats_as_processes.py [--seed S] [KIND …]`.

Owns: one `troth demo` after the other, each with another kind of cheat; the round and the loss of
each conviction, from the demo's own logs; the table of docs/results.md.
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
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

from troth_attestation.quorum import AuditOutcome, CaseOutcome

KINDS = ("free-rider", "copies", "deletes-residuals", "truncated-openings", "hides-openings")
MOMENT = itemgetter("time")
HEAD = """\
| cheat | fault | first lie in round | caught for round | rounds to that | rounds to the slash \
| taken, SOL | wall, s |
|---|---|---:|---:|---:|---:|---:|---:|"""


@dataclass(frozen=True)
class Outcome:
    """The fate of one cheat.

    - first_lie: round of its first dishonest payload.
    - caught: round of the payload that cost it stake; None without a loss.
    - slashed: round under way when somebody saw the loss; None without one. The number of rounds
      means that it was after the last round.
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
    """Read the logs of a demo that has ended: an audit may be over before one of them saw it."""
    (summary,) = (e for e in read(folder / "events.jsonl") if e["event"] == "summarised")
    ended = summary["outcome"]
    events = sorted(chain.from_iterable(map(read, folder.glob("*/events.jsonl"))), key=MOMENT)
    lies = [event["round"] for event in events if event["event"] == "cheating"]
    losses = [event for event in events if is_loss(event, ended["index"])]
    caught, slashed = None, None
    if losses:
        before = events[: events.index(losses[0])]
        caught = losses[0]["round"]
        slashed = 1 + max(one["round"] for one in before if one["event"] == "round_closed")
    return Outcome(
        kind=ended["cheat"] or "none",
        fault=ended["fault"],
        first_lie=lies[0] if lies else None,
        caught=caught,
        slashed=slashed,
        taken_lamports=ended["slashed_lamports"] + ended["fined_lamports"],
        is_success=summary["is_success"],
    )


def is_loss(event: dict[str, Any], index: int | None) -> bool:
    """Tell whether an event shows that stake of this participant was taken for its work."""
    if event["event"] != "audit_changed" or event["target"] != index:
        return False
    if (event["stage"], event["outcome"]) == ("SETTLED", AuditOutcome.NO_OPENINGS):
        return True
    return bool(event["taken"]) or event["case_outcome"] == CaseOutcome.NO_OPENINGS


def read(log: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of one log."""
    yield from map(json.loads, log.read_text().splitlines())


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
        command = [sys.executable, "-m", "troth_cli", "demo", "--json"]
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
