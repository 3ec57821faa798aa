"""Headers: fixed bytes, a hash over every field, a signature of the session key."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.headers import FIELDS, HEADER, SEED, other_value

from troth_attestation import header as headers
from troth_attestation.errors import (
    HeaderEncodingError,
    HeaderHashError,
    HeaderSignatureError,
)
from troth_attestation.header import HEADER_BYTES, Header
from troth_coordinator.rules.errors import RangeError

B32 = st.binary(min_size=32, max_size=32)
U64 = st.integers(0, 2**64 - 1)
WIDTHS = {
    "epoch": st.integers(0, 2**32 - 1),
    "round": U64,
    "index": st.integers(0, 2**16 - 1),
    "previous_included": U64,
    "payload_bytes": U64,
    "mean_loss": st.integers(-(2**63), 2**63 - 1),
}
HEADERS = st.builds(Header, **{name: WIDTHS.get(name, B32) for name in FIELDS})


@given(HEADERS)
def test_round_trip(header):
    data = headers.encode(header)
    assert len(data) == HEADER_BYTES == 422
    assert headers.decode(data) == header


@pytest.mark.parametrize("name", FIELDS)
def test_the_hash_covers_every_field(name):
    changed = replace(HEADER, **{name: other_value(name)})
    assert headers.header_hash(changed) != headers.header_hash(HEADER)


@pytest.mark.parametrize("size", [0, HEADER_BYTES - 1, HEADER_BYTES + 1])
def test_other_lengths_are_no_header(size):
    with pytest.raises(HeaderEncodingError, match=f"expected 422 bytes, found {size} bytes"):
        headers.decode(bytes(size))


@pytest.mark.parametrize("name", [name for name in FIELDS if name not in WIDTHS])
def test_keys_and_roots_have_32_bytes(name):
    with pytest.raises(HeaderEncodingError, match=f"{name}: expected 32 bytes, found 31"):
        headers.encode(replace(HEADER, **{name: bytes(31)}))


@pytest.mark.parametrize(
    ("name", "value"), [("epoch", 2**32), ("round", -1), ("index", 2**16), ("mean_loss", 2**63)]
)
def test_numbers_fit_their_widths(name, value):
    with pytest.raises(HeaderEncodingError, match="numbers within their widths"):
        headers.encode(replace(HEADER, **{name: value}))


def test_the_session_key_signs():
    signature = headers.sign(HEADER, SEED)
    assert len(signature) == headers.SIGNATURE_BYTES
    headers.verify_signature(HEADER, signature)


@pytest.mark.parametrize("name", FIELDS)
def test_a_signature_is_for_one_header_only(name):
    signature = headers.sign(HEADER, SEED)
    changed = replace(HEADER, **{name: other_value(name)})
    with pytest.raises(HeaderSignatureError, match="Fetch header and signature"):
        headers.verify_signature(changed, signature)


@given(st.binary(max_size=80))
def test_bytes_are_no_signature(signature):
    with pytest.raises(HeaderSignatureError):
        headers.verify_signature(HEADER, signature)


def test_only_the_named_key_may_sign():
    with pytest.raises(HeaderSignatureError, match="Sign with the session key"):
        headers.sign(HEADER, b"\x08" * 32)
    with pytest.raises(RangeError, match="session seed"):
        headers.sign(HEADER, bytes(64))


def test_the_commitment_on_chain_binds_the_header():
    headers.check_commitment(HEADER, headers.header_hash(HEADER))
    with pytest.raises(HeaderHashError, match="header of round 205 index 6"):
        headers.check_commitment(replace(HEADER, salt=bytes(32)), headers.header_hash(HEADER))
