"""Payload bytes: the same as everybody's, and nothing malformed gets through."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import reference

from troth_attestation.signs import Signs
from troth_client.compression import codec
from troth_client.compression.errors import (
    AbsentTileError,
    DecodedOtherError,
    IndexOrderError,
    MalformedPayloadError,
    PaddingError,
    PayloadLengthError,
    PayloadRootError,
    UnsupportedKError,
)
from troth_client.compression.limits import (
    ALLOWED_K,
    num_leaves,
    payload_length,
    tile_bits,
    tiles_per_leaf,
)
from troth_client.compression.topk import select

K = st.sampled_from(reference.ALL_K)
ERRORS = {
    "length": PayloadLengthError,
    "padding": PaddingError,
    "absent": AbsentTileError,
    "order": IndexOrderError,
}


def random_signs(num_tiles, k, seed, absent=0.1):
    """Random signs as plain lists, some tiles absent."""
    rng = np.random.default_rng(seed)
    result = []
    for _ in range(num_tiles):
        if rng.random() < absent:
            result.append((False, [0] * k, [False] * k))
            continue
        indices = np.sort(rng.choice(4096, k, replace=False)).tolist()
        result.append((True, indices, rng.integers(0, 2, k).astype(bool).tolist()))
    return result


def record(plain):
    present, indices, negative = zip(*plain, strict=True)
    return Signs(np.array(present), np.array(indices, np.int16), np.array(negative))


def lists(found):
    signs = found.signs
    return list(
        zip(signs.present.tolist(), signs.indices.tolist(), signs.negative.tolist(), strict=True)
    )


@st.composite
def payloads(draw):
    k = draw(K)
    per_leaf = tiles_per_leaf(k)
    num_tiles = draw(
        st.one_of(st.integers(1, 20), st.sampled_from([per_leaf - 1, per_leaf, per_leaf + 1]))
    )
    return max(1, num_tiles), k, random_signs(max(1, num_tiles), k, draw(st.integers(0, 2**32 - 1)))


@settings(max_examples=80, deadline=None)
@given(payloads())
def test_bytes_and_root_equal_the_reference_and_decode_gives_the_signs_back(example):
    num_tiles, k, plain = example
    data = codec.encode(record(plain))
    assert data == reference.pack(plain, k)
    assert len(data) == payload_length(num_tiles, k)
    found = codec.decode(data, num_tiles, k, reference.payload_root(data))
    assert lists(found) == plain
    assert found.num_tiles == num_tiles
    assert found.k == k
    assert found.root == reference.payload_root(data)
    assert codec.encode(found.signs) == data


@pytest.mark.parametrize("k", ALLOWED_K)
def test_many_leaves_cross_the_block_border(k, monkeypatch):
    monkeypatch.setattr(codec, "_BLOCK_LEAVES", 2)
    plain = random_signs(tiles_per_leaf(k) * 5 + 1, k, seed=k)
    data = codec.encode(record(plain))
    assert data == reference.pack(plain, k)
    assert lists(codec.decode(data, len(plain), k)) == plain


@settings(max_examples=300, deadline=None)
@given(payloads(), st.data())
def test_mutated_bytes_give_the_named_error_or_an_equal_decoding(example, data):
    num_tiles, k, plain = example
    raw = bytearray(codec.encode(record(plain)))
    for _ in range(data.draw(st.integers(1, 3))):
        bit = data.draw(st.integers(0, 8 * len(raw) - 1))
        raw[bit // 8] ^= 1 << bit % 8
    check_like_the_reference(bytes(raw), num_tiles, k)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=3000), st.integers(1, 30), K)
def test_arbitrary_bytes_give_the_named_error_or_an_equal_decoding(raw, num_tiles, k):
    check_like_the_reference(raw, num_tiles, k)
    check_like_the_reference(raw[:1024].ljust(1024, b"\0"), min(num_tiles, tiles_per_leaf(k)), k)


def check_like_the_reference(raw, num_tiles, k):
    try:
        expected = reference.unpack(raw, num_tiles, k)
    except ValueError as error:
        broken = tuple(ERRORS[rule] for rule in error.args[0])
        with pytest.raises(broken) as found:
            codec.decode(raw, num_tiles, k)
        assert isinstance(found.value, MalformedPayloadError)
    else:
        assert lists(codec.decode(raw, num_tiles, k)) == expected


@pytest.mark.parametrize("k", ALLOWED_K)
def test_truncated_and_extended_payloads_are_refused(k):
    plain = random_signs(tiles_per_leaf(k) + 1, k, seed=1)
    data = codec.encode(record(plain))
    for wrong in (b"", data[:-1], data[:-1024], data + b"\0", data + bytes(1024)):
        with pytest.raises(PayloadLengthError, match=f"{len(data)} bytes"):
            codec.decode(wrong, len(plain), k)


def test_a_model_without_tiles_has_no_payload():
    with pytest.raises(PayloadLengthError):
        codec.decode(b"", 0, 8)


@pytest.mark.parametrize("indices", [[7, 7, 8, 9], [9, 8, 7, 6], [0, 4095, 4095, 4095]])
def test_duplicate_and_descending_indices_are_refused_with_their_tile(indices):
    plain = [*random_signs(200, 4, 0), (True, indices, [False] * 4)]
    with pytest.raises(IndexOrderError, match="tile 200"):
        codec.decode(reference.pack(plain, 4), 201, 4)


@pytest.mark.parametrize(
    "tile", [(False, [0, 0, 0, 1], [False] * 4), (False, [0] * 4, [False, True, False, False])]
)
def test_absent_tiles_with_fields_are_refused_with_their_tile(tile):
    plain = [*random_signs(170, 4, 0), tile]
    with pytest.raises(AbsentTileError, match="tile 170"):
        codec.decode(reference.pack(plain, 4), 171, 4)


@pytest.mark.parametrize("leaf", [0, 1])
def test_dirty_padding_is_refused_in_full_and_partly_filled_leaves(leaf):
    raw = bytearray(reference.pack(random_signs(80, 8, 0), 8))
    raw[leaf * 1024 + 1023] |= 0x80
    with pytest.raises(PaddingError):
        codec.decode(bytes(raw), 80, 8)


def test_another_root_is_refused_before_the_form_is_judged():
    raw = bytearray(reference.pack(random_signs(80, 8, 0), 8))
    root = reference.payload_root(bytes(raw))
    raw[-1] ^= 0x80  # broken on the way: the sender is not to blame for dirty padding
    with pytest.raises(PayloadRootError, match=root.hex()):
        codec.decode(bytes(raw), 80, 8, root)


def test_views_are_accepted_and_nothing_aliases_them():
    plain = random_signs(3, 2, 5)
    raw = bytearray(codec.encode(record(plain)))
    found = codec.decode(memoryview(raw), 3, 2)
    raw[:] = bytes(len(raw))
    assert lists(found) == plain


def test_only_decode_makes_a_verified_payload():
    with pytest.raises(TypeError, match="decode"):
        codec.VerifiedPayload(record(random_signs(1, 1, 0)), b"", seal=None)


@pytest.mark.parametrize("k", [0, 3, 128])
def test_unknown_k_is_refused(k):
    with pytest.raises(UnsupportedKError, match=str(k)):
        payload_length(10, k)
    with pytest.raises(UnsupportedKError):
        codec.decode(bytes(1024), 10, k)


def test_sizes_are_those_of_the_protocol():
    assert [tiles_per_leaf(k) for k in ALLOWED_K] == [585, 303, 154, 78, 39, 19, 9]
    assert tile_bits(8) == 105
    assert num_leaves(79, 8) == 2
    assert payload_length(78, 8) == 1024
    # k = 8: about 0.0032 bytes per parameter
    assert payload_length(10**6, 8) / (10**6 * 4096) == pytest.approx(0.0032, rel=0.01)


def test_selected_signs_survive_the_wire():
    u = torch.randn(700, 64, 64, generator=torch.Generator().manual_seed(0))
    u[13] = 0
    for k in ALLOWED_K:
        sent = select(u, k)
        found = codec.decode(codec.encode(sent), 700, k).signs
        for name in ("present", "indices", "negative"):
            assert np.array_equal(getattr(found, name), getattr(sent, name)), name


def test_a_payload_that_says_something_else_than_was_encoded_is_not_sent():
    u = torch.randn(5, 64, 64, generator=torch.Generator().manual_seed(8))
    payload = codec.encode(select(u, 8))
    found = codec.check_decoded(payload, select(u, 8))
    assert found.root == codec.payload_root(payload)
    with pytest.raises(DecodedOtherError, match="this round sends no payload"):
        codec.check_decoded(payload, select(-u, 8))
