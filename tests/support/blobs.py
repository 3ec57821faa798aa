"""Blobs for transport tests: random bytes with the address that they really have."""

import random

from troth_attestation.header import HEADER_BYTES, SIGNATURE_BYTES
from troth_client.compression.codec import payload_root
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.errors import HolderLiedError
from troth_coordinator.rules.hashing import H

SIGNED_BYTES = HEADER_BYTES + SIGNATURE_BYTES


def payload(round_=5, leaves=3, seed=0):
    """A payload blob and its bytes."""
    data = random.Random(seed).randbytes(1024 * leaves)
    return BlobId(round_, BlobKind.PAYLOAD, payload_root(data)), data


def header(round_=5, seed=0):
    """A header blob and its bytes with a signature that `signed` accepts."""
    data = random.Random(seed).randbytes(HEADER_BYTES)
    return BlobId(round_, BlobKind.HEADER, H("troth:header", data)), data + bytes(SIGNATURE_BYTES)


def signed(data):
    """A check: the signature must be zeros. Any ClientError will do."""
    if any(data[HEADER_BYTES:]):
        raise HolderLiedError("a good signature", "a bad one", "")
    return data


def reasons(error):
    """The class of each failure of a FetchError, by holder, in the order of the attempts."""
    return {holder: type(failure).__name__ for holder, failure in error.failures}
