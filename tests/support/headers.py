"""An ordinary header, what the chain expects of it, and another value for each field."""

from nacl.signing import SigningKey

from troth_attestation.expected import ExpectedHeader
from troth_attestation.header import Header

SEED = b"\x07" * 32
ZERO_ROOT = b"\x66" * 32


def key(number: int) -> bytes:
    """Return 32 bytes that are easy to tell apart."""
    return bytes([number]) * 32


HEADER = Header(
    genesis_hash=key(1),
    program_id=key(2),
    run=key(3),
    epoch=4,
    round=205,
    index=6,
    owner=key(7),
    session=bytes(SigningKey(SEED).verify_key),
    config_hash=key(9),
    state_root=key(10),
    data_root=key(11),
    previous_included=203,
    residual_before=key(12),
    residual_after=key(13),
    payload_root=key(14),
    payload_bytes=2_048,
    mean_loss=-5,
    salt=key(15),
)
EXPECTED = ExpectedHeader(
    genesis_hash=HEADER.genesis_hash,
    program_id=HEADER.program_id,
    run=HEADER.run,
    epoch=HEADER.epoch,
    round=HEADER.round,
    index=HEADER.index,
    owner=HEADER.owner,
    session=HEADER.session,
    config_hash=HEADER.config_hash,
    state_root=HEADER.state_root,
    data_root=HEADER.data_root,
    payload_bytes=HEADER.payload_bytes,
    previous_included=203,
    residual_before=key(12),
    zero_residual_root=ZERO_ROOT,
)
FIELDS = tuple(Header.__dataclass_fields__)
TOLD_BY_THE_TRAINER = ("residual_after", "payload_root", "mean_loss", "salt")
"""Fields that no verifier can know before it sees the header."""


def other_value(name: str) -> int | bytes:
    """Return another value for a field."""
    value = getattr(HEADER, name)
    return value + 1 if isinstance(value, int) else bytes([value[0] ^ 1, *value[1:]])
