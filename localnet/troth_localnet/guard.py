"""`python -m troth_localnet.guard COMMAND...`: run a command that must not outlive us.

Owns: ending one foreign program when our stdin ends or we are asked to end, by its own pid.
Never: touches any other process; knows what the program is.

A killed launcher cannot end its validator, and the validator does not watch its stdin; this does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from types import FrameType
from typing import Final

_STDIN: Final = 0
_TERMINATE_SECONDS: Final = 5.0


def main(command: list[str] | None = None) -> int:
    """Run the command to its end and return its exit code (negative: the signal that ended it)."""
    process = subprocess.Popen(
        sys.argv[1:] if command is None else command, stdin=subprocess.DEVNULL
    )

    def end(_number: int = 0, _frame: FrameType | None = None) -> None:
        process.terminate()
        insist = threading.Timer(_TERMINATE_SECONDS, process.kill)
        insist.daemon = True
        insist.start()

    def watch_stdin() -> None:
        # Not sys.stdin: a thread inside its buffer would break the interpreter's exit.
        while os.read(_STDIN, 4_096):
            pass
        end()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    threading.Thread(target=watch_stdin, daemon=True).start()
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
