"""The helping ranks that rank 0 starts itself: `troth join --ranks N`.

Owns: their start, the folder in which they meet rank 0, their end.
Never: ends rank 0 when one of them ends, as torchrun does: it computes alone then.
Next: `helping.py`, the process that is started.
"""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from troth_cli.workflows import helping
from troth_cli.workflows.helping import Told
from troth_cli.workflows.join_request import JoinRequest
from troth_cli.workflows.ranks import ARRIVED
from troth_client.train.errors import RanksError
from troth_client.train.place import Place
from troth_client.train.ranks import private_folder
from troth_client.train.team import START_SECONDS

END_SECONDS: Final = 5.0
"""So long a rank may take to end."""
_STDERR: Final = 2
Process = subprocess.Popen[bytes]


@contextlib.contextmanager
def helped(place: Place, request: JoinRequest) -> Iterator[Place]:
    """Start the other ranks, unless torchrun did; yield where they meet; end them afterwards.

    Raises RanksError where one ends before it is there.
    """
    if place.port:
        yield place
        return
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(private_folder())
        told = [Told.of(request, rank, place.size, folder) for rank in range(1, place.size)]
        started = [stack.enter_context(_helper(one)) for one in told]
        _wait_for(started, folder)
        yield replace(place, folder=folder)


@contextlib.contextmanager
def _helper(told: Told) -> Iterator[Process]:
    """Start a rank, with a pipe from us that closes when we end. It prints where we print errors.

    Its session is its own: Ctrl-C at a terminal is for rank 0.
    """
    command = [sys.executable, "-P", "-m", helping.__name__, told.to_text()]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=_STDERR, start_new_session=True
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
