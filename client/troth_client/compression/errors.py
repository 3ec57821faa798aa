"""Errors of DeMo, as one tree.

Owns: the exception types of this folder. Never: errors of payload bytes (`payload/errors.py`).
Next: `tiles.py`, `topk.py` and `known_answer.py`, which raise them.

    ClientError
    └── DemoError
        ├── LayoutError
        │   ├── NoTensorsError          there is nothing to train
        │   ├── EmptyTensorError        a tensor without elements
        │   └── TensorMismatchError     names, shapes, dtypes or devices differ from the layout
        ├── TileShapeError              an array that is not [tiles, 64, 64] of the right dtype
        ├── NonFiniteError              a NaN or an infinity where a payload would be made of it
        ├── InexactConstantError        a step constant that is not an fp32 number in range
        └── KnownAnswerError            a device whose arithmetic is not exact
"""

from troth_client.errors import ClientError


class DemoError(ClientError):
    """Base of all errors of `troth_client.compression`."""


class LayoutError(DemoError):
    """Tensors cannot be laid out as tiles."""


class NoTensorsError(LayoutError):
    """A layout needs at least one tensor."""


class EmptyTensorError(LayoutError):
    """A tensor has no elements."""


class TensorMismatchError(LayoutError):
    """Tensors differ from those that the layout was made for."""


class TileShapeError(DemoError):
    """An array is not a stack of tiles of the expected dtype."""


class NonFiniteError(DemoError):
    """A value is NaN or infinite, so no order of magnitudes exists."""


class InexactConstantError(DemoError):
    """A constant of the weight step is not exactly an fp32 number in range."""


class KnownAnswerError(DemoError):
    """A device gave another answer than the one every device must give."""
