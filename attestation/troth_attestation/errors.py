"""Errors of the judge, as one tree.

Owns: the exception types. Their sentence comes from `troth_coordinator.errors`.
Never: an error for a fault that the protocol punishes; that is a verdict.
Next: `header.py` and `merkle.py`, which raise them.

    AttestationError
    ├── EmptyTreeError          a Merkle tree without leaves
    ├── PathIndexError          a leaf index that the tree does not have
    ├── TensorError             an array of the wrong dtype or shape
    ├── PieceListError          bytes that are not the piece list of a state
    ├── CommittedStateError     an account that names no state root of this run
    ├── CheckpointManifestError a manifest that does not describe a checkpoint
    ├── PossessionError         a proof of possession of the wrong length or for no payload
    ├── ReportError             seats, votes or sketches that cannot be counted
    ├── OpeningError            an opening set that proves nothing
    │   ├── OpeningFieldError   it is of another run, round, target or tile count
    │   ├── OpeningLengthError  bytes are missing or left over
    │   ├── OpeningTileError    a record of another tile than the drawn one
    │   ├── OpeningPathError    a tile that is not under the signed residual root
    │   ├── OpeningRootError    not the bytes whose root was recorded on chain
    │   └── OpeningNotFiniteError a committed value is NaN or infinite
    └── HeaderError
        ├── HeaderEncodingError bytes or fields that are not a header
        ├── HeaderFieldError    a field that contradicts the chain; `.field` names it
        ├── HeaderHashError     the header is not the one committed on chain
        └── HeaderSignatureError the session key did not sign this header
"""

from troth_coordinator.errors import SubjectError


class AttestationError(SubjectError):
    """Base of all errors of `troth_attestation`."""


class EmptyTreeError(AttestationError):
    """A Merkle tree needs at least one leaf."""


class PathIndexError(AttestationError):
    """A leaf index lies outside the tree."""


class TensorError(AttestationError):
    """An array has the wrong dtype, shape or no elements."""


class PieceListError(AttestationError):
    """The bytes are not the piece list of the tensors at hand."""


class CommittedStateError(AttestationError):
    """An account on chain names no state root of this run."""


class CheckpointManifestError(AttestationError):
    """The manifest of a checkpoint is malformed, or does not describe what it should."""


class PossessionError(AttestationError):
    """A proof of possession cannot be made or has the wrong length."""


class ReportError(AttestationError):
    """Reports of seats, committee votes or sketches have the wrong number or shape."""


class OpeningError(AttestationError):
    """An opening set cannot be used."""


class OpeningFieldError(OpeningError):
    """The opening set says that it is of another run, round, target or model."""


class OpeningLengthError(OpeningError):
    """The opening set is truncated or extended."""


class OpeningTileError(OpeningError):
    """A record is of another tile than the one drawn for its place."""


class OpeningPathError(OpeningError):
    """A tile with its path does not lead to the residual root of the header."""


class OpeningRootError(OpeningError):
    """The bytes do not hash to the root that the target recorded on chain."""


class OpeningNotFiniteError(OpeningError):
    """A tile that the trainer committed to holds a NaN or an infinity."""


class HeaderError(AttestationError):
    """A header cannot be accepted."""


class HeaderEncodingError(HeaderError):
    """Bytes or field values are not those of a header."""


class HeaderFieldError(HeaderError):
    """A header field contradicts what the chain says; `subject` is the field's name."""

    @property
    def field(self) -> str:
        """Name of the field of `Header` that was refused."""
        return self.subject


class HeaderHashError(HeaderError):
    """The header does not hash to the commitment on chain."""


class HeaderSignatureError(HeaderError):
    """The signature is not the session key's over this header."""
