"""Errors of checkpoints, as one tree.

    ClientError
    └── CheckpointError
        ├── CheckpointFileError   a file of a checkpoint that is missing, damaged or not one
        ├── CheckpointGoneError   nobody serves the pieces of a state
        └── StartError            weights of others that cannot be the start of this run

Owns: the classes. Never: an error of a holder; see `transport/errors.py`.
Next: `folder.py` and `fetch.py`, which raise them.
"""

from troth_client.errors import ClientError


class CheckpointError(ClientError):
    """Base of the errors of checkpoints."""


class CheckpointFileError(CheckpointError):
    """A file of a checkpoint is missing, damaged, or not one."""


class CheckpointGoneError(CheckpointError):
    """Nobody serves the pieces of a state any more."""


class StartError(CheckpointError):
    """Weights of others cannot be the start of this run."""
