"""Ctrl-C before and after the work of a command: one line and exit code 130, never a traceback.

Owns: the handler of SIGINT while modules are imported. No work is under way then, and Python may
lose an exception that is raised inside an import.
Never: a command at work; there Ctrl-C raises KeyboardInterrupt, so that the command can clean up.
Next: `main.py`, which begins with it; `view/output.py`, whose `loading` uses it.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

EXIT_CODE: Final = 130
LINE: Final = "interrupted\n"
_STDERR: Final = 2
_Handler = Callable[[int, FrameType | None], object] | signal.Handlers


def end_at_once() -> None:
    """Let Ctrl-C end this process at once, unless its parent had Ctrl-C ignored."""
    _exchange(signal.default_int_handler, _end)


def raise_again() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, as Python does without us."""
    _exchange(_end, signal.default_int_handler)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Let Ctrl-C end this process at once inside the block."""
    end_at_once()
    try:
        yield
    finally:
        raise_again()


def ignore() -> None:
    """Ignore Ctrl-C from now on: the exit code is known, and only Python's own end is left."""
    _exchange(signal.default_int_handler, signal.SIG_IGN)
    _exchange(_end, signal.SIG_IGN)


def _exchange(old: _Handler, new: _Handler) -> None:
    # Only the main thread may set handlers, and a handler of somebody else stays.
    is_ours = threading.current_thread() is threading.main_thread()
    if is_ours and signal.getsignal(signal.SIGINT) is old:
        signal.signal(signal.SIGINT, new)


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    os.write(_STDERR, LINE.encode())
    os._exit(EXIT_CODE)
