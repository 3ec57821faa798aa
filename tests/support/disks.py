"""Disks without room, for tests of what happens then.

Owns: the limit. Never: fills a real disk. Next: `runtime/files.py` for the error that users see.
"""

import contextlib
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TextIO

import pytest

from support.cli import process


@contextlib.contextmanager
def no_file_beyond(num_bytes: int) -> Iterator[None]:
    """Refuse to let any file of this process grow beyond a size, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def process_beyond_room(num_bytes: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command line as a child; no file of it, or of its children, grows beyond a size.

    They keep no compiled source: a cut one would stay there, and no later process could import it.
    """

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, num_bytes))

    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return process(*arguments, env=environment, preexec_fn=limit)


@contextlib.contextmanager
def ending_unwritten(stream: TextIO) -> Iterator[TextIO]:
    """Close a stream at the end; what it still holds then may be lost."""
    try:
        yield stream
    finally:
        with contextlib.suppress(OSError):
            stream.close()


def full_log() -> AbstractContextManager[TextIO]:
    """Open a log for printed lines on a disk without room."""
    return ending_unwritten(Path("/dev/full").open("w"))


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Make the folder a disk of its own, like `16m`; skip the test where we may not mount one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
