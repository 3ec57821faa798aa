"""One child process that runs a chain: its output, its end, never anybody else's process.

Owns: starting with an output file, reporting the reason of its death, ending it by its own pid.
Never: knows which program the child runs.
Next: `embedded.py` and `validator.py`, which choose the program and wait until it is ready.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from troth_localnet.errors import StartFailedError

_TERMINATE_SECONDS: Final = 10.0
_TAIL_BYTES: Final = 4_000


class Child:
    """A running process; its stderr goes to `log`, its stdin ends when we do."""

    def __init__(self, command: Sequence[str], log: Path, *, pipe_stdout: bool) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if pipe_stdout else output,
                stderr=output,
                # Ctrl-C in the terminal is for us; we end the child in our own time.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def stdout(self) -> IO[bytes] | None:
        """The child's stdout, if it was asked for."""
        return self._process.stdout

    def exit_code(self) -> int | None:
        """Return the exit code of the process, None while it runs."""
        return self._process.poll()

    def wait(self) -> int:
        """Wait until it has ended, however long; return its exit code."""
        return self._process.wait()

    def log_tail(self) -> str:
        """Return the end of its stderr."""
        return self._log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").strip()

    def failure(self, expected: str) -> StartFailedError:
        """Make the error for a child that failed."""
        code = self.exit_code()
        state = "it still runs" if code is None else f"it ended with code {code}"
        tail = self.log_tail()
        return StartFailedError(
            expected, f"{state}; its last words: {tail[-1_000:] or 'none'}", "See the words above"
        )

    def end(self) -> None:
        """Ask it to end, kill it after a while, and collect it; may be called twice."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_TERMINATE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()
