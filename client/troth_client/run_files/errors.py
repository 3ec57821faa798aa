"""Errors of the files of a run, as one tree.

    ClientError
    └── RunFilesError
        ├── RunFileError       bytes with the right hash that this software cannot use
        ├── OtherFilesError    a folder holds another data set
        └── RunFilesGoneError  nobody serves the files

Owns: the classes. Never: an error of a holder; see `transport/errors.py`.
Next: `folder.py` and `fetch.py`, which raise them.
"""

from troth_client.errors import ClientError


class RunFilesError(ClientError):
    """Base of the errors of a run's files."""


class RunFileError(RunFilesError):
    """The bytes have the hash that the chain names, and still are no file of this version."""


class OtherFilesError(RunFilesError):
    """The folder holds a data set of another run."""


class RunFilesGoneError(RunFilesError):
    """Nobody serves a file of the run."""
