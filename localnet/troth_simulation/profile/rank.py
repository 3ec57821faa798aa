"""The process of one rank: it joins the others, trains, and reports one line of JSON.

Owns: the process group, the stopwatch between barriers, the report.
Never: makes a network; `cell.py` starts this process inside one.
Next: `cell.py`.
"""

import hashlib
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import torch
from torch import distributed
from torch._C._distributed_c10d import FileStore

from troth_client.model.llama import Llama
from troth_client.model.weights import weight_views
from troth_simulation.profile.averaged import Averaged
from troth_simulation.profile.counters import Traffic, of_interface, of_own_sockets
from troth_simulation.profile.decoupled import DeMo
from troth_simulation.profile.diloco import DiLoCo
from troth_simulation.profile.method import Method
from troth_simulation.profile.records import Workload
from troth_simulation.profile.workload import Material

MAKERS: Final[dict[str, Callable[[Material], Method]]] = {
    "ddp": Averaged.ddp,
    "fsdp": Averaged.fsdp,
    "diloco": DiLoCo,
    "demo": DeMo,
}
"""The maker of each method, by its name in a plan."""
LOOPBACK: Final = "lo"
_STDOUT, _STDERR = 1, 2
_NUM_POINTS: Final = 10
"""Points of a curve after its first one, about."""


@dataclass(frozen=True, slots=True)
class RankSetup:
    """The orders of one rank. `num_units` 0: train the whole schedule and report losses.

    A unit is `unit_steps` steps, whose time is taken together. It ends with an exchange: all ranks
    have the same model then, and not before.
    """

    workload: Workload
    method: str
    rank: int
    num_units: int
    unit_steps: int
    interface: str
    folder: Path
    timeout_seconds: float

    @property
    def report(self) -> Path:
        """The file of the report, one line of JSON."""
        return self.folder / f"rank-{self.rank}.jsonl"

    @property
    def output(self) -> Path:
        """The file for everything that libraries print."""
        return self.folder / f"rank-{self.rank}.txt"


@dataclass(frozen=True, slots=True)
class RankReport:
    """The findings of one rank: seconds of each unit and bytes of all of them, or losses by step.

    `weights` is a hash of the last weights, "" where ranks do not hold the same ones.
    """

    seconds: tuple[float, ...] = ()
    sent_bytes: int = 0
    received_bytes: int = 0
    losses: tuple[tuple[int, float], ...] = ()
    weights: str = ""


def run_rank(setup: RankSetup) -> None:
    """Do the work of one rank; an error ends the process and stands at the end of its output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command ends its ranks in its own time
    with setup.output.open("ab") as output:
        os.dup2(output.fileno(), _STDOUT)
        os.dup2(output.fileno(), _STDERR)
    # gloo listens on this interface, and has no other way to be told.
    os.environ["GLOO_SOCKET_IFNAME"] = setup.interface
    torch.set_num_threads(1)
    ranks = setup.workload.num_ranks
    distributed.init_process_group(
        "gloo",
        store=FileStore(str(setup.folder / "store"), ranks),
        rank=setup.rank,
        world_size=ranks,
        timeout=timedelta(seconds=setup.timeout_seconds),
    )
    with Material(setup.workload, setup.rank) as material:
        method = MAKERS[setup.method](material)
        work = measured if setup.num_units else _learned
        report = work(setup, material, method)
    line = json.dumps({"rank": setup.rank, **asdict(report)})
    setup.report.write_text(line + "\n", encoding="utf-8")
    distributed.destroy_process_group()


def read_report(setup: RankSetup) -> RankReport:
    """Return what a rank has reported."""
    values = json.loads(setup.report.read_text(encoding="utf-8"))
    del values["rank"]
    losses = tuple((int(step), float(loss)) for step, loss in values.pop("losses"))
    return RankReport(**values | {"losses": losses, "seconds": tuple(values["seconds"])})


def measured(setup: RankSetup, material: Material, method: Method) -> RankReport:
    """Take the last step of a first unit; then measure whole units between barriers.

    That first step exchanges, whatever the method: it connects and allocates for the others.
    """
    count: Callable[[], Traffic] = partial(of_interface, setup.interface)
    if setup.interface == LOOPBACK:
        count = of_own_sockets
    first = setup.unit_steps - 1
    method.step(first, material.batch(first))
    distributed.barrier()
    before, times = count(), [time.perf_counter()]
    for unit in range(1, setup.num_units + 1):
        for step in range(unit * setup.unit_steps, (unit + 1) * setup.unit_steps):
            method.step(step, material.batch(step))
        times.append(time.perf_counter())
    distributed.barrier()
    found = count().since(before)
    # A rank that leaves closes its connections, and their counters go with them.
    distributed.barrier()
    seconds = tuple(end - begun for begun, end in pairwise(times))
    return RankReport(seconds, found.sent, found.received)


def _learned(setup: RankSetup, material: Material, method: Method) -> RankReport:
    """Train the whole schedule; the loss of all held-out text is the mean over the ranks."""
    rounds, unit = material.config.schedule.rounds, setup.unit_steps
    every, outer = max(1, rounds // _NUM_POINTS), material.workload.inner_steps
    losses = [(0, _mean_loss(material, method.model))]
    for num_steps in range(1, rounds + 1):
        method.step(num_steps - 1, material.batch(num_steps - 1))
        is_due = any(num_steps % one == 0 for one in (every, outer, rounds))
        if is_due and num_steps % unit == 0:
            losses.append((num_steps, _mean_loss(material, method.model)))
    is_comparable = rounds % unit == 0 and not _is_sharded(method.model)
    weights = _hash(method.model) if is_comparable else ""
    return RankReport(losses=tuple(losses), weights=weights)


def _mean_loss(material: Material, model: Llama) -> float:
    loss = torch.tensor(material.held_out_loss(model), dtype=torch.float64)
    distributed.all_reduce(loss)
    return float(loss) / distributed.get_world_size()


def _is_sharded(model: Llama) -> bool:
    return any(hasattr(weight, "to_local") for weight in model.parameters())


def _hash(model: Llama) -> str:
    found = hashlib.sha256()
    for weight in weight_views(model).values():
        found.update(weight.numpy().tobytes())
    return found.hexdigest()
