"""Apply is bit-exact: the int64 path, the fp64 path and any order of peers give the same bits."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import reference

from troth_client.compression import apply, known_answer
from troth_client.compression.codec import decode, encode
from troth_client.compression.errors import (
    InexactConstantError,
    TensorMismatchError,
    TileShapeError,
)
from troth_client.compression.exact import is_fp32
from troth_client.compression.tiles import TileLayout
from troth_client.compression.topk import select

pytestmark = pytest.mark.cuda
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
INTEGERS = known_answer.integer_path("tested")
A = float(np.uint32(known_answer.DECAY).view(np.float32))
B = float(np.uint32(known_answer.RATE).view(np.float32))


@pytest.fixture(scope="module", params=DEVICES)
def path(request):
    chosen = known_answer.choose_path(request.param)
    assert chosen.dtype == torch.float64
    return chosen


def payload(seed, tiles, k, absent=()):
    u = torch.randn(tiles, 64, 64, generator=torch.Generator().manual_seed(seed))
    u[list(absent)] = 0
    return decode(encode(select(u, k)), tiles, k)


def plain(payloads):
    return [
        list(zip(s.present.tolist(), s.indices.tolist(), s.negative.tolist(), strict=True))
        for s in (payload.signs for payload in payloads)
    ]


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(4)), st.sampled_from(reference.ALL_K), st.integers(0, 999), st.data())
def test_direction_equals_python_integers_in_any_order_of_peers(order, k, seed, data):
    absent = data.draw(st.lists(st.sets(st.integers(0, 2)), min_size=4, max_size=4))
    payloads = [payload(seed + i, 3, k, absent[i]) for i in range(4)]
    path = known_answer.choose_path("cpu")
    expected = reference.direction(plain(payloads), 3)
    for chosen in (path, INTEGERS):
        found = apply.direction([payloads[i] for i in order], 3, chosen)
        assert found.dtype == torch.int8
        assert np.array_equal(found.numpy(), expected)


@pytest.mark.parametrize("tiles", [1, 127, 128, 129, 1030])
def test_both_arithmetics_agree_over_block_borders(path, tiles):
    payloads = [payload(i, tiles, 4, [0] if tiles > 1 else []) for i in range(3)]
    integers = apply.direction(payloads, tiles, INTEGERS)
    assert torch.equal(apply.direction(payloads, tiles, path).cpu(), integers)
    alone = [payload(i, tiles, 4, [0] if tiles > 1 else []) for i in range(3)]
    last = [plain([p])[0][-1:] for p in alone]
    assert np.array_equal(integers[-1:].numpy(), reference.direction(last, 1))


def test_sixty_four_agreeing_senders_move_as_one(path):
    one = payload(7, 5, 64)
    alone = apply.direction([one], 5, path)
    assert torch.equal(apply.direction([one] * 64, 5, path), alone)


def test_opposite_signs_cancel_to_zero(path):
    u = torch.randn(2, 64, 64, generator=torch.Generator().manual_seed(0))
    both = [decode(encode(select(s * u, 8)), 2, 8) for s in (1, -1)]
    assert not apply.direction(both, 2, path).any()


def test_no_payloads_give_no_direction(path):
    assert not apply.direction([], 3, path).any()


def test_a_payload_of_another_model_is_refused(path):
    with pytest.raises(TileShapeError, match="of 4 tiles"):
        apply.direction([payload(0, 3, 1)], 4, path)


SHAPES = {"w": (70, 65), "norm": (33,), "scale": (), "conv": (3, 5, 64)}


def model(device="cpu"):
    generator = torch.Generator().manual_seed(5)
    weights = {n: torch.randn(s, generator=generator) * 0.01 for n, s in SHAPES.items()}
    weights["w"][0, :4] = torch.tensor([0.0, -0.0, 1e-40, -1e-45])
    return {n: w.to(device) for n, w in weights.items()}


@pytest.mark.parametrize("decay", [1.0, A])
def test_step_equals_two_eager_roundings(path, decay):
    layout, weights = TileLayout.from_shapes(SHAPES), model(path.device)
    d = apply.direction([payload(3, layout.num_tiles, 16, [1])], layout.num_tiles, path)
    apply.step(weights, d, layout, decay, B, path)
    parts = layout.from_tiles(d.cpu())
    for name, before in model().items():
        expected = reference.step(before.numpy(), parts[name].numpy(), decay, B)
        assert weights[name].cpu().numpy().tobytes() == expected.tobytes()


def test_step_reaches_weights_that_live_elsewhere_and_leaf_parameters():
    layout = TileLayout.from_shapes({"w": (64, 64)})
    weight = torch.nn.Parameter(torch.zeros(64, 64))
    d = torch.ones(1, 64, 64, dtype=torch.int8)
    apply.step({"w": weight}, d, layout, 1.0, B, INTEGERS)
    assert torch.equal(weight, torch.full((64, 64), -B))


def test_strided_weights_are_stepped_in_place():
    layout, whole = TileLayout.from_shapes({"w": (64, 64)}), torch.zeros(64, 128)
    d = torch.ones(1, 64, 64, dtype=torch.int8)
    apply.step({"w": whole[:, ::2]}, d, layout, 1.0, B, INTEGERS)
    assert torch.equal(whole[:, ::2], torch.full((64, 64), -B))
    assert not whole[:, 1::2].any()


def test_a_lying_path_type_cannot_be_made():
    with pytest.raises(TypeError, match="choose_path"):
        known_answer.ApplyPath(torch.device("cpu"), torch.float64, seal=object())


@pytest.mark.parametrize(
    "constants",
    [(0.1, B), (1.0, 0.1), (0.0, B), (1.5, B), (1.0, -B), (1.0, float("inf"))],
)
def test_constants_that_are_not_fp32_change_nothing(constants):
    layout, weights = TileLayout.from_shapes(SHAPES), model()
    d = torch.ones(layout.num_tiles, 64, 64, dtype=torch.int8)
    with pytest.raises(InexactConstantError):
        apply.step(weights, d, layout, *constants, INTEGERS)
    assert all(torch.equal(w, weights[n]) for n, w in model().items())


def test_weights_of_another_shape_or_dtype_change_nothing():
    layout, weights = TileLayout.from_shapes(SHAPES), model()
    d = torch.ones(layout.num_tiles, 64, 64, dtype=torch.int8)
    with pytest.raises(TileShapeError):
        apply.step(weights, d[:-1], layout, A, B, INTEGERS)
    assert all(torch.equal(w, weights[n]) for n, w in model().items())
    half = {n: w.bfloat16() for n, w in weights.items()}
    with pytest.raises(TensorMismatchError):
        apply.step(half, d, layout, A, B, INTEGERS)


def test_update_of_an_empty_bitmap_changes_no_weight_not_even_by_decay():
    layout, weights = TileLayout.from_shapes(SHAPES), model()
    apply.update(weights, [], layout, (A, B), INTEGERS)
    assert all(torch.equal(w, weights[n]) for n, w in model().items())


def test_update_with_a_malformed_payload_decays_but_does_not_move():
    layout, weights = TileLayout.from_shapes(SHAPES), model()
    apply.update(weights, [None], layout, (A, B), INTEGERS)
    for name, before in model().items():
        expected = before.numpy() * np.float32(A)
        assert weights[name].numpy().tobytes() == expected.tobytes()


def test_update_is_direction_then_step():
    layout = TileLayout.from_shapes(SHAPES)
    payloads = [payload(i, layout.num_tiles, 8) for i in range(2)]
    one, two = model(), model()
    apply.update(one, [payloads[0], None, payloads[1]], layout, (A, B), INTEGERS)
    d = apply.direction(payloads, layout.num_tiles, INTEGERS)
    apply.step(two, d, layout, A, B, INTEGERS)
    assert all(torch.equal(one[n], two[n]) for n in SHAPES)


def test_fp32_numbers_are_recognised():
    assert is_fp32(A)
    assert is_fp32(1e-45 * 0 + 2**-149)
    assert not is_fp32(2.0**-150)
    assert not is_fp32(1 + 2.0**-24)
    assert not is_fp32(1e300)
