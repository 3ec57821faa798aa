"""Joining late, measured: `python scripts/bench/late_join.py [--layers L] [--hidden C] [--seed S]`.

Owns: one run of real processes on the embedded chain, one of which starts late. Its log gives
the seconds and bytes of each step of its way in, another log the cost of checkpoints.
Next: docs/results.md has the table; tests/integration/test_processes_late.py for the claims.

Prints one line of JSON. Rounds are as short as the machine allows: nobody waits for deadlines.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from json_lines import read_lines

from troth_cli.demo.options import DemoOptions
from troth_cli.demo.participant import PRELOAD, ParticipantProcess, run_participant
from troth_cli.demo.setup import create_run, participant_processes, start_chain
from troth_client.telemetry.events import EventList
from troth_coordinator.chain.client import CoordinatorClient, SendPolicy
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.settings import RunSettings
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions
from troth_localnet.fleet import Fleet, preload
from troth_simulation.cheats.catalogue import NOBODY

SLOT_MILLISECONDS = 100
SECONDS = 3_000
EVERY = 10
ROUNDS = 34
LATE_AT = 18
"""The newcomer starts when this round has closed: as far from the last checkpoint as can be."""


class Options(DemoOptions):
    """A run whose first rounds leave the ring, of a model of the size asked for."""

    model: dict[str, int] = {}  # noqa: RUF012  set once, by `main`

    def settings(self) -> RunSettings:
        """Return the settings of the demo with another model, ring and checkpoints."""
        changes: dict[str, object] = {
            "schedule.rounds": self.num_rounds,
            "schedule.decay_from_round": self.num_rounds,
            "schedule.warmup_rounds": 2,
            "chain.min_members": 2,
            "chain.checkpoint_every": EVERY,
            "chain.ring": EVERY + 4,
            "chain.p_new_ppm": 0,
            "chain.p_base_ppm": 0,
            "chain.commit_slots": 1_500,
            "chain.attest_slots": 1_500,
            "chain.vesting_slots": 20_000,
            "chain.unbond_slots": 40_000,
        }
        changes |= {f"model.{name}": value for name, value in self.model.items()}
        return load_config([self.config], changes)


def run(folder: Path, seed: int, num_trainers: int) -> dict[str, list[dict[str, Any]]]:
    """Play the run to its end; return the events by participant."""
    options = Options(
        folder=folder,
        num_trainers=num_trainers + 1,
        num_witnesses=0,
        cheat=NOBODY,
        num_rounds=ROUNDS,
        slot_milliseconds=SLOT_MILLISECONDS,
        seed=seed,
    )
    folder.mkdir(parents=True)
    with EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=SLOT_MILLISECONDS)) as launcher:
        start_chain(launcher, EventList())
        processes = asyncio.run(_processes(options, launcher.rpc_url))
        preload(PRELOAD)
        _play(folder, processes[:num_trainers], processes[num_trainers:])
    return {name: list(_read(folder / name)) for name in options.names}


def _play(folder: Path, early: list[ParticipantProcess], late: list[ParticipantProcess]) -> None:
    with Fleet(run_participant, early) as members:
        _await_round(folder, LATE_AT)
        with Fleet(run_participant, late) as latecomers:
            if not (members.wait(SECONDS) and latecomers.wait(SECONDS)):
                raise TimeoutError(f"the run was not over after {SECONDS} s")


async def _processes(options: Options, rpc_url: str) -> list[ParticipantProcess]:
    async with HttpRpc(rpc_url) as rpc:
        client = CoordinatorClient(rpc, policy=SendPolicy(poll_seconds=SLOT_MILLISECONDS / 2_000))
        created = await create_run(options, client, EventList())
    found = participant_processes(options, created, rpc_url)
    return [replace(one, settings=replace(one.settings, num_threads=1)) for one in found]


def _await_round(folder: Path, round_: int) -> None:
    while not any(
        event["event"] == "round_closed" and event["round"] >= round_
        for event in _read(folder / "trainer-0")
    ):
        time.sleep(0.2)


def _read(folder: Path) -> Iterator[dict[str, Any]]:
    return read_lines(folder / "events.jsonl")


def measure(events: dict[str, list[dict[str, Any]]], late: str) -> dict[str, Any]:
    """Return the numbers of docs/results.md."""
    own, old = events[late], events["trainer-0"]

    def first(name: str) -> dict[str, Any]:
        return next(event for event in own if event["event"] == name)

    closed = [e for e in old if e["event"] == "round_closed" and EVERY // 2 < e["round"] < LATE_AT]
    gaps = [b["time"] - a["time"] for a, b in pairwise(closed)]
    replayed = [
        e for e in own if e["event"] == "round_closed" and e["time"] < first("arrived")["time"]
    ]
    replay = first("arrived")["time"] - first("fetched")["time"]
    made = [e for e in old if e["event"] == "checkpoint_made"]
    every = [e["time"] for e in old if e["event"] == "round_closed"]
    spans = list(pairwise(every))
    beside = [b - a for a, b in spans if any(_overlaps(a, b, one) for one in made)]
    begun = first("restoring")["time"]
    seen = [e["round"] + 1 for e in old if e["event"] == "round_closed" and e["time"] <= begun]
    return {
        "begun_in_round": max(seen),
        "fetched_bytes": first("fetched")["fetched_bytes"],
        "fetch_seconds": round(first("fetched")["time"] - first("restoring")["time"], 2),
        "replayed_rounds": len(replayed),
        "replay_seconds": round(replay, 2),
        "round_seconds": round(statistics.median(gaps), 2),
        "arrived_to_joined_seconds": round(first("joined")["time"] - first("arrived")["time"], 2),
        "joined_in_round": first("ready")["round"],
        "first_commit_in_round": first("committed")["round"],
        "newest_checkpoint": first("fetched")["round"],
        "checkpoint_seconds": [one["seconds"] for one in made],
        "round_seconds_beside": [round(one, 2) for one in beside],
    }


def _overlaps(begun: float, ended: float, made: dict[str, Any]) -> bool:
    return made["time"] > begun and made["time"] - made["seconds"] < ended


def model_of(hidden: int | None, layers: int | None) -> dict[str, int]:
    """Return what differs from the model of the demo; a wider one has 4 layers unless told."""
    found = {}
    if hidden is not None:
        found = {"hidden_size": hidden, "intermediate_size": 4 * hidden, "num_hidden_layers": 4}
    return found if layers is None else {**found, "num_hidden_layers": layers}


def main() -> int:
    """Run once and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trainers", type=int, default=3)
    arguments = parser.parse_args()
    Options.model = model_of(arguments.hidden, arguments.layers)
    with tempfile.TemporaryDirectory() as folder:
        events = run(Path(folder) / "run", arguments.seed, arguments.trainers)
    found = measure(events, f"trainer-{arguments.trainers}")
    print(json.dumps({"seed": arguments.seed, "model": Options.model, **found}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
