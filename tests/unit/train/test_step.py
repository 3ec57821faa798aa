"""The gradient of a payload: right, repeatable, clipped, and never anything but finite."""

import contextlib
import os
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from support.gradient_bits import lines
from torch.nn import functional

from troth_client.compression.host import HostArrays
from troth_client.model.device import CPU, Device, choose_device, in_precision, precisions_of
from troth_client.model.init import initial_weights
from troth_client.model.shapes import HEAD, trainable_shapes
from troth_client.model.weights import build, trainable_parameters, weight_views
from troth_client.train.errors import BatchShapeError, NonFiniteGradientError
from troth_client.train.evaluate import evaluate
from troth_client.train.passes import differentiated, eager_pass, summed_loss
from troth_client.train.step import gradient, micro_nats, norm_of
from troth_coordinator.rules.config import ModelSection

SMALL = ModelSection(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=24,
    init_std_nano=100_000_000,
    tie_word_embeddings=False,
)
NO_CLIP = 1_000_000_000


@pytest.fixture(params=[False, True], ids=["untied", "tied"])
def model(request):
    config = SMALL.model_copy(update={"tie_word_embeddings": request.param})
    return build(config, initial_weights(bytes(32), config))


@pytest.fixture
def batch():
    return np.random.default_rng(1).integers(0, 64, (6, 25))


def norm(tensors):
    return float(torch.sqrt(sum(t.double().square().sum() for t in tensors.values())))


def test_it_is_the_gradient_of_the_mean_loss(model, batch):
    found = gradient(model, batch, 6, NO_CLIP)
    tokens = torch.from_numpy(batch)
    loss = functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    assert list(found.tensors) == list(trainable_shapes(model.config))
    for name, parameter in trainable_parameters(model).items():
        torch.testing.assert_close(found.tensors[name], parameter.grad, rtol=1e-4, atol=1e-7)
    assert found.mean_loss_micro == pytest.approx(float(loss.detach()) * 1e6, abs=2)
    assert found.norm == pytest.approx(norm(found.tensors), rel=1e-5)


def test_microbatches_sum_to_the_whole_batch(model, batch):
    whole = gradient(model, batch, 6, NO_CLIP)
    for size in (1, 2, 4):
        parts = gradient(model, batch, size, NO_CLIP)
        assert abs(parts.mean_loss_micro - whole.mean_loss_micro) <= 2
        for name, tensor in whole.tensors.items():
            torch.testing.assert_close(parts.tensors[name], tensor, rtol=1e-3, atol=1e-6)


def test_the_gradients_of_a_microbatch_are_gone_before_the_next_one(model, batch):
    before = []

    def watched(*given):
        assert [one() for one in before] == [None] * len(before)
        found = eager_pass(*given)
        before[:] = [weakref.ref(tensor) for tensor in found.gradients]
        return found

    gradient(model, batch, 2, NO_CLIP, one_pass=watched)
    assert len(before) == len(trainable_shapes(model.config))


def test_the_model_is_left_alone(model, batch):
    before = {name: array.copy() for name, array in HostArrays(weight_views(model)).items()}
    gradient(model, batch, 2, NO_CLIP)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(
        a.tobytes() == before[n].tobytes() for n, a in HostArrays(weight_views(model)).items()
    )


def test_the_clip_scales_everything_by_one_factor(model, batch):
    free = gradient(model, batch, 3, NO_CLIP)
    limit = free.norm / 4
    clipped = gradient(model, batch, 3, round(limit * 1e6))
    assert clipped.norm == free.norm
    assert norm(clipped.tensors) == pytest.approx(limit, rel=1e-4)
    for name, tensor in free.tensors.items():
        torch.testing.assert_close(clipped.tensors[name] * 4, tensor, rtol=1e-4, atol=1e-9)


def test_a_small_gradient_is_not_scaled(model, batch):
    free = gradient(model, batch, 3, NO_CLIP)
    loose = gradient(model, batch, 3, round(free.norm * 1.01e6))
    assert all(torch.equal(loose.tensors[name], t) for name, t in free.tensors.items())


def test_the_same_bits_in_every_process_and_every_time():
    tests = os.fspath(Path(__file__).parents[2])
    command = [sys.executable, "-m", "support.gradient_bits"]
    other = subprocess.run(command, cwd=tests, capture_output=True, text=True, check=True)
    told = lines() + other.stdout.splitlines()
    assert len(told) == 4
    assert len(set(told)) == 1


def test_a_few_steps_lower_the_loss(model, batch):
    before = evaluate(model, batch)
    for _ in range(5):
        found = gradient(model, batch, 3, 1_000_000)
        for name, view in weight_views(model).items():
            view.sub_(0.01 * found.tensors[name].sign())
    assert evaluate(model, batch) < before - 300_000


def test_evaluate_is_the_mean_loss_whatever_the_microbatch(model, batch):
    expected = gradient(model, batch, 6, NO_CLIP).mean_loss_micro
    assert all(abs(evaluate(model, batch, size) - expected) <= 2 for size in (1, 4, 6, 50))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros((0, 25), np.int64), "int64 tokens"),
        (np.zeros((2, 1), np.int64), "int64 tokens"),
        (np.zeros((2, 26), np.int64), r"2\.\.25"),
        (np.zeros((2, 3, 4), np.int64), "int64 tokens"),
        (np.zeros((2, 25), np.int32), "int32"),
        (np.full((2, 25), 64, np.int64), r"0\.\.63"),
        (np.full((2, 25), -1, np.int64), r"0\.\.63"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused(model, bad, message):
    with pytest.raises(BatchShapeError, match=message):
        gradient(model, bad, 2, NO_CLIP)
    with pytest.raises(BatchShapeError, match=message):
        evaluate(model, bad)


def test_nothing_that_is_not_finite_comes_out(model, batch):
    weight_views(model)[HEAD][5, 3] = float("nan")
    with pytest.raises(NonFiniteGradientError, match="finite"):
        gradient(model, batch, 2, NO_CLIP)
    with pytest.raises(NonFiniteGradientError, match="loss"):
        evaluate(model, batch)
    weight_views(model)[HEAD][5, 3] = float("inf")
    with pytest.raises(NonFiniteGradientError):
        gradient(model, batch, 2, NO_CLIP)


def test_a_loss_that_no_header_holds_is_refused():
    """Its field is an i64."""
    assert micro_nats(torch.tensor(2.0**43)) == 2**43 * 10**6
    for loss in (1e13, 2e13):
        with pytest.raises(NonFiniteGradientError, match="loss"):
            micro_nats(torch.tensor(loss))


def test_the_norm_of_a_large_gradient_loses_nothing():
    """Squares summed in fp32 would lose half a per cent here, and a GPU would clip another way."""
    dense = torch.randn(2**26, generator=torch.Generator().manual_seed(1))
    exact = float(torch.linalg.vector_norm(dense, dtype=torch.float64))
    assert norm_of([dense[:3], dense]) == pytest.approx(exact, rel=1e-4)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_cuda_agrees_within_bf16_and_keeps_fp32_masters(batch):
    device = choose_device("cuda")
    weights = initial_weights(bytes(32), SMALL)
    exact = gradient(build(SMALL, weights), batch, 3, NO_CLIP)
    found = gradient(build(SMALL, weights, device.torch), batch, 3, NO_CLIP, device)
    for name, tensor in exact.tensors.items():
        assert found.tensors[name].dtype == torch.float32
        error = (found.tensors[name].cpu() - tensor).norm() / tensor.norm()
        assert error < 0.05, name


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_tf32_is_another_gradient_than_fp32_and_a_near_one(batch):
    card = torch.device("cuda")
    if "tf32" not in precisions_of(card):
        pytest.skip("a card without tf32")
    weights = initial_weights(bytes(32), SMALL)
    model = build(SMALL, weights, card)
    exact = gradient(build(SMALL, weights), batch, 3, NO_CLIP)
    error = {}
    for precision in ("fp32", "tf32"):
        found = gradient(model, batch, 3, NO_CLIP, in_precision(card, precision))
        pairs = [(found.tensors[name].cpu(), one) for name, one in exact.tensors.items()]
        error[precision] = max(float((a - b).norm() / b.norm()) for a, b in pairs)
    assert error["fp32"] < 1e-4
    assert error["fp32"] < error["tf32"] < 0.02


@pytest.fixture
def inside(monkeypatch):
    """Whether products are those of the device."""
    state = [False]

    @contextlib.contextmanager
    def products(_device):
        state[0] = True
        yield
        state[0] = False

    monkeypatch.setattr(Device, "products", products)
    return state


def test_a_whole_pass_is_computed_in_the_precision_of_its_device(batch, inside):
    seen = []

    def loss_of(model, tokens):
        seen.append(inside[0])
        loss = summed_loss(model, tokens)
        loss.register_hook(lambda _gradient: seen.append(inside[0]))
        return loss

    model = build(SMALL, initial_weights(bytes(32), SMALL))
    differentiated(loss_of, model, (torch.from_numpy(batch), 1), CPU)
    assert seen == [True, True]
    assert not inside[0]


def test_a_validation_is_computed_in_the_precision_of_its_device(batch, inside):
    """The environment may allow tf32."""
    seen = []
    model = build(SMALL, initial_weights(bytes(32), SMALL))
    model.register_forward_hook(lambda *_about: seen.append(inside[0]))
    evaluate(model, batch, len(batch))
    assert seen == [True]
