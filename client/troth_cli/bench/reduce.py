"""Dense all-reduce as data-parallel training does it: two processes on this machine, gloo.

Owns: both processes. The time is that of copies and sums on the processor and through loopback,
without a network or a GPU. Never: compresses. Next: `parts.py`, which sets it beside a step of
DeMo.
"""

import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import distributed

from troth_cli.errors import CommandError
from troth_localnet.fleet import Fleet, preload

NUM_RANKS = 2
_STEP = "See their output above; --sizes 1M takes the least memory."


@dataclass(frozen=True, slots=True)
class _Rank:
    """The orders of one process."""

    number: int
    folder: Path
    num_values: int
    repeats: int
    num_threads: int


def dense_all_reduce(num_values: int, repeats: int, num_threads: int) -> float:
    """Return the median seconds in which two processes average so many fp32 values.

    Raises CommandError if one of them dies; the other one would wait for it, and is ended.
    """
    preload((__name__,))
    with tempfile.TemporaryDirectory(prefix="troth-bench-") as name:
        folder = Path(name)
        ranks = [_Rank(n, folder, num_values, repeats, num_threads) for n in range(NUM_RANKS)]
        with Fleet(_reduce, ranks) as fleet:
            while None in (codes := fleet.exit_codes()) and not any(codes):
                fleet.wait_any()
        failed = next(filter(None, codes), None)
        if failed is not None:
            raise CommandError(
                "two processes that end well", f"exit code {failed}", _STEP, "dense all-reduce"
            )
        return float((folder / "seconds").read_text())


def _reduce(rank: _Rank) -> None:
    """Be one of the processes; the first writes the median."""
    torch.set_num_threads(rank.num_threads)
    store = f"file://{rank.folder}/meet"
    distributed.init_process_group(
        "gloo", init_method=store, rank=rank.number, world_size=NUM_RANKS
    )
    values = torch.ones(rank.num_values)
    times = []
    for turn in range(rank.repeats + 1):
        distributed.barrier()
        start = time.perf_counter()
        distributed.all_reduce(values)
        values /= NUM_RANKS
        if turn:
            times.append(time.perf_counter() - start)
    if rank.number == 0:
        (rank.folder / "seconds").write_text(str(statistics.median(times)))
    distributed.destroy_process_group()
