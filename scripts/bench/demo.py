"""Where a demo's time goes, in tables: `python scripts/bench/demo.py [DIR]`.

Reads the event logs of a demo that has run (`troth demo --out DIR`); without a folder, a demo of 10
rounds is run first. Owns: the tables of the whole and of the seconds per step.
Never: a claim; paste what it prints into docs/results.md, with command and hardware.
Next: `client/troth_client/telemetry/spans.py`, which makes the events.
"""

import argparse
import itertools
import os
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from troth_cli.demo.options import DemoOptions
from troth_cli.demo.runner import run_demo
from troth_client.telemetry.event_log import EventTail
from troth_client.telemetry.events import Event

NUM_ROUNDS = 10
SOL = 10**9
MICRO = 10**6


def main() -> None:
    """Print the tables of a finished demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    folder = parser.parse_args().folder
    load = f"load average before it {os.getloadavg()[0]:.1f}"
    if folder is not None:
        report(folder)
        return
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch) / "demo"
        options = DemoOptions(folder=fresh, num_rounds=NUM_ROUNDS, margin_micro=0, seed=1)
        run_demo(options, Console(stderr=True))
        report(fresh)
        print(f"\n{os.cpu_count()} cores, {load}")


def report(folder: Path) -> None:
    """Print the whole and the steps of the demo in a folder, in Markdown."""
    own = {str(event["event"]): event for event in read(folder / "events.jsonl")}
    logs = [read(path) for path in sorted(folder.glob("trainer-*/events.jsonl"))]
    events = [event for log in logs for event in log]
    for line in itertools.chain(whole(own, events), [""], steps(events)):
        print(line)


def whole(own: dict[str, Event], events: list[Event]) -> Iterator[str]:
    """Yield the rows about the demo as a whole."""
    closes = defaultdict(list)
    for event in events:
        if event["event"] == "round_closed":
            closes[event["round"]].append(event["time"])
    ends = [min(times) for _, times in sorted(closes.items())]
    rounds = [later - sooner for sooner, later in itertools.pairwise(ends)]
    summary = own["summarised"]
    first, last = (summary[f"loss_{end}_micro"] / MICRO for end in ("first", "last"))
    yield "| | |"
    yield "|---|---:|"
    yield f"| rounds | {summary['num_rounds']} |"
    yield f"| payloads included | {summary['num_included']} |"
    yield f"| validation loss, nats a byte | {first:.3f} → {last:.3f} |"
    yield f"| fees | {summary['fees_lamports'] / SOL:.6f} SOL |"
    prepared = seconds(own["run_created"], own["chain_started"])
    yield f"| data prepared, run created | {prepared:.1f} s |"
    yield f"| a round, median (longest) | {statistics.median(rounds):.2f} s ({max(rounds):.2f} s) |"
    yield f"| start to last trainer's end | {own['trainers_ended']['seconds']:.1f} s |"


def steps(events: list[Event]) -> Iterator[str]:
    """Yield the table of steps, in the order in which a round takes them."""
    lasted = defaultdict(list)
    for event in events:
        if event["event"] == "step_ended":
            lasted[event["step"]].append(event["seconds"] * 1_000)
    yield "| step | median ms | 95 % ms | times |"
    yield "|---|---:|---:|---:|"
    for name, values in lasted.items():
        high = sorted(values)[min(len(values) - 1, len(values) * 95 // 100)]
        yield f"| {name} | {statistics.median(values):.1f} | {high:.1f} | {len(values)} |"


def read(path: Path) -> list[Event]:
    """Return the events of one log."""
    return list(EventTail(path).read())


def seconds(later: Event, sooner: Event) -> float:
    """Return the time between two events."""
    return float(later["time"]) - float(sooner["time"])


if __name__ == "__main__":
    main()
