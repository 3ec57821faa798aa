"""Time several ways of doing the same, in turns: what disturbs one disturbs all.

Owns: repetitions and medians, and how busy the machine was. Never: a ratio or a table.
Next: `parts.py`.
"""

import os
import statistics
import time
from collections.abc import Callable, Mapping

import torch

Way = Callable[[], object]
Clock = Callable[[], float]


def in_turns(
    ways: Mapping[str, Way],
    repeats: int,
    device: torch.device,
    clock: Clock = time.perf_counter,
) -> dict[str, float]:
    """Return the median seconds of each way; a first turn is not counted."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name, way in ways.items():
            _finish(device)
            start = clock()
            way()
            _finish(device)
            if turn:
                times[name].append(clock() - start)
    return {name: statistics.median(each) for name, each in times.items()}


def load() -> float:
    """Return how many processes wanted a core, on average over the last minute."""
    return round(os.getloadavg()[0], 1)


def _finish(device: torch.device) -> None:
    """Wait for an accelerator, which works on after a call has returned."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
