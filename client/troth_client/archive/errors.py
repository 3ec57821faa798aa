"""Errors of an archive, as one tree.

    ClientError
    └── ArchiveError
        ├── ArchiveFolderError   the folder cannot be one, or something else lies in it
        ├── ArchiveEntryError    a path inside it is taken by something that is no file
        ├── StoreLedgerError     the ledger in the store is another one than ours
        ├── StoreInUseError      another process writes this store
        ├── FalseSignatureError  nobody has a header with the signature of its maker
        └── NotYetError          an item cannot be asked for, or kept, as things are
            └── TooEarlyError    another item, or an event, must be here first

Owns: the classes. Never: an error of a holder, a disk or a ledger; each has its own tree.
Next: `folder.py`, which raises them.
"""

from troth_client.errors import ClientError


class ArchiveError(ClientError):
    """Base of the errors of `troth_client.archive`."""


class ArchiveFolderError(ArchiveError):
    """The folder cannot be an archive, or holds none."""


class ArchiveEntryError(ArchiveError):
    """A path inside an archive is taken by something that is no file."""


class StoreLedgerError(ArchiveError):
    """The ledger in an object store is another one than ours, so neither may replace the other."""


class StoreInUseError(ArchiveError):
    """Another process has written to the store of this archive."""


class FalseSignatureError(ArchiveError):
    """Nobody has a header with the signature of its maker; `data` is one with another.

    The header has the right hash, so what it says is of use.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(
            "a header with the signature of its maker",
            "a header with a false signature, and no true one",
            "Asking again later.",
        )
        self.data = data


class NotYetError(ArchiveError):
    """An item cannot be asked for, or kept, as things are; `found` says why."""

    def __init__(self, found: str) -> None:
        super().__init__("an item that can be fetched", found, "Trying again later.")


class TooEarlyError(NotYetError):
    """Another item, or an event, must be here first; no member is at fault."""
