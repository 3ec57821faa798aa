"""Signals that ask a process to stop, SIGINT and SIGTERM, inside an event loop.

Owns: taking them and giving them back. Never: stops anything; the caller says what follows.
Next: `participant/process.py`; `troth data serve`.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def at_stop_signals(act: Callable[[], None]) -> Iterator[None]:
    """Call `act` at each of these signals inside the block, in the loop's thread."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, act)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
