"""State roots: every bit of every weight counts, nothing else does."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troth_attestation import bulk, merkle, state
from troth_attestation.errors import EmptyTreeError, TensorError

CONFIG = bytes(32)


def weights(seed=0):
    rng = np.random.default_rng(seed)
    shapes = {"w": (130, 200), "norm": (7,), "scalar": (), "deep": (2, 3, 4)}
    return {name: rng.standard_normal(s).astype(np.float32) for name, s in shapes.items()}


def root(tensors, round_=3, cursor=96, config=CONFIG, executor=None):
    return state.state_root(tensors, round_, cursor, config, executor)


@settings(max_examples=30)
@given(st.data())
def test_one_flipped_bit_anywhere_changes_the_root(data):
    tensors = weights()
    before = root(tensors)
    name = data.draw(st.sampled_from(sorted(tensors)))
    flat = tensors[name].reshape(-1).view(np.uint32)
    flat[data.draw(st.integers(0, flat.size - 1))] ^= 1 << data.draw(st.integers(0, 31))
    assert root(tensors) != before


def test_round_cursor_config_names_and_shapes_count():
    tensors = weights()
    renamed = {("x" if name == "w" else name): value for name, value in tensors.items()}
    reshaped = tensors | {"w": tensors["w"].reshape(200, 130)}
    others = [
        root(tensors, round_=4),
        root(tensors, cursor=97),
        root(tensors, config=b"\1" * 32),
        root(renamed),
        root(reshaped),
        root({name: value for name, value in tensors.items() if name != "norm"}),
    ]
    assert len({root(tensors), *others}) == 7


def test_order_memory_layout_and_threads_do_not_count():
    tensors = weights()
    strided = dict(reversed(tensors.items())) | {"w": np.asfortranarray(tensors["w"])}
    with ThreadPoolExecutor(2) as executor:
        assert root(strided, executor=executor) == root(strided) == root(tensors)


def test_a_state_without_tensors_has_no_root():
    with pytest.raises(EmptyTreeError):
        root({})


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((0, 4), np.float32)])
def test_only_fp32_with_elements_is_hashed(bad):
    with pytest.raises(TensorError, match="tensor 'w': expected float32 with at least one"):
        root({"w": bad})
    with pytest.raises(TensorError):
        state.tensor_root(bad)


def test_a_tensor_is_cut_into_chunks_of_64_kib():
    tensor = np.random.default_rng(2).standard_normal(16_384 + 3).astype(np.float32)
    data = tensor.tobytes()
    leaves = [bulk.leaf_hash(data[:65_536]), bulk.leaf_hash(data[65_536:])]
    assert state.tensor_root(tensor) == merkle.root_of(leaves)


def test_residual_paths_open_single_tiles():
    u = np.random.default_rng(1).standard_normal((5, 64, 64)).astype(np.float32)
    tree = state.residual_tree(u)
    assert tree.root == state.residual_root(u)
    own, other = (bulk.leaf_hash(u[tile].tobytes()) for tile in (3, 2))
    assert merkle.verify(tree.root, own, tree.path(3))
    assert not merkle.verify(tree.root, other, tree.path(3))
    assert not merkle.verify(tree.root, merkle.leaf_hash(u[3].tobytes()), tree.path(3))


def test_minus_zero_is_not_the_zero_state():
    u = np.zeros((3, 64, 64), np.float32)
    assert state.residual_root(u) == state.zero_residual_root(3)
    u[1, 2, 3] = -0.0
    assert state.residual_root(u) != state.zero_residual_root(3)


@pytest.mark.parametrize("shape", [(64, 64), (2, 64, 63), (2, 32, 128), (0, 64, 64)])
def test_residuals_are_tiles(shape):
    with pytest.raises(TensorError):
        state.residual_root(np.zeros(shape, np.float32))


def test_a_residual_may_arrive_in_parts_of_whole_tiles():
    u = np.random.default_rng(3).standard_normal((5, 64, 64)).astype(np.float32)
    assert state.residual_root_of_parts([u[:2].reshape(-1), u[2:]]) == state.residual_root(u)
    with pytest.raises(TensorError, match="whole tiles"):
        state.residual_root_of_parts([u[0].reshape(-1)[:4095]])


def test_the_root_of_a_residual_follows_from_the_hashes_of_its_tiles():
    u = np.random.default_rng(4).standard_normal((5, 64, 64)).astype(np.float32)
    hashes = [bulk.leaf_hash(tile.tobytes()) for tile in u]
    assert merkle.root_of(hashes) == state.residual_root(u)
    assert merkle.root_of(hashes[::-1]) != state.residual_root(u)


def test_the_order_of_assigned_sequences_counts():
    assert state.data_root([1, 2]) != state.data_root([2, 1])
    with pytest.raises(EmptyTreeError):
        state.data_root([])
