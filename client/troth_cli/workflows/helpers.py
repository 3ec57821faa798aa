"""The helping ranks that rank 0 starts itself: `troth join --ranks N`.

Owns: their start as the same command, the folder in which they meet rank 0, their end.
Never: ends rank 0 when one of them ends, as torchrun does: it computes alone then.
Next: `ranks.py` for the life of a helping rank.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from troth_cli.workflows.ranks import ARRIVED, FOLDER, OWN_RANK
from troth_client.train.errors import RanksError
from troth_client.train.place import Place
from troth_client.train.ranks import private_folder
from troth_client.train.team import START_SECONDS

END_SECONDS: Final = 5.0
"""So long a rank may take to end."""
_STDERR: Final = 2
Process = subprocess.Popen[bytes]


@contextlib.contextmanager
def helped(place: Place) -> Iterator[Place]:
    """Start the other ranks, unless torchrun did; yield where they meet; end them afterwards.

    Raises RanksError where one ends before it is there.
    """
    if place.port:
        yield place
        return
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(private_folder())
        numbers = range(1, place.size)
        started = [stack.enter_context(_helper(number, folder)) for number in numbers]
        _wait_for(started, folder)
        yield replace(place, folder=folder)


@contextlib.contextmanager
def _helper(number: int, folder: Path) -> Iterator[Process]:
    """Start a rank, with a pipe from us that closes when we end. It prints where we print errors.

    Its session is its own: Ctrl-C at a terminal is for rank 0.
    """
    command = [sys.executable, "-P", "-m", "troth_cli", *sys.argv[1:]]
    variables = {**os.environ, FOLDER: str(folder), OWN_RANK: str(number)}
    with subprocess.Popen(
        command, env=variables, stdin=subprocess.PIPE, stdout=_STDERR, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.stdin is not None:
                process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS)
            process.kill()


def _wait_for(started: Sequence[Process], folder: Path) -> None:
    """Wait until every rank is ready to meet. Raises RanksError."""
    ends = time.monotonic() + START_SECONDS
    missing = {folder / f"{ARRIVED}{number}": one for number, one in enumerate(started, 1)}
    while missing := {path: one for path, one in missing.items() if not path.exists()}:
        ended = [path.name for path, one in missing.items() if one.poll() is not None]
        if ended or time.monotonic() > ends:
            names = ended or [path.name for path in missing]
            raise RanksError(
                f"{len(started)} ranks that start",
                ", ".join(name.replace(ARRIVED, "no rank ") for name in names),
                "Look at the errors above: each rank needs a device and memory of its own.",
            )
        time.sleep(0.1)
