"""The folder of an archive: where each byte lies, and how it is read without trusting a name.

Owns: the layout, bounded reads of regular files, atomic writes, the two lists beside the ledger.
Never: returns bytes that do not have their address, follows a link, or leaves the folder.
Next: `keeper.py`, which fills it; `check.py`, which reads all of it.

    <folder>/ledger.jsonl     the ledger of the run
    <folder>/chain.json       the newest Run account as the archive saw it: a hint, no proof
    <folder>/missing.json     what is not here, and why
    <folder>/<kind>/<hex>     bytes under their address
"""

import base64
import contextlib
import json
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field
from solders.pubkey import Pubkey

from troth_client.archive.errors import ArchiveEntryError, ArchiveFolderError
from troth_client.archive.items import Item
from troth_client.network.expecting import SIGNED_HEADER_BYTES
from troth_client.runtime.files import atomic_write, read_regular, remove_temporaries
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.sources import FolderSource
from troth_coordinator.chain.rpc import Account
from troth_coordinator.ledger.file import LEDGER_FILE

CHAIN_FILE: Final = "chain.json"
MISSING_FILE: Final = "missing.json"
FORGOTTEN: Final = "forgotten_before_round"
_LISTS: Final = (LEDGER_FILE, CHAIN_FILE, MISSING_FILE)
_LIST_NAME: Final = re.compile("|".join(map(re.escape, _LISTS)))
MOST_CHAIN_BYTES: Final = 64 * 2**10
_MOST_LIST_BYTES: Final = 256 * 2**20
_FIRST_BYTES: Final = 64
_FORGOTTEN_FIRST: Final = re.compile(rb'\{"%b":(\d{1,18}),' % FORGOTTEN.encode())
_NAME: Final = re.compile(r"[0-9a-f]{64}")


class SeenAccount(BaseModel):
    """The Run account as an archive read it last, as `chain.json` has it: base58 and base64."""

    model_config = ConfigDict(extra="forbid", strict=True)

    slot: Annotated[int, Field(ge=0, lt=2**64)]
    owner: str
    lamports: Annotated[int, Field(ge=0, lt=2**64)]
    data: str

    @classmethod
    def of(cls, slot: int, account: Account) -> Self:
        """Return an account that was read at a slot."""
        data = base64.b64encode(account.data).decode()
        return cls(slot=slot, owner=str(account.owner), lamports=account.lamports, data=data)

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Return that of the archive in a folder; None without one. Raises ValueError."""
        found = read_regular(folder / CHAIN_FILE, MOST_CHAIN_BYTES)
        try:
            return None if found is None else cls.model_validate_json(found)
        except RecursionError as error:
            raise ValueError("it is nested too deep") from error

    def account(self) -> Account:
        """Return the account. Raises ValueError."""
        data = base64.b64decode(self.data, validate=True)
        return Account(self.lamports, Pubkey.from_string(self.owner), data)


class ByteStore(Protocol):
    """Where the bytes of an archive lie: a folder or an object store."""

    def size(self, kind: str, key: bytes) -> int | None:
        """Return how long the bytes at this address are; None if none are there."""

    def get(self, kind: str, key: bytes, most_bytes: int) -> bytes | None:
        """Return bytes that have this address; None if they are missing, damaged or longer."""

    def put(self, item: Item, data: bytes) -> None:
        """Keep bytes that have this address. Raises DiskFullError, ArchiveEntryError."""

    def forget(self, kind: str, key: bytes) -> None:
        """Remove bytes; harmless when repeated."""


class ArchiveFolder:
    """An archive on disk. One process writes it, under a `FolderLock`; any may read it."""

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        """Take a folder, new or old; nothing is made yet.

        Raises ArchiveFolderError if the path, or a name of the layout inside, is something else.
        """
        self.path = path
        self._source = FolderSource(path)
        self._durable = durable
        if path.exists() and not path.is_dir():
            step = "Name another folder; nothing was changed."
            raise ArchiveFolderError("a folder, or nothing yet", "something else", step, str(path))
        for kind in BlobKind:
            _check_kind(path / kind, stat.S_ISDIR, "a folder of the archive, or nothing yet")
        for name in _LISTS:
            _check_kind(path / name, stat.S_ISREG, "a file of the archive, or nothing yet")

    @property
    def ledger(self) -> Path:
        """Where its ledger lies."""
        return self.path / LEDGER_FILE

    def tidy(self) -> None:
        """Remove half-written files that a killed process left; call it under the lock."""
        remove_temporaries(self.path, _LIST_NAME)
        for kind in BlobKind:
            remove_temporaries(self.path / kind, _NAME)

    def size(self, kind: str, key: bytes) -> int | None:
        """See ByteStore.size."""
        with contextlib.suppress(OSError):
            found = self._path(kind, key).lstat()
            if stat.S_ISREG(found.st_mode) and found.st_size:
                return found.st_size
        return None

    def get(self, kind: str, key: bytes, most_bytes: int) -> bytes | None:
        """See ByteStore.get."""
        name = BlobId(0, BlobKind(kind), key)
        data = self._source.read(name, most_bytes) or b""
        if name.kind is BlobKind.HEADER and len(data) != SIGNED_HEADER_BYTES:
            return None  # the address does not cover the signature
        return data if 0 < len(data) <= most_bytes and name.matches(data) else None

    def put(self, item: Item, data: bytes) -> None:
        """See ByteStore.put."""
        path = self._path(item.kind, item.key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(path, [data], self._durable)
        except (IsADirectoryError, NotADirectoryError, FileExistsError) as error:
            raise ArchiveEntryError(
                f"room for a file at {path}",
                "something else in its place",
                "Remove it; the archive goes on with the rest.",
            ) from error

    def forget(self, kind: str, key: bytes) -> None:
        """See ByteStore.forget."""
        with contextlib.suppress(FileNotFoundError, IsADirectoryError, PermissionError):
            self._path(kind, key).unlink()

    def write_chain(self, slot: int, account: Account) -> None:
        """Keep the Run account as it was read. Raises DiskFullError."""
        text = SeenAccount.of(slot, account).model_dump_json().encode()
        atomic_write(self.path / CHAIN_FILE, [text], self._durable)

    def write_missing(self, forgotten_before: int, missing: Iterable[object]) -> None:
        """Replace the list of what is not here. Raises DiskFullError."""
        shown = {FORGOTTEN: forgotten_before, "missing": list(missing)}
        text = json.dumps(shown, separators=(",", ":")).encode()
        atomic_write(self.path / MISSING_FILE, [text], self._durable)

    def missing(self) -> list[dict[str, Any]]:
        """Return the lines of that list."""
        data = read_regular(self.path / MISSING_FILE, _MOST_LIST_BYTES)
        found: list[dict[str, Any]] = json.loads(data)["missing"] if data else []
        return found

    @property
    def forgotten_before(self) -> int:
        """The first round that was never forgotten, as the list of what is missing says."""
        data = read_regular(self.path / MISSING_FILE, _FIRST_BYTES)  # the rest may be long
        found = _FORGOTTEN_FIRST.match(data or b"")
        return 0 if found is None else int(found[1])

    def strangers(self) -> Iterator[Path]:
        """Yield paths in the folders of bytes that are no file of an archive."""
        for kind in BlobKind:
            folder = self.path / kind
            for path in sorted(folder.iterdir()) if folder.is_dir() else ():
                is_file = stat.S_ISREG(path.lstat().st_mode)
                if not is_file or not is_name(path.name):
                    yield path

    def _path(self, kind: str, key: bytes) -> Path:
        return self.path / kind / key.hex()


def is_name(name: str) -> bool:
    """Tell whether bytes of an archive may have this name in their folder."""
    return _NAME.fullmatch(name) is not None


def _check_kind(path: Path, is_right: Callable[[int], bool], expected: str) -> None:
    """Raise ArchiveFolderError if something else than expected lies at a path; links included."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except NotADirectoryError:
        step = "Name another folder; nothing was changed."
        raise ArchiveFolderError("a folder above it", "a file", step, str(path)) from None
    if not is_right(mode):
        found = "a link" if stat.S_ISLNK(mode) else "something else"
        step = "Name another folder; nothing was changed."
        raise ArchiveFolderError(expected, found, step, str(path))
