"""Proof of possession: 64 bytes that only a holder of the payloads can write (section 4).

Owns: the bytes of an attestation's `possession` and the check of somebody else's.
Never: decides a penalty; a case settles the cost of a wrong byte of an included payload.
Next: `header.py`, which a member vouches for too.
"""

from collections.abc import Mapping

from troth_attestation.bulk import keyed_hash
from troth_attestation.errors import PossessionError
from troth_coordinator.rules import bitmap as bitmaps
from troth_coordinator.rules.hashing import H, b32, u16, u64
from troth_coordinator.rules.ids import MAX_PARTICIPANTS, Bitmap


def possession_byte(run: bytes, round_: int, owner: bytes, index: int, payload: bytes) -> int:
    """Return the first byte of the keyed hash of a payload.

    The key is H("troth:possession", run, round, owner, index). `owner` is the participant that
    vouches, `index` the index of the payload.
    """
    fields = (b32(run, "run"), u64(round_), b32(owner, "owner"), u16(index))
    return keyed_hash(H("troth:possession", *fields), payload)[0]


def possession(run: bytes, round_: int, owner: bytes, payloads: Mapping[int, bytes]) -> bytes:
    """Return the 64 bytes for the payloads held, by index; bytes of absent payloads are 0."""
    proof = bytearray(MAX_PARTICIPANTS)
    for index, payload in payloads.items():
        proof[bitmaps.checked_index(index)] = possession_byte(run, round_, owner, index, payload)
    return bytes(proof)


def vouched(payloads: Mapping[int, bytes]) -> Bitmap:
    """Return the bitmap that goes with `possession` of the same payloads."""
    return bitmaps.from_indices(payloads)


def false_claims(
    claim: bytes, bitmap: int, expected_of: tuple[bytes, int, bytes], payloads: Mapping[int, bytes]
) -> Bitmap:
    """Return the vouched indices whose byte is wrong, among the payloads held here.

    `expected_of` is (run, round, owner of the attestation). Bytes of indices that were not vouched
    for mean nothing. Raises PossessionError unless the claim has 64 bytes.
    """
    if len(claim) != MAX_PARTICIPANTS:
        raise PossessionError(
            "possession", f"{MAX_PARTICIPANTS} bytes", len(claim), "read it from the round account"
        )
    run, round_, owner = expected_of
    return bitmaps.from_indices(
        index
        for index, payload in payloads.items()
        if bitmaps.has(bitmap, index)
        and claim[index] != possession_byte(run, round_, owner, index, payload)
    )
