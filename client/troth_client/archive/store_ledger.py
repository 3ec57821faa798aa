"""The ledger of an archive and the one in its store: which of the two goes on.

Owns: their comparison, byte by byte, before either is written. Never:
gives up an entry that a close has proven, in either.
Next: `mirror.py`, which copies ours once it is longer; `troth_coordinator/ledger/file.py`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from troth_client.archive.errors import StoreLedgerError
from troth_client.archive.stored import MOST_LEDGER_BYTES, MOST_LIST_BYTES
from troth_client.transport.remote import RemoteStore
from troth_client.transport.store import Version
from troth_coordinator.ledger.errors import LedgerError
from troth_coordinator.ledger.file import LEDGER_FILE, LedgerFile

BESIDE: Final = ".of-store"
_CHUNK_BYTES: Final = 2**20
_UNTOUCHED: Final = "Name another prefix, or put a ledger of this run there; nothing was changed."
_MERGE: Final = (
    "Find out which one the chain proves: troth ledger verify. Put that one in both places;"
    " nothing was changed."
)


def take_up(ledger: LedgerFile, url: str, lists: Sequence[str] = ()) -> Version | None:
    """Go on with the ledger in a store where it is longer; return which one is there.

    `lists` come from there as well then. Entries that no close has proven give way to others.
    Raises StoreLedgerError for no ledger of this run, and where each has proven entries that the
    other one lacks; HolderError, DiskFullError.
    """
    beside = ledger.path.with_name(ledger.path.name + BESIDE)
    with RemoteStore(url) as store:
        try:
            found = store.download(LEDGER_FILE, beside, MOST_LEDGER_BYTES)
            if found is not None and _num_common(beside, ledger.path) < found.num_bytes:
                _compare(ledger, beside, store, lists)
            return found
        finally:
            beside.unlink(missing_ok=True)


def _compare(ledger: LedgerFile, beside: Path, store: RemoteStore, lists: Sequence[str]) -> None:
    """Take over the copy of the store's ledger, and its lists first, where it goes on from ours.

    It is not the beginning of ours.
    """
    with _folded(beside, ledger, store.name) as theirs:
        if _is_better(theirs, ledger, store.name):
            for name in lists:
                store.download(name, ledger.path.with_name(name), MOST_LIST_BYTES)
            ledger.take_over(theirs)


def _folded(path: Path, ledger: LedgerFile, url: str) -> LedgerFile:
    """Open a copy of the store's ledger, if it is one of the run that folds."""
    try:
        return LedgerFile(path, ledger.head)
    except LedgerError as error:
        expected = f"a ledger of run {ledger.head.run}"
        raise StoreLedgerError(expected, error.found, _UNTOUCHED, url) from error


def _is_better(theirs: LedgerFile, ours: LedgerFile, url: str) -> bool:
    """Tell whether theirs goes on from ours, and not ours from theirs. Raises StoreLedgerError."""
    common = _num_common(theirs.path, ours.path)
    if common == ours.num_bytes:
        return True
    if common >= theirs.proven_bytes:
        return False
    if common >= ours.proven_bytes:
        return True
    raise StoreLedgerError(
        f"the {ours.proven_bytes} proven bytes of {ours.path.name}, or the beginning of them",
        f"{theirs.proven_bytes} proven bytes, other ones from byte {common} on",
        _MERGE,
        url,
    )


def _num_common(*paths: Path) -> int:
    """Return with how many bytes two files begin alike."""
    first, second = paths
    number = 0
    with first.open("rb") as one, second.open("rb") as other:
        while True:
            left, right = one.read(_CHUNK_BYTES), other.read(_CHUNK_BYTES)
            if left != right or not left:
                pairs = enumerate(zip(left, right, strict=False))
                ended = min(len(left), len(right))
                return number + next((at for at, (a, b) in pairs if a != b), ended)
            number += len(left)
