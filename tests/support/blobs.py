"""Blobs for transport tests: random bytes with the address that they really have."""

import random

from troth_attestation.header import HEADER_BYTES, SIGNATURE_BYTES
from troth_client.compression.codec import payload_root
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.errors import FetchError, HolderLiedError
from troth_coordinator.rules.hashing import H


def payload(round_: int = 5, leaves: int = 3, seed: int = 0) -> tuple[BlobId, bytes]:
    """A payload blob and its bytes."""
    data = random.Random(seed).randbytes(1024 * leaves)
    return BlobId(round_, BlobKind.PAYLOAD, payload_root(data)), data


def header(round_: int = 5, seed: int = 0) -> tuple[BlobId, bytes]:
    """A header blob and its bytes with a signature that `signed` accepts."""
    data = random.Random(seed).randbytes(HEADER_BYTES)
    return BlobId(round_, BlobKind.HEADER, H("troth:header", data)), data + bytes(SIGNATURE_BYTES)


def signed(data: bytes) -> bytes:
    """A check: the signature must be zeros. Any ClientError will do."""
    if any(data[HEADER_BYTES:]):
        raise HolderLiedError("a good signature", "a bad one", "")
    return data


def reasons(error: FetchError) -> dict[str, str]:
    """The class of each failure of a FetchError, by holder, in the order of the attempts."""
    return {holder: type(failure).__name__ for holder, failure in error.failures}
