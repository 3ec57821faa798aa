"""The signed header of a payload (protocol section 6).

Owns: the fixed field order, the bytes, the hash that is committed on chain, the signature.
Never: fetches anything, nor decides whether the payload itself is well formed.
Next: `expected.py`, which checks a header field by field against the chain.
"""

import struct
from dataclasses import dataclass, fields

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from troth_attestation.errors import HeaderEncodingError, HeaderHashError, HeaderSignatureError
from troth_coordinator.rules.hashing import H, b32, u16, u64
from troth_coordinator.rules.ids import Address, Digest, ParticipantIndex, RoundIndex

_LAYOUT = struct.Struct("<32s32s32sIQH32s32s32s32s32sQ32s32s32sQq32s")
HEADER_BYTES = _LAYOUT.size
"""Every header has this length: there are no optional fields."""
SIGNATURE_BYTES = 64


@dataclass(frozen=True, slots=True)
class Header:
    """The signed description of a payload; the fields are in the order in which they are hashed.

    `mean_loss` is in micro-nats and is telemetry: it decides nothing. `previous_included` is NONE
    together with the zero-state residual root.
    """

    genesis_hash: Digest
    program_id: Address
    run: Address
    epoch: int
    round: RoundIndex
    index: ParticipantIndex
    owner: Address
    session: Address
    config_hash: Digest
    state_root: Digest
    data_root: Digest
    previous_included: RoundIndex
    residual_before: Digest
    residual_after: Digest
    payload_root: Digest
    payload_bytes: int
    mean_loss: int
    salt: bytes


_FIELDS = tuple(field.name for field in fields(Header))
_BYTE_FIELDS = (
    "genesis_hash",
    "program_id",
    "run",
    "owner",
    "session",
    "config_hash",
    "state_root",
    "data_root",
    "residual_before",
    "residual_after",
    "payload_root",
    "salt",
)


def encode(header: Header) -> bytes:
    """Return the HEADER_BYTES bytes of a header; HeaderEncodingError names a field that is off."""
    for name in _BYTE_FIELDS:
        if len(getattr(header, name)) != 32:
            raise HeaderEncodingError(
                name, "32 bytes", f"{len(getattr(header, name))} bytes", "pass the raw bytes"
            )
    try:
        return _LAYOUT.pack(*(getattr(header, name) for name in _FIELDS))
    except struct.error as error:
        raise HeaderEncodingError(
            "header", "numbers within their widths", error, "check epoch, round, index and counts"
        ) from error


def decode(data: bytes) -> Header:
    """Return the header of exactly HEADER_BYTES bytes; HeaderEncodingError for any other length."""
    if len(data) != HEADER_BYTES:
        raise HeaderEncodingError(
            "header", f"{HEADER_BYTES} bytes", f"{len(data)} bytes", "fetch it from another holder"
        )
    return Header(*_LAYOUT.unpack(data))


def header_hash(header: Header) -> Digest:
    """Return H("troth:header", header): the commitment that goes on chain."""
    return H("troth:header", encode(header))


def commit_message(run: bytes, round_: int, index: int, hash_: bytes) -> Digest:
    """Return the bytes to sign: H("troth:commit", run, round, index, header hash)."""
    return H("troth:commit", b32(run, "run"), u64(round_), u16(index), b32(hash_, "header hash"))


def sign(header: Header, session_seed: bytes) -> bytes:
    """Sign a header with the 32-byte ed25519 seed of the session key; returns 64 bytes.

    Raises HeaderSignatureError if the seed does not belong to the key in the header.
    """
    key = SigningKey(b32(session_seed, "session seed"))
    if bytes(key.verify_key) != header.session:
        raise HeaderSignatureError(
            "session key",
            header.session.hex(),
            bytes(key.verify_key).hex(),
            "sign with the session key that the header names",
        )
    message = commit_message(header.run, header.round, header.index, header_hash(header))
    return bytes(key.sign(message).signature)


def verify_signature(header: Header, signature: bytes) -> None:
    """Check that the header's own session key signed it; HeaderSignatureError otherwise."""
    message = commit_message(header.run, header.round, header.index, header_hash(header))
    try:
        VerifyKey(header.session).verify(message, signature)
    except (BadSignatureError, ValueError) as error:
        raise HeaderSignatureError(
            f"signature of round {header.round} index {header.index}",
            f"one by session key {header.session.hex()}",
            error,
            "fetch header and signature from another holder",
        ) from error


def check_commitment(header: Header, committed_hash: bytes) -> None:
    """Check that the header hashes to the commitment on chain; HeaderHashError otherwise."""
    found = header_hash(header)
    if found != committed_hash:
        raise HeaderHashError(
            f"header of round {header.round} index {header.index}",
            f"hash {committed_hash.hex()}",
            found.hex(),
            "fetch it from another holder",
        )
