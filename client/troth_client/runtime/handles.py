"""How many files and connections this process may have open at a time.

Owns: the limit of the system, and the part of it for connections of others. Never: opens anything.
Next: `transport/server.py`, which bounds connections by it.

macOS lets a process open 256 by default. Strangers' connections must not take the last handle: a
participant that cannot write its files ends.
"""

import resource
from typing import Final

MOST_HANDLES: Final = 4096
"""Nobody needs more; macOS refuses more than 10,240, whatever it calls unlimited."""


def raise_limit() -> int:
    """Raise the limit of this process as far as the system allows; return what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_HANDLES if hard == resource.RLIM_INFINITY else min(MOST_HANDLES, hard)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return MOST_HANDLES if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most


def most_connections(wanted: int) -> int:
    """Return how many connections of others may be open: no more than half of all handles."""
    return min(wanted, raise_limit() // 2)
