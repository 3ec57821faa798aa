"""Errors that end a demo early, as one tree.

    DemoError
    ├── DemoOptionError       options that contradict each other
    ├── FolderUsedError       the folder holds something already
    ├── TrainerFailedError    a trainer ended before the run did
    └── NoProgressError       no round and no audit went on for far longer than either can take

Owns: the classes. Never: a demo that ran to its end and proved nothing; its summary shows that.
Next: `progress.py` raises the last two.
"""

from troth_client.errors import ClientError


class DemoError(ClientError):
    """The demo could not be carried through."""


class DemoOptionError(DemoError, ValueError):
    """Options that contradict each other."""


class FolderUsedError(DemoError):
    """A demo writes into a new or empty folder only: it never mixes two runs."""


class TrainerFailedError(DemoError):
    """A trainer ended before the run did."""


class NoProgressError(DemoError):
    """No round and no audit went on for far longer than either can take."""
