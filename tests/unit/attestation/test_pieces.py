"""Piece lists: the hashes of all pieces give the state root, and nothing else has that root."""

import hashlib
import struct
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from troth_attestation.errors import EmptyTreeError, PieceListError, TensorError
from troth_attestation.pieces import (
    PIECE_BYTES,
    PieceList,
    StateName,
    list_bytes,
    num_pieces,
    piece_hash,
    pieces_of,
)
from troth_attestation.state import state_root

CHUNK = 65_536
NAME = StateName(3, 96, b"c" * 32)


# An independent computation of protocol sections 1 and 6: recursive, over chunks, without pieces.
def tagged(tag, *parts):
    return hashlib.sha256(struct.pack("<I", len(tag)) + tag.encode() + b"".join(parts)).digest()


def top(nodes):
    """Split at the largest power of two below the count: what promotion of odd nodes amounts to."""
    if len(nodes) == 1:
        return nodes[0]
    half = 1 << (len(nodes) - 1).bit_length() - 1
    return tagged("troth:node", top(nodes[:half]), top(nodes[half:]))


def short(leaf):
    return tagged("troth:leaf", leaf)


def bulk(leaf):
    return blake3(leaf, key=hashlib.sha256(b"troth:leaf").digest()).digest()


def plain_merkle(leaves, hash_of):
    hashed = [hash_of(leaf) for leaf in leaves]
    return tagged("troth:merkle", struct.pack("<Q", len(leaves)), top(hashed))


def plain_root(tensors, name):
    roots = []
    for key in sorted(tensors, key=str.encode):
        data, shape = tensors[key].tobytes(), tensors[key].shape
        chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
        head = struct.pack("<I", len(key.encode())) + key.encode() + bytes([0, len(shape)])
        dims = b"".join(struct.pack("<Q", size) for size in shape)
        roots.append(tagged("troth:tensor", head, dims, plain_merkle(chunks, bulk)))
    end = struct.pack("<QQ", name.round, name.cursor) + name.config_hash
    return tagged("troth:state", plain_merkle(roots, short), end)


def tensor(num_bytes, seed=0):
    return np.random.default_rng(seed).standard_normal(num_bytes // 4).astype(np.float32)


@pytest.mark.parametrize("short", [0, 4, CHUNK - 4])
@pytest.mark.parametrize("chunks", [1, 2, 15, 16, 17, 31, 32, 33, 48, 80])
def test_the_root_from_pieces_is_the_root_from_chunks(chunks, short):
    tensors = {"w": tensor(chunks * CHUNK - short), "b": tensor(4, 1)}
    made = pieces_of(tensors, NAME)
    assert made.root == plain_root(tensors, NAME)
    assert made.root == state_root(tensors, NAME.round, NAME.cursor, NAME.config_hash)
    assert [len(one.hashes) for one in made.tensors] == [1, -(-chunks // 16)]


def test_pieces_cover_each_tensor_in_order_and_hash_to_their_bytes():
    tensors = {"w": tensor(33 * CHUNK - 8), "b": tensor(12, 1)}
    made = pieces_of(tensors, NAME)
    joined = {"w": b"", "b": b""}
    for piece in made.pieces():
        assert piece.offset == len(joined[piece.tensor])
        assert piece.num_bytes <= PIECE_BYTES
        data = tensors[piece.tensor].tobytes()[piece.offset : piece.offset + piece.num_bytes]
        assert piece_hash(data) == piece.hash
        joined[piece.tensor] += data
    assert joined == {name: value.tobytes() for name, value in tensors.items()}
    assert [piece.tensor for piece in made.pieces()] == ["b", "w", "w", "w"]
    assert made.num_bytes == sum(value.nbytes for value in tensors.values())


def test_order_layout_and_threads_do_not_count():
    tensors = {"w": tensor(40 * CHUNK).reshape(160, -1), "b": tensor(8)}
    turned = {"b": tensors["b"], "w": np.asfortranarray(tensors["w"])}
    with ThreadPoolExecutor(2) as executor:
        assert pieces_of(turned, NAME, executor) == pieces_of(tensors, NAME)


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((0, 4), np.float32)])
def test_only_fp32_with_elements_has_pieces(bad):
    with pytest.raises(TensorError, match="tensor 'w'"):
        pieces_of({"w": bad}, NAME)


def test_nothing_has_no_root():
    with pytest.raises(EmptyTreeError):
        _ = pieces_of({}, NAME).root


# Hashes stand for bytes here: a list of a large model is as easy to make as one of a small one.
SHAPES = st.dictionaries(
    st.text(max_size=4),
    st.lists(st.integers(1, 900), min_size=0, max_size=3).map(tuple),
    min_size=1,
    max_size=4,
)


@settings(max_examples=60)
@given(SHAPES, st.randoms(use_true_random=False))
def test_a_list_comes_back(shapes, draw):
    data = draw.randbytes(list_bytes(shapes))
    found = PieceList.decode(data, shapes, NAME)
    assert found.encode() == data
    assert {one.name: one.shape for one in found.tensors} == shapes
    assert [len(one.hashes) for one in found.tensors] == [
        num_pieces(shapes[name]) for name in sorted(shapes, key=str.encode)
    ]


@settings(max_examples=60)
@given(SHAPES, st.data())
def test_one_changed_byte_anywhere_changes_the_root(shapes, data):
    size = list_bytes(shapes)
    original = np.random.default_rng(size).bytes(size)
    at = data.draw(st.integers(0, size - 1))
    changed = bytearray(original)
    changed[at] ^= data.draw(st.integers(1, 255))
    before = PieceList.decode(original, shapes, NAME).root
    assert PieceList.decode(bytes(changed), shapes, NAME).root != before


@pytest.mark.parametrize("size", [0, 31, 32 * 3 - 1, 32 * 3 + 1, 32 * 4, 32 * 2])
def test_another_length_is_refused(size):
    with pytest.raises(PieceListError, match=f"96 bytes, found {size}"):
        PieceList.decode(bytes(size), {"w": (600_000,)}, NAME)


def test_absurd_shapes_cost_nothing():
    """The length alone refuses a list: a model config may name any size."""
    with pytest.raises(PieceListError):
        PieceList.decode(bytes(32), {"w": (2**60, 2**60)}, NAME)


def test_the_hash_of_a_piece_is_no_hash_of_a_chunk_list():
    """A piece of one chunk is a leaf, and its own hash no preimage of another piece."""
    data = tensor(2 * CHUNK).tobytes()
    first, second = piece_hash(data[:CHUNK]), piece_hash(data[CHUNK:])
    assert piece_hash(data) == tagged("troth:node", first, second)
    assert piece_hash(first + second) != piece_hash(data)
