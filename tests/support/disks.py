"""Disks without room, for tests of what happens then.

Owns: the limit. Never: fills a real disk. Next: `runtime/files.py` for the error that users see.
"""

import contextlib
import resource
from collections.abc import Iterator


@contextlib.contextmanager
def no_file_beyond(num_bytes: int) -> Iterator[None]:
    """Refuse to let any file of this process grow beyond a size, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
