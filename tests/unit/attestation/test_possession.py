"""Possession: only a holder of the payloads can write the bytes; a blind all-ones shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth_attestation import possession
from troth_attestation.errors import PossessionError
from troth_coordinator.rules.errors import RangeError

RUN, OWNER = b"\x01" * 32, b"\x02" * 32
PAYLOADS = st.dictionaries(st.integers(0, 63), st.binary(max_size=50), max_size=10)


def proof(payloads, owner=OWNER):
    return possession.possession(RUN, 7, owner, payloads)


@given(PAYLOADS)
def test_an_honest_proof_has_no_false_claim(payloads):
    made = proof(payloads)
    bitmap = possession.vouched(payloads)
    assert len(made) == 64
    assert all(made[index] == 0 for index in range(64) if index not in payloads)
    assert possession.false_claims(made, bitmap, (RUN, 7, OWNER), payloads) == 0


@given(PAYLOADS, st.data())
def test_a_wrong_byte_shows(payloads, data):
    if not payloads:
        return
    index = data.draw(st.sampled_from(sorted(payloads)))
    made = bytearray(proof(payloads))
    made[index] ^= data.draw(st.integers(1, 255))
    bitmap = possession.vouched(payloads)
    false = possession.false_claims(bytes(made), bitmap, (RUN, 7, OWNER), payloads)
    assert false == 1 << index
    without = bitmap & ~(1 << index)
    assert possession.false_claims(bytes(made), without, (RUN, 7, OWNER), payloads) == 0


def test_a_proof_copied_from_another_shows():
    payloads = {index: bytes([index]) * 100 for index in range(16)}
    copied = proof(payloads, owner=b"\x03" * 32)
    false = possession.false_claims(copied, 0xFFFF, (RUN, 7, OWNER), payloads)
    assert false.bit_count() >= 14


def test_wrong_lengths_and_indices():
    with pytest.raises(PossessionError, match="64 bytes, found 63"):
        possession.false_claims(bytes(63), 0, (RUN, 7, OWNER), {})
    with pytest.raises(RangeError, match="participant index"):
        proof({64: b""})
