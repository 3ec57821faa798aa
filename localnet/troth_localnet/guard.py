"""`python -m troth_localnet.guard [--scratch DIR] COMMAND...`: end a program with its launcher.

Owns: ending one foreign program, by its own pid, when our stdin ends or a signal asks us to end.
Never: touches any other process, or knows the program. Next: `validator.py`.

A killed launcher cannot end its validator, and a validator does not watch its stdin. The guard
watches its own stdin and ends the validator.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import threading
from types import FrameType
from typing import Final

_STDIN: Final = 0
_TERMINATE_SECONDS: Final = 5.0


def main(arguments: list[str] | None = None) -> int:
    """Run the command to its end and return its exit code (negative: the signal that ended it).

    Removes the scratch folder if our stdin ended: the launcher is gone and cannot do it.
    """
    parser = argparse.ArgumentParser(prog="python -m troth_localnet.guard")
    parser.add_argument("--scratch", help="a folder of the command's own")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    process = subprocess.Popen(options.command, stdin=subprocess.DEVNULL)
    is_alone = threading.Event()

    def end(_number: int = 0, _frame: FrameType | None = None) -> None:
        process.terminate()
        insist = threading.Timer(_TERMINATE_SECONDS, process.kill)
        insist.daemon = True
        insist.start()

    def watch_stdin() -> None:
        # Not sys.stdin: a thread inside its buffer would break the interpreter's exit.
        while os.read(_STDIN, 4_096):
            pass
        is_alone.set()
        end()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    threading.Thread(target=watch_stdin, daemon=True).start()
    code = process.wait()
    if is_alone.is_set() and options.scratch is not None:
        shutil.rmtree(options.scratch, ignore_errors=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
