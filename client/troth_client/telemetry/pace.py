"""Pace: when to report progress again, and how long the rest takes at the speed so far.

Owns: the interval and the estimate. Never: emits; the caller knows what it counts.
Next: `transport/parallel.py` and `steps/replay.py`, which report by it.
"""

from collections.abc import Callable

REPORT_SECONDS = 2.0


class Pace:
    """The speed of one long piece of work. `clock` returns seconds, None where time stands."""

    def __init__(self, clock: Callable[[], float | None]) -> None:
        self._clock = clock
        self._began = self._reported = clock()

    def is_due(self) -> bool:
        """Tell, at most every two seconds, that it is time for a report."""
        now = self._clock()
        if now is None or self._reported is None or now - self._reported < REPORT_SECONDS:
            return False
        self._reported = now
        return True

    def seconds_left(self, done: int, remaining: int) -> int | None:
        """Return the seconds for the rest, after so much was done; None if nobody can tell."""
        now = self._clock()
        if now is None or self._began is None or done <= 0:
            return None
        return round((now - self._began) * remaining / done)
