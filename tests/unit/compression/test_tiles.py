"""Tile layout: every element has one place, the same on every participant."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import reference

from troth_client.compression.errors import (
    EmptyTensorError,
    NoTensorsError,
    TensorMismatchError,
    TileShapeError,
)
from troth_client.compression.tiles import TileLayout

SIDES = st.sampled_from([1, 2, 3, 31, 63, 64, 65, 70, 100, 127, 128, 129, 200])
SHAPES = st.one_of(
    st.just(()),
    st.tuples(st.integers(1, 5000)),
    st.tuples(SIDES, SIDES),
    st.tuples(st.integers(1, 3), SIDES, SIDES),
    st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 40), SIDES),
)
NAMES = st.text("abzAZ.0_éß€😀\uffff", min_size=1, max_size=4)
MODELS = st.dictionaries(NAMES, SHAPES, min_size=1, max_size=5)


def numbered(shapes):
    at, tensors = 1, {}
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        tensors[name] = torch.arange(at, at + size, dtype=torch.float32).reshape(shape)
        at += size
    return tensors


@settings(max_examples=80, deadline=None)
@given(MODELS)
def test_every_element_lies_where_the_reference_says_and_comes_back(shapes):
    layout = TileLayout.from_shapes(shapes)
    tensors = numbered(shapes)
    num_tiles, places = reference.locate(shapes)
    expected = np.zeros(num_tiles * 4096, np.float32)
    for name, place in places.items():
        expected[place] = tensors[name].numpy()
    stack = layout.to_tiles(tensors)
    assert layout.num_tiles == num_tiles
    assert layout.num_parameters == sum(x.numel() for x in tensors.values())
    assert np.array_equal(stack.numpy().reshape(-1), expected)
    back = layout.from_tiles(stack)
    assert list(back) == sorted(shapes, key=lambda name: name.encode())
    for name, tensor in tensors.items():
        assert back[name].shape == tensor.shape
        assert torch.equal(back[name], tensor)


def test_non_contiguous_tensors_are_laid_out_by_value():
    layout = TileLayout.from_shapes({"w": (130, 70)})
    tensor = torch.randn(70, 130).T
    assert torch.equal(layout.from_tiles(layout.to_tiles({"w": tensor}))["w"], tensor)


def test_names_sort_as_bytes_and_one_dimensional_tensors_come_last():
    shapes = {"é": (64, 64), "z": (3,), "Z": (64, 64), "a": (), "b": (64, 64)}
    layout = TileLayout.from_shapes(shapes)
    stack = layout.to_tiles({n: torch.full(s, float(i)) for i, (n, s) in enumerate(shapes.items())})
    assert stack[:, 0, 0].tolist() == [2.0, 4.0, 0.0, 3.0]  # Z, b, é, then a before z
    assert stack[3, 0, :5].tolist() == [3.0, 1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("shape", [(0,), (0, 64), (64, 0), (3, 0, 2)])
def test_tensors_without_elements_are_refused(shape):
    with pytest.raises(EmptyTensorError, match="'bad'"):
        TileLayout.from_shapes({"good": (2, 2), "bad": shape})


def test_a_model_without_tensors_is_refused():
    with pytest.raises(NoTensorsError):
        TileLayout.from_shapes({})


@pytest.mark.parametrize(
    "tensors",
    [
        {"a": torch.zeros(2, 3)},
        {"a": torch.zeros(2, 3), "b": torch.zeros(4), "c": torch.zeros(1)},
        {"a": torch.zeros(3, 2), "b": torch.zeros(4)},
        {"a": torch.zeros(2, 3), "b": torch.zeros(4, dtype=torch.float64)},
    ],
)
def test_tensors_of_another_model_are_refused(tensors):
    layout = TileLayout.from_shapes({"a": (2, 3), "b": (4,)})
    with pytest.raises(TensorMismatchError):
        layout.to_tiles(tensors)


def test_a_dtype_can_be_demanded():
    layout = TileLayout.from_shapes({"a": (2, 3)})
    layout.check({"a": torch.zeros(2, 3)}, torch.float32)
    with pytest.raises(TensorMismatchError, match=r"float32.*bfloat16"):
        layout.check({"a": torch.zeros(2, 3, dtype=torch.bfloat16)}, torch.float32)


def test_a_stack_of_another_size_is_refused():
    layout = TileLayout.from_shapes({"a": (65, 3)})
    with pytest.raises(TileShapeError, match=r"\[2, 64, 64\]"):
        layout.from_tiles(torch.zeros(3, 64, 64))


def test_the_tiles_of_each_matrix_are_named_in_order():
    layout = TileLayout.from_shapes({"b": (130, 100), "a": (64, 64), "n": (77,)})
    assert layout.tensor_tiles == (1, 6, 1)
    assert sum(layout.tensor_tiles) == layout.num_tiles
