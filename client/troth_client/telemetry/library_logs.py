"""Warnings of libraries as events: no traceback of theirs ever reaches the terminal.

Owns: the two handlers of Python's log. asyncio reports errors that nobody awaited there, aiohttp
those of callers who hang up. Never: changes what a library logs, or hides an error of our own.
Next: `participant/process.py`, which wraps a participant; `troth_cli/main.py` for the commands.
"""

import contextlib
import logging
import sys
from collections.abc import Iterator
from typing import TextIO

from troth_client.telemetry.events import EventSink
from troth_client.telemetry.printable import one_line

DISCONNECTS = (ConnectionError, EOFError, TimeoutError)
"""Errors of the other end: it hung up, or fell silent."""


class _AsEvents(logging.Handler):
    def __init__(self, events: EventSink) -> None:
        super().__init__(logging.WARNING)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        name = "disconnected" if is_disconnect(record) else "library_warned"
        self._events.emit(name, source=record.name, reason=summary(record))


class LineHandler(logging.Handler):
    """Writes a warning of a library as one line; of a caller that hung up it writes none."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(logging.WARNING)
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line; nobody is there to be told that it cannot be written."""
        if not is_disconnect(record):
            with contextlib.suppress(OSError, ValueError):
                self._stream.write(f"warning: {record.name}: {summary(record)}\n")
                self._stream.flush()


def keep_libraries_quiet(stream: TextIO) -> None:
    """Let libraries warn on the stream in one line each, from now on.

    Errors of destructors come through it, too. Python prints those with a traceback, and Ctrl-C in
    the middle of a constructor leaves a half-made object behind.
    """
    logging.getLogger().addHandler(LineHandler(stream))
    sys.unraisablehook = _log_unraisable


def _log_unraisable(found: "sys.UnraisableHookArgs") -> None:
    where = getattr(found.object, "__qualname__", type(found.object).__qualname__)
    error = found.exc_value
    about = None if error is None else (type(error), error, error.__traceback__)
    logging.getLogger("python").warning("ignored in %s", where, exc_info=about)


@contextlib.contextmanager
def as_events(events: EventSink) -> Iterator[None]:
    """Report warnings of libraries as events inside the block, and nowhere else."""
    root, handler = logging.getLogger(), _AsEvents(events)
    before = root.handlers[:]
    root.handlers[:] = [handler]
    try:
        yield
    finally:
        root.handlers[:] = before


def is_disconnect(record: logging.LogRecord) -> bool:
    """Tell whether a record is about an error of the other end."""
    error = record.exc_info[1] if record.exc_info else None
    return isinstance(error, DISCONNECTS)


def summary(record: logging.LogRecord) -> str:
    """Return a record as one line: the first line of its message, and its error."""
    text = (record.getMessage().splitlines() or [""])[0]
    error = record.exc_info[1] if record.exc_info else None
    return one_line(text if error is None else f"{text} ({type(error).__name__}: {error})")
