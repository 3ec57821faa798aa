"""Errors of training, as one tree.

    TrainError
    ├── BatchShapeError          a batch that the model cannot take
    ├── NonFiniteGradientError   a loss or a gradient that is not a number
    └── RanksError               processes that should compute together do not meet
        └── RanksLostError       one of them ended, or does not answer in time

Owns: the classes, and which errors say that a batch has no gradient.
Next: step.py and ranks.py raise them.
"""

from typing import Final

from troth_client.data.errors import ShardTokenError
from troth_client.errors import ClientError


class TrainError(ClientError):
    """Root of the training errors."""


class BatchShapeError(TrainError):
    """Tokens of the wrong shape, dtype or range for this model."""


class NonFiniteGradientError(TrainError):
    """The loss or the gradient is infinite or not a number; nothing of it may be sent."""


class RanksError(TrainError):
    """The ranks of a participant cannot meet, or one has no memory for the model."""


class RanksLostError(RanksError):
    """A rank that others wait for has ended or hangs."""


NO_GRADIENT: Final = (NonFiniteGradientError, BatchShapeError, ShardTokenError)
"""The weights, or the data that the run's creator named, give no gradient: to anybody."""
