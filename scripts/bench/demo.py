"""Where a demo's time goes: `python scripts/bench/demo.py [FOLDER]`.

Reads the event logs of a demo that has run (`troth demo --out FOLDER`); without a folder, a demo of
10 rounds is run first. Owns: the table of seconds per step, round and set-up.
Never: a claim; those go to docs/results.md with their log.
Next: `client/troth_client/telemetry/spans.py`, which makes the events.
"""

import argparse
import itertools
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path

from rich.console import Console

from troth_client.cli.demo.options import DemoOptions
from troth_client.cli.demo.show import run_demo
from troth_client.telemetry.events import Event, EventTail

NUM_ROUNDS = 10


def main() -> None:
    """Print the table of a finished demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    folder = parser.parse_args().folder
    if folder is not None:
        report(folder)
        return
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch) / "demo"
        options = DemoOptions(folder=fresh, num_rounds=NUM_ROUNDS, margin_micro=0, seed=1)
        run_demo(options, Console(stderr=True))
        report(fresh)


def report(folder: Path) -> None:
    """Print set-up, rounds and steps of the demo in a folder."""
    own = {str(event["event"]): event for event in read(folder / "events.jsonl")}
    logs = [read(path) for path in sorted(folder.glob("trainer-*/events.jsonl"))]
    print(f"data and run created   {seconds(own['run_created'], own['chain_started']):8.2f} s")
    print(f"whole demo             {own['trainers_ended']['seconds']:8.2f} s")
    closes = defaultdict(list)
    steps = defaultdict(list)
    for event in (one for log in logs for one in log):
        if event["event"] == "round_closed":
            closes[event["round"]].append(event["time"])
        elif event["event"] == "step_ended":
            steps[event["step"]].append(event["seconds"])
    ends = [min(times) for _, times in sorted(closes.items())]
    lengths = [later - sooner for sooner, later in itertools.pairwise(ends)]
    print(f"a round, median        {statistics.median(lengths):8.3f} s, longest {max(lengths):.3f}")
    print(f"\n{'step':<12}{'median ms':>10}{'95 % ms':>10}{'times':>8}")
    for name, values in steps.items():
        values.sort()
        high = values[min(len(values) - 1, len(values) * 95 // 100)]
        print(f"{name:<12}{statistics.median(values) * 1e3:>10.1f}{high * 1e3:>10.1f}", end="")
        print(f"{len(values):>8}")


def read(path: Path) -> list[Event]:
    """Return the events of one log."""
    return list(EventTail(path).read())


def seconds(later: Event, sooner: Event) -> float:
    """Return the time between two events."""
    return float(later["time"]) - float(sooner["time"])


if __name__ == "__main__":
    main()
