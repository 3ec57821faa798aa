"""Errors of payload bytes, as one tree; one class for each rule of protocol section 5.4.

Owns: the exception types of this folder. Never: errors of tensors (`demo/errors.py`).
Next: `codec.py`, whose `decode` raises the first five.

    ClientError
    └── PayloadError
        ├── MalformedPayloadError       an included payload with one of these is fault P2
        │   ├── PayloadLengthError      not the length of the model's tile count
        │   ├── IndexOrderError         indices of a tile repeat or do not ascend
        │   ├── AbsentTileError         a tile marked absent has fields that are not zero
        │   └── PaddingError            bits behind the last field of a leaf are not zero
        ├── PayloadRootError            the bytes are not those that the header names
        ├── UnsupportedKError           k is not 1, 2, 4, 8, 16, 32 or 64
        └── InputFileError              a file given to `troth debug` is not what it should be
"""

from troth_client.errors import ClientError


class PayloadError(ClientError):
    """Base of all errors of `troth_client.compression`."""


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


class PayloadRootError(PayloadError):
    """The Merkle root of the bytes is not the expected one."""


class UnsupportedKError(PayloadError):
    """The number of coefficients per tile is not one that the format knows."""


class InputFileError(PayloadError):
    """A file on disk does not hold what the command needs."""
