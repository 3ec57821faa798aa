"""Cost of verification beside training: `python scripts/bench/verification.py [--sequences N]`.

Owns: a run in one process with audits, and the processor time of every heavy function, those of
the transport on opening sets too. From them follows the cost of audits at p = 0.05 with three
seats, as a share of the cost of training: two spare members receive and check each set as well.
Never: a cheat, waiting, or the chain's own work. Next: `honest.py` for whether it is fair.

More is sampled than p = 0.05, to have enough calls of each function; the share is computed for p.
It is a ratio of processor times of one thread in one run, so that load blurs it little.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import torch
from metered import FETCHED, JUDGED, KEPT, SHOWN, MeteredTransport, Tally
from whole_runs import on_source_text

from troth_client.audit.push_openings import NUM_SPARES
from troth_client.data.shards import TokenData
from troth_client.participant.assembly import Ports
from troth_client.runtime.base import Runtime, Work
from troth_client.transport.base import Transport
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.config import LEAST_AGREEMENT_AUDITS
from troth_coordinator.rules.settings import RunSettings
from troth_simulation.in_process import InProcessRun, SimulatedMember, run_members

P = ParamSpec("P")
T = TypeVar("T")

DEMO = Path("client/troth_cli/demo/demo.toml")
SAMPLED = {"p_base_ppm": 250_000, "p_new_ppm": 1_000_000, "audit_cap": 4}
RATE, SEATS = 0.05, 3
OF_A_SEAT = {
    "KeptWeights.load": "a seat: w_r from disk, its root",
    "HonestWitnessWork.gradient": "a seat: gradient and DCT",
    "HonestWitnessWork.judge": "a seat: verdict",
    "HonestWitnessWork.sketch": "a seat: sketch",
}
OF_A_TARGET = {
    "HonestWork.open_tiles": "the target: u and its tree, twice; the opening set",
}
OF_A_RECEIVER = {
    JUDGED: "a seat or spare: root and reading of a pushed set",
    KEPT: "a seat or spare: keeping it",
}
OF_READERS = {
    FETCHED: "a seat: root of the set for its verdict, and reading if it was not pushed",
    SHOWN: "all who look for a set",
}
"""Work that is not done once by each seat: all of it is divided by the number of audits."""
OF_AUDITS = OF_A_SEAT | OF_A_TARGET | OF_A_RECEIVER | OF_READERS
OF_A_START = {"assemble": "the start of a member, once a run: counted on neither side"}
GRADIENT = "HonestWork.gradient"
TARGET_SHARE = 0.15


class Meter(Tally):
    """Processor seconds and calls by function, and what follows from them."""

    def wrap(self, _member: SimulatedMember, ports: Ports) -> Ports:
        """Put the meter on a member's runtime and transport."""
        transport = cast(Transport, MeteredTransport(ports.transport, self))
        return replace(ports, runtime=_MeteredRuntime(ports.runtime, self), transport=transport)

    def each(self, names: Iterable[str]) -> float:
        """Return the seconds that one call of each of these functions takes."""
        return sum(self.seconds[name] / max(self.calls[name], 1) for name in names)

    @property
    def sets(self) -> float:
        """Seconds of one audit that go into its opening set on the way to seats and spares."""
        (audits,) = (self.calls[name] for name in OF_A_TARGET)
        readers = sum(self.seconds[name] for name in OF_READERS) / audits
        return (SEATS + NUM_SPARES) * self.each(OF_A_RECEIVER) + readers

    @property
    def audit(self) -> float:
        """Seconds of one audit: seats, the target that shows its tiles, the way of the set."""
        return SEATS * self.each(OF_A_SEAT) + self.each(OF_A_TARGET) + self.sets

    @property
    def training(self) -> float:
        """Seconds that one payload costs its trainer without audits, applying the others' too."""
        names = self.seconds.keys() - (OF_AUDITS | OF_A_START)
        return sum(self.seconds[name] for name in names) / self.calls[GRADIENT]


class _MeteredRuntime:
    """A runtime that measures its computations."""

    def __init__(self, runtime: Runtime, meter: Meter) -> None:
        self._runtime = runtime
        self._meter = meter

    async def wait(self, work: Work[T] = ()) -> None:
        await self._runtime.wait(work)

    async def wait_for_others(self, *futures: "asyncio.Future[Any]") -> None:
        await self._runtime.wait_for_others(*futures)

    async def compute(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        begun = time.thread_time()
        # A guard against too little memory calls what it is given.
        guarded = (each.func for each in args if isinstance(each, partial))
        name = next(guarded, function).__qualname__
        try:
            return await self._runtime.compute(function, *args, **kwargs)
        finally:
            self._meter.add(name, time.thread_time() - begun)

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        return self._runtime.start(work, name)

    def seconds(self) -> float | None:
        return self._runtime.seconds()


def settings_of(rounds: int, sequences: int, *, has_votes: bool) -> RunSettings:
    """Return the demo's run with the sampling of the target, and with T4 where it `has_votes`."""
    # The bound forgives nearly everything: what is measured is the test, and no second computation.
    votes = {"agreement_bound_micro": 1, "agreement_audits": LEAST_AGREEMENT_AUDITS}
    changes = {
        "schedule": {"rounds": rounds, "warmup_rounds": 2},
        "train": {"sequences_per_payload": sequences},
        "chain": {"min_members": 2, "capacity": 16, **SAMPLED},
        "judge": votes if has_votes else {},
    }
    return load_config([DEMO], changes)


async def measure(settings: RunSettings, data: TokenData, members: int, seed: int) -> Meter:
    """Play a run and return what its members computed."""
    meter = Meter()
    with tempfile.TemporaryDirectory() as name:
        run = await InProcessRun.create(settings, data, Path(name), seed=seed)
        run.wrap = meter.wrap
        await run_members(run, [f"member-{number}" for number in range(members)])
    return meter


def table(meter: Meter) -> str:
    """Return the functions by time, those of audits marked, and the shares."""
    lines = ["| function | calls | ms a call | s in all | for |", "|---|---:|---:|---:|---|"]
    for name, seconds in meter.seconds.most_common():
        calls = meter.calls[name]
        what = (OF_AUDITS | OF_A_START).get(name, "training")
        lines.append(
            f"| `{name}` | {calls} | {seconds / calls * 1e3:.1f} | {seconds:.2f} | {what} |"
        )
    cost, bare = RATE * meter.audit, RATE * (meter.audit - meter.sets)
    lines += [
        "",
        f"an opening set on its way to {SEATS} seats and {NUM_SPARES} spares "
        f"{meter.sets * 1e3:.1f} ms; without it audits take {bare / meter.training:.1%}",
        f"one seat {meter.each(OF_A_SEAT) * 1e3:.0f} ms; "
        f"one payload {meter.training * 1e3:.0f} ms to its trainer",
        f"at p = {RATE} and {SEATS} seats audits take {cost / meter.training:.1%} of what trainers "
        f"compute (target at most {TARGET_SHARE:.0%}), {cost / meter.each([GRADIENT]):.1%} of the "
        f"gradients alone; {RATE * SEATS:.0%} is what recomputing every sample costs",
    ]
    return "\n".join(lines)


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--sequences", type=int, default=4, help="sequences per payload")
    parser.add_argument("--votes", action="store_true", help="test the votes of all tiles (T4)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    wanted = settings_of(arguments.rounds, arguments.sequences, has_votes=arguments.votes)
    with on_source_text(wanted) as (settings, data):
        meter = asyncio.run(measure(settings, data, arguments.members, arguments.seed))
    print(table(meter))
    return 0


if __name__ == "__main__":
    sys.exit(main())
