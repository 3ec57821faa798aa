"""The helping ranks that rank 0 starts itself: `troth join --ranks N`.

Owns: their start, the folder in which they meet rank 0, their end.
Never: ends rank 0 when one of them ends, as torchrun does: it computes alone then.
Next: `helping.py`, the process that is started.
"""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from troth_cli.view.output import Output
from troth_cli.workflows import helping
from troth_cli.workflows.helping import Told
from troth_cli.workflows.join_request import JoinRequest
from troth_cli.workflows.ranks import ARRIVED
from troth_client.train.errors import RanksError
from troth_client.train.place import Place
from troth_client.train.ranks import private_folder

END_SECONDS: Final = 5.0
"""So long the ranks may take to end."""
_STDERR: Final = 2
_LOOK_SECONDS: Final = 0.1
Process = subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class Helpers:
    """The ranks that rank 0 started, none under torchrun; `place` is where it meets them.

    Where the system could not start them, `failure` says why.
    """

    place: Place
    started: Sequence[Process] = ()
    ends_waiting: float = 0.0
    failure: RanksError | None = None

    def arrived(self) -> Place:
        """Return the place once every rank is ready to meet.

        Raises RanksError where one could not be started, ends before, or is not there in time.
        """
        if self.failure is not None:
            raise self.failure
        folder = self.place.folder
        missing = {f"{ARRIVED}{number}": one for number, one in enumerate(self.started, 1)}
        while folder and (missing := _absent(missing, folder)):
            ended = [name for name, one in missing.items() if one.poll() is not None]
            if ended or time.monotonic() > self.ends_waiting:
                raise RanksError(
                    f"{len(self.started)} ranks that start",
                    ", ".join(name.replace(ARRIVED, "no rank ") for name in ended or missing),
                    "Look at the errors above: each rank needs a device and memory of its own.",
                )
            time.sleep(_LOOK_SECONDS)
        return self.place

    def end(self) -> None:
        """End the ranks; any thread may call it.

        A wait for their arrival or in an exchange fails at once, a meeting when its time is up.
        """
        for process in self.started:
            if process.stdin is not None:
                process.stdin.close()
        ends = time.monotonic() + END_SECONDS
        for process in self.started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, ends - time.monotonic()))
            process.kill()


@contextlib.contextmanager
def helped(
    place: Place, request: JoinRequest, output: Output, start_seconds: float
) -> Iterator[Helpers]:
    """Start the other ranks, unless torchrun did, and wait for none; end them afterwards.

    They have `start_seconds` to arrive.
    """
    if place.port:
        yield Helpers(place)
        return
    with contextlib.ExitStack() as stack:
        try:
            helpers = _start(stack, place, request, output, start_seconds)
        except OSError as error:
            stack.close()  # ends those that did start
            helpers = Helpers(place, failure=_not_started(place, error))
        yield helpers


def _start(
    stack: contextlib.ExitStack,
    place: Place,
    request: JoinRequest,
    output: Output,
    start_seconds: float,
) -> Helpers:
    folder = stack.enter_context(private_folder())
    others = [replace(place, rank=one, local=one, folder=folder) for one in range(1, place.size)]
    told = [Told.of(request, other, output) for other in others]
    started = [stack.enter_context(_helper(one)) for one in told]
    helpers = Helpers(replace(place, folder=folder), started, time.monotonic() + start_seconds)
    stack.callback(helpers.end)
    return helpers


def _not_started(place: Place, error: OSError) -> RanksError:
    return RanksError(
        f"{place.size - 1} ranks that start",
        str(error),
        "Make room for processes and for a temporary folder, or take fewer ranks.",
    )


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
            process.kill()  # Popen waits for its end


def _absent(ranks: Mapping[str, Process], folder: Path) -> dict[str, Process]:
    return {name: one for name, one in ranks.items() if not (folder / name).exists()}
