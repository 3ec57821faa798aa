"""Errors of DeMo, as one tree: those of tensors, and one for each rule of payload bytes.

Owns: the exception types of this folder. Never: a verdict; an included payload that is malformed is
a fault, which the protocol punishes (protocol section 5.4).
Next: `tiles.py`, `topk.py` and `known_answer.py`, which raise those of tensors; `codec.py`, whose
`decode` raises those of payloads.

    ClientError
    └── CompressionError
        ├── LayoutError
        │   ├── NoTensorsError          there is nothing to train
        │   ├── EmptyTensorError        a tensor without elements
        │   └── TensorMismatchError     names, shapes, dtypes or devices differ from the layout
        ├── TileShapeError              an array that is not [tiles, 64, 64] of the right dtype
        ├── NonFiniteError              a NaN or an infinity where a payload would be made of it
        ├── InexactConstantError        a step constant that is not an fp32 number in range
        ├── KnownAnswerError            a device whose arithmetic is not exact
        └── PayloadError
            ├── MalformedPayloadError   bytes that break a rule of the format
            │   ├── PayloadLengthError  not the length of the model's tile count
            │   ├── IndexOrderError     indices of a tile repeat or do not ascend
            │   ├── AbsentTileError     a tile marked absent has fields that are not zero
            │   ├── PaddingError        bits behind the last field of a leaf are not zero
            │   └── DecodedOtherError   our own payload does not decode to what was encoded
            ├── PayloadRootError        the bytes are not those that the header names
            ├── UnsupportedKError       k is not 1, 2, 4, 8, 16, 32 or 64
            └── InputFileError          a file given to `troth debug` is not what it should be
"""

from troth_client.errors import ClientError


class CompressionError(ClientError):
    """Base of all errors of `troth_client.compression`."""


class LayoutError(CompressionError):
    """Tensors cannot be laid out as tiles."""


class NoTensorsError(LayoutError):
    """A layout needs at least one tensor."""


class EmptyTensorError(LayoutError):
    """A tensor has no elements."""


class TensorMismatchError(LayoutError):
    """Tensors differ from those that the layout was made for."""


class TileShapeError(CompressionError):
    """An array is not a stack of tiles of the expected dtype."""


class NonFiniteError(CompressionError):
    """A value is NaN or infinite, so no order of magnitudes exists."""


class InexactConstantError(CompressionError):
    """A constant of the weight step is not exactly an fp32 number in range."""


class KnownAnswerError(CompressionError):
    """A device gave another answer than the one every device must give."""


class PayloadError(CompressionError):
    """Payload bytes, or what should become or describe them, cannot be used."""


class MalformedPayloadError(PayloadError):
    """The bytes break a rule of the format, whoever sent them."""


class PayloadLengthError(MalformedPayloadError):
    """The length is not the one that tile count and k fix."""


class IndexOrderError(MalformedPayloadError):
    """The indices of a tile are not strictly ascending."""


class AbsentTileError(MalformedPayloadError):
    """A tile marked absent carries bits."""


class PaddingError(MalformedPayloadError):
    """The padding of a leaf carries bits."""


class DecodedOtherError(MalformedPayloadError):
    """Our own payload does not decode to what was encoded."""


class PayloadRootError(PayloadError):
    """The Merkle root of the bytes is not the expected one."""


class UnsupportedKError(PayloadError):
    """The number of coefficients per tile is not one that the format knows."""


class InputFileError(PayloadError):
    """A file on disk does not hold what the command needs."""
