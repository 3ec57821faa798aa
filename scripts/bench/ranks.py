"""A gradient by one rank and by two, and what the exchange takes: `python scripts/bench/ranks.py`.

Owns: two processes of one participant over gloo, as torchrun starts them, one thread each. A
gradient alone and one with the other rank take turns.
Never: a GPU, or a claim; those go to docs/results.md.
Next: `client/troth_client/train/team.py`; docs/decisions/0030 for the exchange.
"""

import argparse
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NoReturn

import torch
from torch import Tensor

from troth_client.model.device import CPU
from troth_client.model.init import initial_weights
from troth_client.model.weights import build
from troth_client.participant.measuring import RandomTokens
from troth_client.train.learner import DEFAULT
from troth_client.train.place import Place
from troth_client.train.ranks import Ranks
from troth_client.train.team import PATIENCE_SECONDS, START_SECONDS, Leader, Team, help_leader, meet
from troth_coordinator.config_files import load_config

CONFIGS: Final = Path(__file__).parents[2] / "configs"


class TimedRanks(Ranks):
    """Connections that count the seconds in which tensors are exchanged."""

    seconds = 0.0

    def share(self, tensor: Tensor) -> None:
        """Give a tensor to all others."""
        began = time.perf_counter()
        super().share(tensor)
        self.seconds += time.perf_counter() - began

    def add_up(self, tensor: Tensor) -> None:
        """Sum a tensor over all ranks."""
        began = time.perf_counter()
        super().add_up(tensor)
        self.seconds += time.perf_counter() - began


def main() -> None:
    """Print a row for each preset, or help rank 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("presets", nargs="*", default=["25m"], help="like 25m")
    parser.add_argument("--sequences", type=int, default=8)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--help-at", type=int, metavar="PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.help_at:
        with contextlib.closing(meet(place(1, options.help_at))) as ranks:
            help_leader(ranks, DEFAULT, CPU)
        return
    print("| preset | tokens | one rank | two ranks | ratio | of that exchange |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    for name in options.presets:
        print(row(name, options.sequences, options.turns), flush=True)


def row(name: str, sequences: int, turns: int) -> str:
    """Return the medians of a preset as a line of the table."""
    config = load_config([CONFIGS / f"{name}.toml"]).config.with_manifest(bytes(32))
    model = build(config.model, initial_weights(bytes(32), config.model))
    batch = RandomTokens(config).sequences(range(sequences))
    alone: list[float] = []
    both: list[float] = []
    exchange: list[float] = []
    with helped() as ranks:
        leader = Leader(DEFAULT, Team(ranks.size, lambda: ranks), stop, is_member=False)
        leader.prepare(model, config, CPU)
        for turn in range(turns + 1):
            began = time.perf_counter()
            DEFAULT.gradient(model, batch, config.train, CPU)
            middle, ranks.seconds = time.perf_counter(), 0.0
            leader.gradient(model, batch, config.train, CPU)
            if turn:  # the first one warms up
                alone.append(middle - began)
                both.append(time.perf_counter() - middle)
                exchange.append(ranks.seconds)
    one, two, part = (statistics.median(each) for each in (alone, both, exchange))
    tokens = sequences * config.data.sequence_tokens
    return f"| `{name}` | {tokens} | {one:.2f} s | {two:.2f} s | {one / two:.2f}x | {part:.2f} s |"


@contextlib.contextmanager
def helped() -> Iterator[TimedRanks]:
    """Yield the connections of rank 0 to a process that helps; it ends with them."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--help-at", str(port)]
    with subprocess.Popen(command, env=environment) as helper:
        ranks = TimedRanks.connect(place(0, port), START_SECONDS, PATIENCE_SECONDS)
        with contextlib.closing(ranks):
            yield ranks
        helper.wait(60)


def stop(event: str, reason: str) -> NoReturn:
    """End: a rank that fails makes the figures worthless."""
    sys.exit(f"{event}: {reason}")


def place(rank: int, port: int) -> Place:
    """Return the place of one of two ranks on this machine."""
    return Place(rank, 2, rank, "127.0.0.1", port)


if __name__ == "__main__":
    main()
