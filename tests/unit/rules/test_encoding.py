"""Hashing, encoders and bitmaps: widths are exact, nothing is coerced."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth_coordinator.rules import bitmap
from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.hashing import H, b32, i64, tag_prefix, u8, u16, u32, u64, var

BITMAPS = st.integers(0, 2**64 - 1)


def test_hash_covers_the_length_of_the_tag():
    assert H("ab", b"c") == hashlib.sha256(b"\x02\0\0\0abc").digest()
    assert H("ab", b"c") != H("a", b"bc")
    assert tag_prefix("ab") == b"\x02\0\0\0ab"


def test_a_tag_is_ascii():
    with pytest.raises(UnicodeEncodeError):
        H("trôth")


@pytest.mark.parametrize(("encode", "width"), [(u8, 1), (u16, 2), (u32, 4), (u64, 8)])
def test_unsigned_encoders_refuse_what_does_not_fit(encode, width):
    limit = 256**width
    assert encode(0) == bytes(width)
    assert encode(limit - 1) == b"\xff" * width
    assert encode(1) == b"\x01" + bytes(width - 1)
    for value in (-1, limit):
        with pytest.raises(RangeError, match=f"u{8 * width} field.*{limit - 1}"):
            encode(value)


def test_signed_encoder():
    assert i64(-1) == b"\xff" * 8
    assert i64(-(2**63)) == bytes(7) + b"\x80"
    for value in (2**63, -(2**63) - 1):
        with pytest.raises(RangeError):
            i64(value)


def test_variable_fields_carry_their_length():
    assert var(b"abc") == b"\x03\0\0\0abc"


def test_variable_fields_longer_than_u32_are_refused():
    class Long(bytes):
        def __len__(self):
            return 2**32

    with pytest.raises(RangeError, match="variable field"):
        var(Long())


def test_keys_have_32_bytes():
    assert b32(bytes(32)) == bytes(32)
    with pytest.raises(RangeError, match="owner: expected 32 bytes, found 31 bytes"):
        b32(bytes(31), "owner")


@given(st.sets(st.integers(0, 63)))
def test_bitmap_round_trip(indices):
    made = bitmap.from_indices(indices)
    assert list(bitmap.indices_of(made)) == sorted(indices)
    assert bitmap.count(made) == len(indices)
    assert {index for index in range(64) if bitmap.has(made, index)} == indices
    assert [bitmap.rank(made, index) for index in sorted(indices)] == list(range(len(indices)))


@given(BITMAPS, st.integers(0, 63))
def test_only_members_have_a_rank(bits, index):
    without = bits & ~(1 << index)
    with pytest.raises(RangeError, match=f"rank of index {index}"):
        bitmap.rank(without, index)


@pytest.mark.parametrize("index", [-1, 64])
def test_indices_outside_the_roster_are_refused(index):
    for use in (
        bitmap.checked_index,
        lambda i: bitmap.has(0, i),
        lambda i: bitmap.from_indices([i]),
    ):
        with pytest.raises(RangeError, match=r"participant index: expected 0\.\.63"):
            use(index)
