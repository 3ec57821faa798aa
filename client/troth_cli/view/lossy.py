"""A stream for lines that are no result: one that cannot be written is lost, and ends nothing.

Owns: that, for a full disk, a terminal that hung up and a reader that has gone.
Never: stands for stdout; a result that nobody gets is a failure. Next: `output.py`, which uses it.
"""

import contextlib
from typing import TextIO, cast


class LossyStream:
    """A text stream without its errors, as far as notes and displays need one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @classmethod
    def of(cls, stream: TextIO) -> TextIO:
        """Return the stream without its errors."""
        return cast(TextIO, cls(stream))

    def write(self, text: str) -> int:
        """Write the text where that is possible."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream where that is possible."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        """Tell whether the stream is a terminal that is still there."""
        return self._stream.isatty()

    @property
    def encoding(self) -> str:
        """The encoding of the stream: a display draws with its characters."""
        return self._stream.encoding
