"""Ranks of one participant: real processes that help, and the place of each.

Owns: starting and ending them. Never: computes for rank 0 in the test's own process.
Next: `unit/train/test_team.py`.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from troth_client.train.place import Place
from troth_client.train.ranks import Ranks
from troth_client.train.team import Team

RUN = "1" * 32


class Reports(list[str]):
    """The reports of a rank 0, as `event: reason`."""

    def __call__(self, event: str, reason: str) -> None:
        self.append(f"{event}: {reason}")


def place(rank: int, port: int, size: int = 2) -> Place:
    """The place of a rank on this machine; rank 0 hosts the store."""
    return Place(rank, size, rank, "127.0.0.1", port)


def team(ranks: Ranks) -> Team:
    """A team that has met."""
    return Team(ranks.size, lambda: ranks)


def variables(one: Place) -> dict[str, str]:
    """The variables that torchrun would set."""
    return {
        "RANK": str(one.rank),
        "WORLD_SIZE": str(one.size),
        "LOCAL_RANK": str(one.local),
        "LOCAL_WORLD_SIZE": str(one.size),
        "MASTER_ADDR": one.host,
        "MASTER_PORT": str(one.port),
    }


@contextlib.contextmanager
def helping(folder: Path, one: Place, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A process of `troth join` with a rank above 0; it is killed at the end."""
    command = [sys.executable, "-m", "troth_cli", "join", RUN, "--key", "of-rank-zero.json"]
    command += ["--device", "cpu", "--threads", "1", *options]
    environment = {**os.environ, **variables(one), "OMP_NUM_THREADS": "1"}
    with (folder / f"rank-{one.rank}").open("w", encoding="utf-8") as notes:
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=notes, text=True
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def notes_of(folder: Path, rank: int) -> str:
    """The lines of a rank on stderr so far."""
    return (folder / f"rank-{rank}").read_text(encoding="utf-8")
