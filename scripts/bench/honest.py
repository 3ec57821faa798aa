"""Honest runs, members in fp32 and bf16 mixed: `python scripts/bench/honest.py [--rounds N] …`.

Owns: whole runs in one process in which everybody is honest and two targets of each round are
audited, and the count of everything that would hurt somebody.
Never: a cheat. Next: `localnet/troth_simulation/in_process.py`; `verification.py` for the time.

Every run is a line of JSON in --out; a run that is there already is counted, not played again.
Two processes may share the file if their --seed lie far apart.

The judge's bounds are the protocol's. Calibration is asked first whether they suit this model, data
and these precisions; a clip that most gradients reach keeps the residual bound out of reach.
"""

import argparse
import asyncio
import itertools
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from whole_runs import Journal, kinds_of, model_of, prepared, settings_on

from troth_attestation.quorum import AuditOutcome
from troth_client.calibration.calibrate import Plan, calibrate
from troth_client.calibration.thresholds import in_the_way, propose_for
from troth_client.calibration.ways import ways_here
from troth_client.data.prepare import PrepareOptions
from troth_client.data.shards import TokenData
from troth_client.data.sources import stdlib_source
from troth_client.model.device import CPU, Device, choose_device
from troth_coordinator.rules.audit_view import AuditStage
from troth_coordinator.rules.config import MICRO
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.settings import RunSettings
from troth_simulation.in_process import InProcessRun

TOKENS = 64
TEXT_BYTES = 1_000_000
HEADROOM = 1.5
"""The accept bound lies at least so far above the worst honest error that calibration found."""
CHAIN = {
    "min_members": 2,
    "commit_slots": 40,
    "attest_slots": 30,
    "close_grace_slots": 5,
    "warmup_slots": 20,
    "openings_slots": 20,
    "verdict_commit_slots": 30,
    "verdict_reveal_slots": 20,
    "case_slots": 60,
    "p_base_ppm": 200_000,
    "p_new_ppm": 1_000_000,
    "audit_cap": 2,
}


@dataclass
class Tally:
    """Counts over honest runs; `harm` must stay 0. `highest_load` is the load of the machine."""

    seconds: float = 0.0
    highest_load: float = 0.0
    participant_rounds: int = 0
    audits: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    across: int = 0
    highest_error: float = 0.0
    most_far_tiles: int = 0
    highest_residual: float = 0.0
    unproven: int = 0
    other_outcomes: int = 0
    cases: int = 0
    strikes: int = 0
    faults: int = 0
    lost_lamports: int = 0

    def __post_init__(self) -> None:
        self.verdicts = Counter(self.verdicts)

    @property
    def harm(self) -> int:
        """How often an honest participant was hurt in any way."""
        hurt = self.unproven + self.other_outcomes + self.cases + self.strikes + self.faults
        return hurt + self.lost_lamports

    def add(self, other: "Tally") -> None:
        """Count another run in."""
        for name in (one.name for one in fields(self)):
            mine, theirs = getattr(self, name), getattr(other, name)
            is_extreme = name.startswith(("highest", "most"))
            setattr(self, name, max(mine, theirs) if is_extreme else mine + theirs)

    def row(self) -> str:
        """Return one line of the table."""
        spoken = ", ".join(f"{n} {kind}" for kind, n in sorted(self.verdicts.items()))
        return (
            f"{self.seconds:.0f} s at load {self.highest_load:.1f} or less: "
            f"{self.participant_rounds} participant-rounds, {self.audits} audits, verdicts "
            f"{spoken} ({self.across} between two ways); highest error {self.highest_error:.4f}, "
            f"far tiles {self.most_far_tiles}, residual {self.highest_residual:.1f}; "
            f"unproven {self.unproven} ({self.unproven / max(1, self.audits):.2%}), other "
            f"outcomes {self.other_outcomes}, cases {self.cases}, strikes {self.strikes}, "
            f"faults {self.faults}, lamports lost {self.lost_lamports}"
        )


def make_data(folder: Path) -> TokenData:
    """Prepare a piece of the standard library."""
    shape = PrepareOptions(sequence_tokens=TOKENS, limit_bytes=TEXT_BYTES)
    return prepared(folder, stdlib_source(), shape)


def settings_of(data: TokenData, members: int, rounds: int) -> RunSettings:
    """Return a run of so many members and rounds on the data, every round audited."""
    changes = {
        "model": model_of(width=64, layers=1, tokens=TOKENS),
        "data": {"sequence_tokens": TOKENS},
        "demo": {"k": 64},
        "schedule": {"rounds": rounds, "lr_nano": 700_000},
        "train": {"sequences_per_payload": 8, "microbatch_sequences": 4, "clip_micro": 100_000},
        "chain": {"capacity": members, **CHAIN},
    }
    return settings_on(data, changes)


def check_bounds(settings: RunSettings, data: TokenData) -> None:
    """Ask calibration whether the bounds leave honest work alone; SystemExit if they do not."""
    config, rounds = settings.config, settings.config.schedule.rounds
    ways = [way for way in ways_here(config) if way.threads == 1]
    plan = Plan(rounds, every=2, draws=2, trainers=settings.chain.capacity)
    groups = calibrate(config, data, ways, plan).groups
    factor = settings.chain.sketch_factor
    found, obstacles = propose_for(groups), in_the_way(groups, config.judge, factor)
    worst, mildest = found.worst_honest or 0.0, found.mildest or 0.0
    honest = [group for group in groups if group.is_honest]
    print(
        f"calibrated over {rounds} rounds: honest errors to {worst:.4f}, far tiles "
        f"to {max(g.most_bad_tiles for g in honest)}, residuals to "
        f"{max(g.highest_residual for g in honest):.1f}, distances of whole gradients to "
        f"{max(g.whole.distance for g in honest):.4f}; mildest cheat from {mildest:.4f}",
        flush=True,
    )
    if HEADROOM * worst * MICRO > config.judge.ok_bound_micro or obstacles:
        raise SystemExit("the bounds do not suit this config: honest people would be hurt")


async def play(settings: RunSettings, data: TokenData, seed: int, second: Device = CPU) -> Tally:
    """Play one run to its end; members compute in every kind of both devices, in turn."""
    begun, kinds = time.monotonic(), list(kinds_of(second).values())
    with tempfile.TemporaryDirectory() as name:
        run = await InProcessRun.create(settings, data, Path(name), seed=seed)
        for number in range(settings.chain.capacity):
            member = await run.add(f"member-{number}")
            member.device = kinds[number % len(kinds)]
        for member in run.members:
            await run.start(member)
        await run.finish()
        found = await count(run)
        found.seconds, found.highest_load = time.monotonic() - begun, os.getloadavg()[0]
        if found.harm:
            _write_events(run, Path(f"honest-{seed}-events.jsonl"))
        return found


async def count(run: InProcessRun) -> Tally:
    """Count what a finished run shows, on chain and in the events of its members."""
    view, found = await run.view(), Tally()
    events = run.members[0].events
    computes = {one.index: one.device for one in run.members}
    for closed in events.named("round_closed"):
        found.participant_rounds += len(closed["included"])
    for one in run.members:
        for judged in one.events.named("judged"):
            found.verdicts[judged["verdict"]] += 1
            found.across += one.device != computes[judged["target"]]
            found.highest_error = max(found.highest_error, judged["error"] or 0)
            found.most_far_tiles = max(found.most_far_tiles, judged["far_tiles"] or 0)
            found.highest_residual = max(found.highest_residual, judged["residual"] or 0)
    outcomes: dict[tuple[int, int], int] = {}
    for change in events.named("audit_changed"):
        outcomes[change["round"], change["target"]] = change["outcome"]
        found.cases += change["stage"] == AuditStage.ACCUSED.name
    found.audits = len(outcomes)
    found.unproven = sum(how == AuditOutcome.UNPROVEN for how in outcomes.values())
    cleared = sum(how == AuditOutcome.CLEARED for how in outcomes.values())
    found.other_outcomes = found.audits - cleared - found.unproven
    stake = run.settings.chain.min_stake_lamports
    for entry in view.entries[: len(run.members)]:
        found.strikes += entry.strikes + sum(r != NONE for r in entry.unproven_rounds)
        found.faults += entry.seat_faults + entry.work_faults
        found.lost_lamports += stake - entry.stake
    return found


def _write_events(run: InProcessRun, path: Path) -> None:
    """Leave behind what is needed to find out how somebody was hurt."""
    lines = [{"who": one.index, **event} for one in run.members for event in one.events.events]
    path.write_text("".join(json.dumps(line, default=str) + "\n" for line in lines))
    print(f"somebody was hurt: {path}", flush=True)


def main() -> int:
    """Play run after run until there are enough participant-rounds; 1 if anybody was hurt."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--participant-rounds", type=int, default=10_000)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1, help="the first; the others follow it")
    parser.add_argument("--out", type=Path, default=Path("runs/honest.jsonl"))
    parser.add_argument(
        "--device", default="cpu", help="a second device: half of all compute there"
    )
    arguments = parser.parse_args()
    second = choose_device(arguments.device)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        data = make_data(Path(folder))
        settings = settings_of(data, arguments.members, arguments.rounds)
        check_bounds(settings, data)
        journal = Journal(arguments.out, second)
        while True:
            known = journal.read(settings)
            total = sum_of(known.values())
            print(total.row(), flush=True)
            if total.participant_rounds >= arguments.participant_rounds:
                break
            seed = next(n for n in itertools.count(arguments.seed) if str(n) not in known)
            journal.add(settings, str(seed), vars(asyncio.run(play(settings, data, seed, second))))
    return 1 if total.harm else 0


def sum_of(runs: Iterable[dict[str, Any]]) -> Tally:
    """Return what happened in all runs of a journal."""
    total = Tally()
    for one in runs:
        total.add(Tally(**one))
    return total


if __name__ == "__main__":
    sys.exit(main())
