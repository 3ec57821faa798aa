"""Errors of a participant's start, as a branch of the client's tree.

    ClientError
    ├── ConfigMismatchError   the config or the data at hand is not that of the run
    └── MachineTooSmallError  the memory does not hold one gradient of the model

Owns: the classes; it imports no PyTorch. Never: raised once a participant takes part.
Next: `assembly.py` and `measuring.py`, which raise them.
"""

from troth_client.errors import ClientError


class ConfigMismatchError(ClientError):
    """The config or the data at hand is not that of the run."""


class MachineTooSmallError(ClientError):
    """The memory of a device does not hold one gradient of the model, or a juror's."""
