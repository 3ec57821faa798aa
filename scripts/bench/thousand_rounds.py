"""Disk and memory of participants over a long run: `python scripts/bench/thousand_rounds.py`.

Owns: one run inside one process with folders on disk, and samples of bytes, objects and entries.
Never: a cheat or a socket. Next: `localnet/troth_simulation/in_process.py`;
`tests/integration/test_long_runs.py`, which fails when something grows.

The process holds all members, a hub and the chain, so its memory is not that of one participant.
The chain here keeps few of its past transactions, so that its memory soon stands still.
"""

import argparse
import asyncio
import gc
import json
import re
import sys
import tempfile
import time
import tracemalloc
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import torch
from whole_runs import model_of, on_source_text

from troth_client.participant.assembly import Ports
from troth_client.telemetry.event_log import EVENTS_FILE, EventLog
from troth_client.telemetry.events import EventList
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.settings import RunSettings
from troth_localnet.history import History
from troth_simulation.hub import SimulatedHub
from troth_simulation.in_process import InProcessRun, SimulatedMember

TOKENS = 16
CHAIN = {
    "min_members": 2,
    "commit_slots": 40,
    "attest_slots": 30,
    "close_grace_slots": 5,
    "warmup_slots": 20,
    "openings_slots": 20,
    "verdict_commit_slots": 30,
    "verdict_reveal_slots": 20,
    "jury_commit_slots": 30,
    "jury_reveal_slots": 20,
    "appeal_slots": 20,
    "breaker_slots": 20,
    "case_slots": 60,
    "p_base_ppm": 500_000,
    "p_new_ppm": 500_000,
}
OURS = ("troth_client", "troth_coordinator", "troth_attestation")
CONTAINERS = (dict, list, set, deque)
KEPT_TRANSACTIONS = 2_000
HUB, EVENTS = "hub", "events"
SOME = 12
"""Growth that is no growth: one or two for each participant."""
_KIND = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class Sample:
    """All files, objects and entries of the members and the hub at the start of a round.

    `disk` are bytes by kind of file, `num_files` their number; `objects` are instances by class and
    `entries` those in the containers of their fields; `rss_bytes` is the whole process.
    """

    round: int
    seconds: float
    rss_bytes: int
    num_tasks: int
    num_files: int
    disk: dict[str, int]
    objects: dict[str, int]
    entries: dict[str, int]

    def row(self) -> str:
        """Return one line of the table."""
        kinds = "  ".join(f"{kind} {size:,}" for kind, size in sorted(self.disk.items()))
        return (
            f"round {self.round}: {self.seconds:.0f} s, RSS {self.rss_bytes / 2**20:.1f} MiB, "
            f"{self.num_tasks} tasks, {sum(self.objects.values()):,} objects, "
            f"{sum(self.entries.values()):,} entries, {self.num_files} files, "
            f"{sum(self.disk.values()):,} B on disk: {kinds}"
        )


def sampled(run: InProcessRun, round_: int, began: float) -> Sample:
    """Count everything now."""
    disk, num_files = Counter[str](), 0
    for folder in run.folder.iterdir():
        for kind, num_bytes in files_of(folder):
            disk[HUB if folder.name == HUB else kind] += num_bytes
            num_files += 1
    objects, entries = census()
    return Sample(
        round_,
        time.monotonic() - began,
        rss_bytes(),
        len(asyncio.all_tasks()),
        num_files,
        dict(disk),
        dict(objects),
        dict(entries),
    )


def files_of(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield kind and bytes of each file in a folder; the kind is the first word of its name."""
    for path in folder.rglob("*"):
        if path.is_file():
            found = _KIND.match(path.relative_to(folder).parts[0])
            yield found[0] if found else "other", path.stat().st_size


def census() -> tuple[Counter[str], Counter[str]]:
    """Return how many objects of our classes live, and how many entries their fields hold."""
    objects, entries = Counter[str](), Counter[str]()
    gc.collect()
    for one in gc.get_objects():
        # An EventList stands for a terminal or a file: simulations have it, participants do not.
        if not str(type(one).__module__).startswith(OURS) or isinstance(one, EventList):
            continue
        name = type(one).__qualname__
        objects[name] += 1
        for field, value in _fields(one):
            if isinstance(value, CONTAINERS):
                entries[f"{name}.{field}"] += len(value)
    return objects, entries


def _fields(one: object) -> Iterator[tuple[str, object]]:
    yield from getattr(one, "__dict__", {}).items()
    for base in type(one).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(one, name):
                yield name, getattr(one, name)


def rss_bytes() -> int:
    """Return the memory of this process that is in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def settings_of(rounds: int, members: int) -> RunSettings:
    """Return a run of the smallest model, every second payload audited."""
    return load_config(
        (),
        {
            "model": model_of(width=16, layers=1, tokens=TOKENS),
            "data": {"sequence_tokens": TOKENS},
            "demo": {"k": 8},
            "schedule": {"rounds": rounds, "lr_nano": 1_000_000},
            "train": {"sequences_per_payload": 2, "microbatch_sequences": 2},
            "chain": {"capacity": members, "audit_cap": members, **CHAIN},
        },
    )


async def play(
    create: Callable[[], Awaitable[InProcessRun]],
    members: int,
    every: int,
    report: Callable[[Sample], None],
) -> list[Sample]:
    """Play a run with a hub to its end; sample it each time that `every` rounds are over."""
    began, samples = time.monotonic(), list[Sample]()
    run = await create()
    run.has_blob_folders = True
    run.chain.history = History(KEPT_TRANSACTIONS)
    hub = SimulatedHub(run, HUB, run.folder / HUB)
    with ExitStack() as stack:

        def logged(member: SimulatedMember, ports: Ports) -> Ports:
            log = stack.enter_context(EventLog.open(member.folder / EVENTS_FILE))
            return replace(ports, events=log, hubs=(HUB,))

        def look(_slot: int) -> None:
            reached = min(int(one.here.state.replica.round) for one in run.members)
            if reached // every > len(samples):
                samples.append(sampled(run, reached, began))
                report(samples[-1])

        run.wrap = logged
        hub.start()
        for number in range(members):
            await run.add(f"member-{number}")
        for one in run.members:
            await run.start(one)
        run.on_slot.append(look)
        await run.finish()
        await hub.stop()
    return samples


def growth(samples: Sequence[Sample], factor: float) -> Iterator[str]:
    """Yield a line for each count whose peak grew by more than the factor, and by some.

    The second quarter of the samples is compared with the last one. The log of events is left out:
    it grows until it is rotated.
    """
    quarter = len(samples) // 4
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    for what in ("disk", "objects", "entries"):
        before, after = peaks(early, what), peaks(late, what)
        for name in sorted(after.keys() - {EVENTS}):
            if after[name] > factor * before[name] + SOME:
                yield f"{what} {name}: {before[name]:,}, later {after[name]:,}"


def peaks(samples: Sequence[Sample], what: str) -> Counter[str]:
    """Return the largest count of each name."""
    found = Counter[str]()
    for one in samples:
        found |= Counter(getattr(one, what))
    return found


def main() -> int:
    """Play, print a row for each sample, and what grew; 1 if anything did."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--top", type=int, default=0, help="lines whose memory grew most; slow")
    parser.add_argument("--json", type=Path, help="file for the samples, a line each")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.top:
        tracemalloc.start(1)
    seen: list[tracemalloc.Snapshot] = []

    def report(sample: Sample) -> None:
        print(sample.row(), flush=True)
        if arguments.top:
            now = tracemalloc.take_snapshot()
            for line in now.compare_to(seen[0], "lineno")[: arguments.top] if seen else ():
                print(f"  {line}", flush=True)
            seen.append(now)
            del seen[1:]
        if arguments.json is not None:
            with arguments.json.open("a") as out:
                out.write(json.dumps(asdict(sample)) + "\n")

    settings = settings_of(arguments.rounds, arguments.members)
    with on_source_text(settings) as (bound, data), tempfile.TemporaryDirectory() as folder:
        create = partial(InProcessRun.create, bound, data, Path(folder), seed=arguments.seed)
        samples = asyncio.run(play(create, arguments.members, arguments.every, report))
    # Seeds draw the audits, so that all that belongs to them goes up and down.
    grown = list(growth(samples, 1.5))
    print("\n".join(grown) or "nothing grew")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
