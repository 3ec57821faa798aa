"""Our bytes against the protocol's own reference, where its file lies beside the checkout."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from troth_client.compression import apply, codec, known_answer
from troth_client.compression.dct import dct2
from troth_client.compression.limits import ALLOWED_K
from troth_client.compression.tiles import TileLayout
from troth_client.compression.topk import select

FILE = Path(__file__).parents[4] / "shared" / "prototypes" / "demo_reference.py"
if not FILE.exists():
    pytest.skip("the protocol's reference is not here", allow_module_level=True)
spec = importlib.util.spec_from_file_location("demo_reference", FILE)
prototype = importlib.util.module_from_spec(spec)
spec.loader.exec_module(prototype)

SHAPES = st.dictionaries(
    st.text("abcXYZ.", min_size=1, max_size=5),
    st.one_of(
        st.just(()),
        st.tuples(st.integers(1, 9000)),
        st.tuples(st.integers(1, 200), st.integers(1, 200)),
        st.tuples(st.integers(1, 4), st.integers(1, 90), st.integers(1, 90)),
    ),
    min_size=1,
    max_size=6,
)


def random_tensors(shapes, seed):
    rng = np.random.default_rng(seed)
    return {n: np.asarray(rng.standard_normal(s), np.float32) for n, s in shapes.items()}


@settings(max_examples=40, deadline=None)
@given(SHAPES, st.integers(0, 999))
def test_tiles_both_ways(shapes, seed):
    arrays = random_tensors(shapes, seed)
    layout = TileLayout.from_shapes(shapes)
    stack = layout.to_tiles({n: torch.from_numpy(x) for n, x in arrays.items()})
    assert stack.numpy().tobytes() == prototype.to_tiles(arrays).tobytes()
    back = prototype.from_tiles(stack.numpy(), shapes)
    for name, tensor in layout.from_tiles(stack).items():
        assert np.array_equal(tensor.numpy(), back[name])


@pytest.mark.parametrize("k", ALLOWED_K)
@pytest.mark.parametrize("num_tiles", [1, 2, 9, 20, 79, 155, 304, 586])
def test_payload_bytes_root_and_direction(k, num_tiles):
    rng = np.random.default_rng(num_tiles)
    packed, ours = [], []
    for _ in range(3):
        u = rng.standard_normal((num_tiles, 64, 64)).astype(np.float32)
        u[rng.integers(num_tiles)] = 0
        u[rng.integers(num_tiles), 1:] = 0
        u = np.where(rng.random((num_tiles, 1, 1)) < 0.3, np.round(u), u)
        theirs = prototype.encode(u, k)
        data = codec.encode(select(torch.from_numpy(u), k))
        assert data == prototype.pack(*theirs, k)
        packed.append(theirs)
        ours.append(codec.decode(data, num_tiles, k, prototype.payload_root(data)))
    expected = prototype.aggregate(packed, num_tiles)
    for integers in (False, True):
        path = known_answer.choose_path("cpu", prefer_integers=integers)
        assert np.array_equal(apply.direction(ours, num_tiles, path).numpy(), expected)


@pytest.mark.parametrize("decay", [0, 100_000_000])
def test_weight_step(decay):
    shapes = {"w": (130, 100), "n": (77,)}
    weights = random_tensors(shapes, 1)
    layout = TileLayout.from_shapes(shapes)
    d = torch.from_numpy(
        np.random.default_rng(2).integers(-1, 2, (layout.num_tiles, 64, 64)).astype(np.int8)
    )
    a = float(prototype.nearest_fp32(10**18 - 1_000_000 * decay, 10**18))
    b = float(prototype.nearest_fp32(1_000_000, 10**9))
    ours = {n: torch.from_numpy(x.copy()) for n, x in weights.items()}
    apply.step(ours, d, layout, a, b, known_answer.choose_path("cpu"))
    for name, part in layout.from_tiles(d).items():
        expected = prototype.apply(weights[name], part.numpy(), 1_000_000, decay)
        assert ours[name].numpy().tobytes() == expected.tobytes()


def test_transform_is_the_same_up_to_rounding():
    x = np.random.default_rng(0).standard_normal((9, 64, 64)).astype(np.float32)
    assert np.allclose(dct2(torch.from_numpy(x)).numpy(), prototype.dct(x), atol=1e-5)
