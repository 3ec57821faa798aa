"""Errors of local state, as one tree.

    StoreError
    ├── StoreIdentityError   the folder belongs to another network, run, owner or config
    └── StoreConflictError   a submission that would replace a different one of the same round

From `sealed.py`: DamagedFileError (a torn or altered file). From `runtime/files.py`: DiskFullError
(nothing was lost), FolderInUseError (another process holds the folder).

Owns: the classes. Never: an error of a file's bytes. Next: `store.py` and `identity.py` raise them.
"""

from troth_client.errors import ClientError


class StoreError(ClientError):
    """Root of the local-state errors."""


class StoreIdentityError(StoreError):
    """The folder holds the state of another network, run, owner or config."""


class StoreConflictError(StoreError):
    """Another submission of the same round is on disk already; the first one counts."""
