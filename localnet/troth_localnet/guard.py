"""`python -m troth_localnet.guard [--scratch DIR] COMMAND...`: run what must not outlive us.

Owns: ending one foreign program when our stdin ends or we are asked to end, by its own pid.
Never: touches any other process; knows what the program is.

A killed launcher cannot end its validator, and the validator does not watch its stdin; this does.
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

    The scratch folder is removed if it was our stdin that ended: nobody else is left to do it.
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
