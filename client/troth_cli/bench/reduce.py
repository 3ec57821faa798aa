"""Dense all-reduce as data-parallel training does it: two processes on this machine, gloo.

Owns: both processes. The time is that of copies and sums through loopback, without a network.
Never: compresses. Next: `parts.py`, which sets it beside a step of DeMo.
"""

import multiprocessing
import statistics
import tempfile
import time
from pathlib import Path

import torch
from torch import distributed

from troth_cli.errors import CommandError

NUM_RANKS = 2
_STEP = "See their output above; --sizes 1M takes the least memory."


def dense_all_reduce(num_values: int, repeats: int, num_threads: int) -> float:
    """Return the median seconds in which two processes average so many fp32 values.

    Raises CommandError if one of them dies.
    """
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="troth-bench-") as folder:
        about = folder, num_values, repeats, num_threads
        ranks = [context.Process(target=_rank, args=(n, *about)) for n in range(NUM_RANKS)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        codes = [rank.exitcode for rank in ranks]
        if any(codes):
            raise CommandError(
                "two processes that end well", f"exit codes {codes}", _STEP, "dense all-reduce"
            )
        return float((Path(folder) / "seconds").read_text())


def _rank(rank: int, folder: str, num_values: int, repeats: int, num_threads: int) -> None:
    """Be one of the processes; the first writes the median."""
    torch.set_num_threads(num_threads)
    store = f"file://{folder}/meet"
    distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=NUM_RANKS)
    values = torch.ones(num_values)
    times = []
    for turn in range(repeats + 1):
        distributed.barrier()
        start = time.perf_counter()
        distributed.all_reduce(values)
        values /= NUM_RANKS
        if turn:
            times.append(time.perf_counter() - start)
    if rank == 0:
        (Path(folder) / "seconds").write_text(str(statistics.median(times)))
    distributed.destroy_process_group()
