"""Many processes of one kind, forked from a server that has imported the heavy modules once.

Owns: starting, watching, killing and stopping them; collecting every one, so no zombies.
Never: knows what they do; the target and its configs are the caller's.
Next: `guard.py`; the demo runs its participants with a fleet.

Linux and macOS: the fork server is forked before any thread or accelerator exists in it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import wait as wait_any
from multiprocessing.context import ForkServerContext, ForkServerProcess
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

from troth_localnet.errors import FleetError

ConfigT = TypeVar("ConfigT")

STOP_SECONDS: Final = 10.0
_FIRST_IMPORT: Final = "troth_localnet.quiet_imports"


def preload(modules: Sequence[str]) -> None:
    """Start the fork server of this program, unless it runs; it imports `modules` meanwhile.

    All fleets of a program share one fork server, so the first call, or the first start of a fleet,
    decides what their processes need not import. A module that is not there is left to the targets.
    """
    multiprocessing.get_context("forkserver").set_forkserver_preload([_FIRST_IMPORT, *modules])
    # Ctrl-C reaches the server too, which would show a traceback from the middle of its imports.
    # The start of the resource tracker would lift the block, so that one comes first.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Fleet(Generic[ConfigT]):
    """`target(config)` once per config, each in a process of its own.

    target and configs must be picklable; target is found by its module and name. A process ends
    with code 0 when target returns, 1 when it raises, -n when signal n ended it.
    """

    def __init__(self, target: Callable[[ConfigT], None], configs: Sequence[ConfigT]) -> None:
        self._target = target
        self._configs = list(configs)
        self._context: ForkServerContext = multiprocessing.get_context("forkserver")
        self._processes: list[ForkServerProcess] = []

    def __len__(self) -> int:
        """Return the number of processes."""
        return len(self._configs)

    @property
    def pids(self) -> list[int]:
        """The process ids, by index."""
        return [process.pid or 0 for process in self._started()]

    def start(self) -> None:
        """Start all; FleetError if they were started before."""
        if self._processes:
            raise FleetError("a fleet not started yet", "a started one", "Use start_again(index)")
        try:
            for index in range(len(self._configs)):
                self._processes.append(self._launch(index))
        except BaseException:
            self.stop()
            raise

    def start_again(self, index: int) -> None:
        """Start an ended process again, with its config; FleetError while it runs."""
        if self._process(index).is_alive():
            raise FleetError(f"process {index} to have ended", "it runs", "Kill or stop it first")
        self._process(index).join()
        self._processes[index] = self._launch(index)

    def exit_codes(self) -> list[int | None]:
        """Return the exit code of each, None for those that run."""
        return [process.exitcode for process in self._started()]

    def kill(self, index: int) -> None:
        """End one at once, as a power cut would (SIGKILL), and collect it."""
        self.signal(index, signal.SIGKILL)
        self._process(index).join()

    def signal(self, index: int, number: signal.Signals) -> None:
        """Send a signal to one; nothing happens if it has ended."""
        process = self._process(index)
        if process.is_alive() and process.pid is not None:
            os.kill(process.pid, number)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until all have ended; False after a timeout."""
        deadline = None if seconds is None else time.monotonic() + seconds
        for process in self._started():
            process.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        return all(process.exitcode is not None for process in self._processes)

    def wait_any(self, seconds: float | None = None) -> list[int]:
        """Wait until one more has ended; return the indexes of all that have."""
        running = [process.sentinel for process in self._started() if process.exitcode is None]
        if running:
            wait_any(running, seconds)
        return [index for index, code in enumerate(self.exit_codes()) if code is not None]

    def stop(self, seconds: float = STOP_SECONDS) -> list[int | None]:
        """Ask all to end (SIGTERM), kill after a while (SIGKILL), collect; return exit codes."""
        for process in self._processes:
            if process.is_alive():
                process.terminate()
        deadline = time.monotonic() + seconds
        for process in self._processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.exitcode is None:
                process.kill()
            process.join()
        return [process.exitcode for process in self._processes]

    def __enter__(self) -> Self:
        """Start all."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop all."""
        self.stop()

    def _launch(self, index: int) -> ForkServerProcess:
        process = self._context.Process(
            target=_run,
            args=(self._target, self._configs[index]),
            name=f"{self._target.__name__}-{index}",
            daemon=True,  # ended at our exit even if nobody called stop
        )
        process.start()
        return process

    def _started(self) -> list[ForkServerProcess]:
        if not self._processes and self._configs:
            raise FleetError("a started fleet", "one not started", "Call start() first")
        return self._processes

    def _process(self, index: int) -> ForkServerProcess:
        processes = self._started()
        if not 0 <= index < len(processes):
            raise FleetError(f"an index from 0 to {len(processes) - 1}", f"{index}", "Check it")
        return processes[index]


def _run(target: Callable[[ConfigT], None], config: ConfigT) -> None:
    """Run the target in the child; end it, as `stop` would, when the parent is gone."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    target(config)


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_any([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
        # No parent is left to kill us, and an orderly end may wait for processes that are gone.
        time.sleep(STOP_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)
