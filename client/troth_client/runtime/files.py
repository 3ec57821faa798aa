"""Files that are either whole or absent: atomic writes, durable renames, private files, locks.

Owns: temporary file, its mode, fsync, rename, bytes at an offset, the error for a full disk, and
reading a file that may be anything. A file's mark tells whether it is still the same.
Never: knows what is in a file. Two processes never write one folder: `FolderLock` sees to it.
Next: `storage/store.py` (state of a participant) and `data/prepare.py` build on it.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

from troth_client.errors import ClientError

TEMPORARY_SUFFIX = ".tmp"
SECRET_MODE = 0o600
"""Others may neither read nor change the file."""
OPEN_MODE = 0o666
"""The user's umask takes rights away from this mode."""
PRIVATE_FOLDER_MODE = 0o700
FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of a disk, a quota or a file-size limit that leave no room."""

Chunk = bytes | bytearray | memoryview


class Closable(ABC):
    """An object that is closed at the end of its `with` block, however the block ends."""

    @abstractmethod
    def close(self) -> None:
        """Give up what is held; harmless when repeated."""

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()


class DiskFullError(ClientError):
    """There was no room for a file; what was there before is untouched."""


class FolderInUseError(ClientError):
    """Another process holds the folder."""


def atomic_write(
    path: Path, chunks: Iterable[Chunk], durable: bool = True, *, is_secret: bool = False
) -> None:
    """Replace `path` by the chunks, laid end to end: readers see the old file or the new one.

    `durable` also flushes file and folder to the disk, so that the file outlives a power cut; a
    killed process loses nothing either way. Nobody else can read a secret file, not even while it
    is written. Raises DiskFullError, with the old file in place.
    """
    with atomic_stream(path, durable, is_secret=is_secret) as stream:
        for chunk in chunks:
            stream.write(chunk)


@contextlib.contextmanager
def atomic_stream(
    path: Path, durable: bool = True, *, is_secret: bool = False
) -> Iterator[IO[bytes]]:
    """Open a temporary neighbour of `path` for writing; on a clean exit it becomes `path`.

    On any error the temporary file is removed and `path` stays as it was. Raises DiskFullError.
    """
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    mode = SECRET_MODE if is_secret else OPEN_MODE
    try:
        with explain_full_disk(path), _new_file(temporary, mode) as stream:
            yield stream
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        flush(path.parent)


def _new_file(path: Path, mode: int) -> IO[bytes]:
    """Open a new file of this mode; one that a killed process left may have another mode."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    return os.fdopen(handle, "wb")


def make_private(folder: Path) -> None:
    """Make a folder that nobody else can enter; one of ours that others could enter is closed.

    A folder that was there and belongs to somebody else stays as it is.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(PRIVATE_FOLDER_MODE)
    except FileExistsError:
        with contextlib.suppress(PermissionError):
            folder.chmod(PRIVATE_FOLDER_MODE)


def existing_part(path: Path) -> Path:
    """Return a path, or the nearest folder above it that is there."""
    return next((one for one in (path, *path.parents) if one.exists()), path)


def write_at(handle: int, data: Chunk, offset: int) -> None:
    """Write all the bytes: where a disk fills up, the system may take only some of them."""
    view = memoryview(data)
    while view:
        written = os.pwrite(handle, view, offset)
        view, offset = view[written:], offset + written


class Mark(NamedTuple):
    """Identity, size and times of a file, which the file system gives without reading it."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> Self:
        """Return the mark in what the system says of a file."""
        times = (found.st_mtime_ns, found.st_ctime_ns)
        return cls(found.st_dev, found.st_ino, found.st_size, *times)


def read_whole(path: Path, most_bytes: int) -> bytes:
    """Return a file of at most so many bytes; a user may have linked it.

    It never waits for a FIFO or a device. Raises OSError, and ValueError for a longer file.
    """
    data = _read(path, most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"more than {most_bytes} bytes")
    return data


def read_file(path: Path, most_bytes: int) -> bytes | None:
    """Return a file as `read_whole` does; None where there is none that can be read whole."""
    try:
        return read_whole(path, most_bytes)
    except (OSError, ValueError):
        return None


def flush(path: Path) -> None:
    """Make the bytes of a file durable, or the renames and removals inside a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def explain_full_disk(path: Path) -> Iterator[None]:
    """Turn 'no space left', 'quota exceeded' and 'file too large' into one clear error."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        found, way_out = os.strerror(error.errno or 0).lower(), "free some space"
        if error.errno == errno.EFBIG:  # there may be any space
            way_out = "lift the limit on the size of files (ulimit -f)"
        else:
            found += f" ({shutil.disk_usage(path.parent).free} bytes free)"
        raise DiskFullError(
            f"room to write {path}",
            found,
            f"Nothing that was stored is lost: {way_out}, then start again what has ended.",
        ) from error


class FolderLock(Closable):
    """Exclusive use of a folder by one process, until `close` or the end of the process.

    The operating system drops the lock when its holder dies. So a stale lock file means nothing.
    Take the lock after a fork: a child inherits the lock of its parent.
    """

    def __init__(self, folder: Path, name: str = "lock") -> None:
        """Lock the folder, making it when missing. Raises FolderInUseError, naming the holder."""
        folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC  # a link may lead anywhere
        handle = os.open(folder / name, flags, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 64).decode("ascii", "replace").strip() or "unknown"
            os.close(handle)
            raise FolderInUseError(
                f"{folder} to be free",
                f"process {holder} at work in it",
                "Stop that process, or give this one a folder of its own.",
            ) from None
        # Only a courtesy to the next reader: a full disk must not keep us from our own folder.
        with contextlib.suppress(OSError):
            os.truncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode("ascii"), 0)
        self._handle: int | None = handle

    def close(self) -> None:
        """Give the folder up; harmless when repeated."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def remove_temporaries(folder: Path, names: re.Pattern[str]) -> None:
    """Remove the half-written files that a killed process left; call it under the folder's lock.

    `names` are those of the whole files: a user may have named a folder with files of other names.
    """
    for path in folder.glob("*" + TEMPORARY_SUFFIX):
        if not names.fullmatch(path.name.removesuffix(TEMPORARY_SUFFIX)):
            continue
        with contextlib.suppress(FileNotFoundError, IsADirectoryError, PermissionError):
            path.unlink()  # a folder of that name is none of ours


def read_regular(path: Path, most_bytes: int) -> bytes | None:
    """Return a file, at most one byte more than asked for; None where nothing is.

    It never waits: of a FIFO, a device, a folder or a link, and of what may not be read, there are
    no bytes.
    """
    try:
        return _read(path, most_bytes + 1, os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:  # also a damaged disk
        return b""


def _read(path: Path, num_bytes: int, flags: int = 0) -> bytes:
    """Return the first bytes of a file. Raises OSError, also for what is none; never waits."""
    handle = os.open(path, flags | os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        with open(handle, "rb", closefd=False) as stream:
            return stream.read(num_bytes)
    finally:
        os.close(handle)
