"""Waiting for what other processes do: a poll with an end; nothing else in these tests sleeps."""

import time
from collections.abc import Callable
from typing import Any

ANSWER_SECONDS = 60.0  # for one answer over HTTP; a busy machine exceeds httpx's own 5 s


def wait_for(look: Callable[[], Any], seconds: float = 60.0, why: Callable[[], Any] = str) -> Any:
    """Poll until `look` returns something true, and return it; fail with `why()` at the end."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {why()}"
        time.sleep(0.02)
    return found
