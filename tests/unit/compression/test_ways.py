"""Torch, numba and Triton refuse the same tensors; what they refuse leaves the state as it was."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support import reference
from support.kernels import CPU, HARD, RULE, A, B, bits, carried, path_with, payload, tensors

from troth_client.compression import apply, known_answer
from troth_client.compression.encoder import Encoder
from troth_client.compression.errors import (
    EmptyTensorError,
    NonFiniteError,
    TensorMismatchError,
    TileShapeError,
)
from troth_client.compression.kernels import choice
from troth_client.compression.kernels.choice import find_compiled, find_triton
from troth_client.compression.residual import Carried
from troth_client.compression.tiles import TileLayout
from troth_client.state.residual_state import ResidualState, Undo
from troth_coordinator.rules.ids import NONE

INTEGERS = known_answer.integer_path("tested")
WAYS = {"torch": lambda *_asked: (None, ""), "numba": find_compiled, "triton": find_triton}
LAYOUT = TileLayout.from_shapes({"w": (65, 3), "norm": (7,), "bias": ()})
K = 4


@pytest.fixture(scope="module", params=WAYS)
def kernels(request):
    # Not at import, which every test process does: Triton's interpreter takes seconds.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "wrong_hashes", lambda *_asked: "")  # test_gpu_kernels.py asks
        found, reason = WAYS[request.param](CPU, HARD[:6], (A, B))
    assert reason == ""
    assert (found is None) == (request.param == "torch")
    return found


def state_after_one_round(encoder):
    state = ResidualState(
        RULE, LAYOUT.num_tiles, Undo(2, K, lambda _round: None), known_answer.choose_path("cpu")
    )
    state.begin(NONE)
    first = state.offer(0, encoder.encode(tensors(LAYOUT, 1), state.momentum.carried))
    state.settle(0, first.root)
    return state


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", ["w", "norm", "bias"])
def test_a_gradient_that_is_not_finite_leaves_momentum_and_proposal(kernels, bad, name):
    encoder = Encoder(LAYOUT, RULE, K, kernels)
    state = state_after_one_round(encoder)
    before, gradient = state.momentum, tensors(LAYOUT, 2)
    kept = bits(before.carried.u)
    gradient[name].view(-1)[-1] = bad
    with pytest.raises(NonFiniteError, match="the first is tile"):
        encoder.encode(gradient, state.momentum.carried)
    assert state.momentum is before
    assert bits(state.momentum.carried.u) == kept
    assert state.proposal is None


def test_the_smallest_and_odd_shapes_are_encoded_and_stepped(kernels):
    encoder, path = Encoder(LAYOUT, RULE, K, kernels), path_with(kernels)
    found = encoder.encode(tensors(LAYOUT, 4), None)
    assert found.is_sent.all()
    assert found.top.indices.shape == (LAYOUT.num_tiles, K)
    assert bool((np.diff(found.top.indices, axis=1) > 0).all())
    weights = tensors(LAYOUT, 5)
    before = {name: weight.clone() for name, weight in weights.items()}
    apply.update(weights, [payload(6, LAYOUT.num_tiles, K)], LAYOUT, (1.0, B), path)
    moves = {float(m) for n in weights for m in (weights[n] - before[n]).abs().view(-1)}
    assert all(abs(move - B) < 1e-6 for move in moves)


@pytest.mark.parametrize("decay", [1.0, A])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_step_with_b_zero_leaves_the_same_zeros_by_every_way(kernels, decay, zero):
    """d = -1 makes +0.0 of -0.0. A learning rate that rounds to zero is part of a long warm-up."""
    sent = payload(8, LAYOUT.num_tiles, K)
    fields = (sent.signs.present, sent.signs.indices, sent.signs.negative)
    chosen = list(zip(*(field.tolist() for field in fields), strict=True))
    direction = torch.from_numpy(reference.direction([chosen], LAYOUT.num_tiles))
    parts = LAYOUT.from_tiles(direction)
    weights = {n: torch.full_like(w, zero) for n, w in tensors(LAYOUT, 1).items()}
    expected = {
        n: np.asarray(reference.step(w.numpy(), parts[n].numpy(), decay, 0.0)).view(np.int32)
        for n, w in weights.items()
    }
    integers = {name: weight.clone() for name, weight in weights.items()}
    apply.update(weights, [sent], LAYOUT, (decay, 0.0), path_with(kernels))
    apply.update(integers, [sent], LAYOUT, (decay, 0.0), INTEGERS)
    assert {-1, 0, 1} >= set(direction.view(-1).tolist()) >= {-1, 1}
    for name, known in expected.items():
        assert bits(weights[name]) == known.tolist()
        assert bits(integers[name]) == known.tolist()


def test_other_tensors_are_refused_and_nothing_is_stepped(kernels):
    encoder, path = Encoder(LAYOUT, RULE, K, kernels), path_with(kernels)
    good = tensors(LAYOUT, 7)
    included = [payload(1, LAYOUT.num_tiles, K)]
    for change, error in (
        ({"w": torch.ones(65, 4)}, TensorMismatchError),
        ({"w": torch.ones(0, 3)}, TensorMismatchError),
        ({"norm": torch.ones(7).bfloat16()}, TensorMismatchError),
        ({"extra": torch.ones(2)}, TensorMismatchError),
    ):
        with pytest.raises(error):
            encoder.encode(good | change, None)
        weights = {name: weight.clone() for name, weight in (good | change).items()}
        with pytest.raises(error):
            apply.update(weights, included, LAYOUT, (A, B), path)
        assert all(torch.equal(weights[name], (good | change)[name]) for name in weights)
    places = carried(torch.ones(LAYOUT.num_tiles, 64, 64), K).indices
    with pytest.raises(TileShapeError):
        encoder.encode(good, Carried(torch.ones(LAYOUT.num_tiles, 64, 63), places))


@pytest.mark.parametrize("num_tiles", [0, 1, LAYOUT.num_tiles - 1, LAYOUT.num_tiles + 1])
def test_a_momentum_of_another_model_is_refused_before_anything_is_read(kernels, num_tiles):
    """Compiled kernels check no index: behind a shorter one they would read what lies there."""
    encoder, wanted = Encoder(LAYOUT, RULE, K, kernels), LAYOUT.num_tiles
    before, right = (carried(torch.ones(n, 64, 64), K) for n in (num_tiles, wanted))
    for one in (before, replace(right, u=before.u), replace(right, indices=before.indices)):
        with pytest.raises(TileShapeError, match=f"a momentum of {wanted} tiles, and {K} places"):
            encoder.encode(tensors(LAYOUT, 1), one)


def test_a_model_with_an_empty_tensor_has_no_layout():
    with pytest.raises(EmptyTensorError, match="'w' of shape"):
        TileLayout.from_shapes({"w": (0, 64), "norm": (7,)})
