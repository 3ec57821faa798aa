"""A judge whose gradient lies on a device: the numbers of numpy, and little leaves the device."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.far_device import FAR, FarDevice, FarTensor
from support.judged_work import NUM_TILES, RULE, SIGMA, TARGET, trained
from support.trainers import BATCH, CONFIG, IDS, Trainer, honest_history, weights

from troth_attestation.errors import TensorError
from troth_attestation.measure import Own, Shown, measure, with_second
from troth_attestation.openings import decode
from troth_attestation.sizes import TILE_BYTES
from troth_attestation.sketch import SKETCH_BYTES, sketch
from troth_attestation.verdict import Reason, VerdictKind
from troth_attestation.work import yardstick_of
from troth_client.audit.device_gradient import TorchGradient, gradient_of
from troth_client.audit.witness import HonestWitnessWork
from troth_client.compression.dct import dct2
from troth_client.compression.errors import TileShapeError
from troth_client.compression.tiles import TileLayout
from troth_client.model.device import Device
from troth_coordinator.rules.config import JudgeSection

NEAR = 2.0**-40
"""How far sums in another order may lie apart."""
ALL_VOTES = replace(
    RULE,
    judge=JudgeSection(agreement_bound_micro=500_000, agreement_audits=2_995),
    tensor_tiles=(NUM_TILES,),
)
SCALE_BYTES = 2 * 8
"""A norm and a largest magnitude of each tile leave the device."""
SUM_BYTES = 2 * 64 * 8
SHAPES = {"cut": (3, 31, 65), "norm": (70,), "scalar": (), "turned": (100, 129), "wide": (64, 128)}
LAYOUT = TileLayout.from_shapes(SHAPES)


@pytest.fixture(scope="module")
def trainer():
    """A trainer with momentum: it has trained here, on the processor."""
    return honest_history(Trainer(), 6)


@pytest.fixture
def device():
    with FarDevice() as one:
        yield one


def far(tiles):
    """D(g) on the device, from an array."""
    return gradient_of(torch.from_numpy(tiles.reshape(-1, 64, 64)).to(FAR))


def odd_tensors(seed):
    """Tensors of every odd kind; the columns of one are far apart in memory."""
    draw = torch.Generator().manual_seed(seed)
    found = {name: torch.randn(shape, generator=draw) for name, shape in SHAPES.items()}
    return found | {"turned": found["turned"].T.contiguous().T}


def free_rider(_parts, before, _rng):
    return before.mean(axis=0)


def lazy(parts, _before, _rng):
    return parts[:6].mean(axis=0)


def numbers(found):
    """All measured numbers in one array; NaN where a number is not tested."""
    alone = [found.residual_ratio, found.median_error, found.counted_median]
    alone += [found.num_idle, found.num_surely_idle, found.has_gradient]
    alone.append(np.nan if found.agreement is None else found.agreement)
    return np.concatenate([alone, found.errors, found.counted, found.residual_ratios])


AGAIN = pytest.mark.long(reason="the same with other numbers")


@pytest.mark.parametrize("rule", [RULE, ALL_VOTES], ids=["drawn tiles", "all votes"])
@pytest.mark.parametrize("cheat", [None, free_rider, lazy])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=AGAIN) for seed in (2, 3))])
def test_a_judge_on_a_device_measures_and_finds_what_numpy_does(device, seed, cheat, rule):
    work = trained(seed, cheat)
    shown = Shown.of(decode(work.data, work.sampled), rule.demo)
    second = work.own * np.float32(1.001)
    here, there, here_again, there_again = (
        yardstick_of(Own(tiles), NUM_TILES)
        for tiles in (work.own, far(work.own), second, far(second))
    )
    found = [measure(shown, one, work.signs, rule) for one in (here, there)]
    assert (found[0].agreement is None) == (rule is RULE)
    assert np.allclose(*map(numbers, found), rtol=NEAR, atol=0, equal_nan=True)
    after = [
        with_second(one, shown, pair, work.signs, rule)
        for one, pair in zip(found, ((here, here_again), (there, there_again)), strict=True)
    ]
    assert np.allclose(*map(numbers, after), rtol=NEAR, atol=0, equal_nan=True)
    expected = work.judged(rule=rule, again=lambda: second)
    verdict = work.judged(rule=rule, gradient=far(work.own), again=lambda: far(second))
    assert verdict.kind == expected.kind
    assert verdict.reason == expected.reason
    assert verdict.num_bad_tiles == expected.num_bad_tiles


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_odd_tensors_give_the_same_tiles_scale_and_sketch(device, seed):
    tensors = odd_tensors(seed)
    there = gradient_of(dct2(LAYOUT.to_tiles({n: t.to(FAR) for n, t in tensors.items()})))
    here = gradient_of(dct2(LAYOUT.to_tiles(tensors)))
    assert isinstance(there, TorchGradient)
    assert there.shape == here.shape
    scale = yardstick_of(Own(here), LAYOUT.num_tiles).scale
    assert np.allclose(there.scale.norms, scale.norms, rtol=NEAR, atol=0)
    assert np.array_equal(there.scale.largest, scale.largest)
    assert there.scale.median == pytest.approx(scale.median, rel=NEAR)
    drawn = [LAYOUT.num_tiles - 1, 0, 3]
    assert np.array_equal(there.drawn(drawn), here[drawn].reshape(3, 4096))
    assert sketch(there, SIGMA, TARGET) == sketch(here, SIGMA, TARGET)


def test_a_sketch_of_several_chunks_is_that_of_numpy(device):
    tiles = np.random.default_rng(4).normal(size=(600, 4096)).astype(np.float32) / 1000
    device.left.clear()
    assert sketch(far(tiles), SIGMA, TARGET) == sketch(tiles, SIGMA, TARGET)
    assert device.left == [600 * SCALE_BYTES, SUM_BYTES]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_found_on_the_device(device, bad):
    tiles = np.ones((5, 64, 64), np.float32)
    tiles[3, 2, 1] = bad
    assert yardstick_of(Own(far(tiles)), 5) == Reason.OWN_NOT_FINITE
    for gradient in (tiles, far(tiles)):
        with pytest.raises(TensorError, match="finite coefficients"):
            sketch(gradient, SIGMA, TARGET)


def test_nothing_is_measured_by_zeros_or_by_another_model(device):
    zero = far(np.zeros((5, 64, 64), np.float32))
    assert yardstick_of(Own(zero), 5) == Reason.ZERO_GRADIENT
    with pytest.raises(TensorError):
        yardstick_of(Own(zero), 6)
    with pytest.raises(TileShapeError):
        gradient_of(torch.zeros(5, 4096).to(FAR))


@pytest.mark.parametrize("rule", [RULE, ALL_VOTES], ids=["drawn tiles", "all votes"])
def test_only_drawn_tiles_and_numbers_of_tiles_leave_the_device(device, rule):
    work = trained(1)
    gradient = far(work.own)
    assert work.judged(gradient=gradient, rule=rule).kind == VerdictKind.OK
    sketch(gradient, SIGMA, TARGET)
    scores = [] if rule is RULE else [NUM_TILES * 8]
    drawn = len(work.sampled.tiles) * TILE_BYTES
    assert device.left == [NUM_TILES * SCALE_BYTES, drawn, *scores, SUM_BYTES]


def test_the_work_of_a_witness_leaves_its_gradient_on_its_device(trainer, device):
    """From weights to verdict and sketch: beside what a judge needs, only norms and a loss."""
    work = HonestWitnessWork(CONFIG, Device(FAR, is_mixed=False))
    given = {name: torch.from_numpy(array) for name, array in weights().items()}
    own = work.gradient(given, BATCH)
    assert isinstance(own, TorchGradient)
    num_tiles, _, _ = own.shape
    assert device.left == [4 * len(given), 4, num_tiles * SCALE_BYTES]
    device.left.clear()
    evidence = trainer.round(6, torch.from_numpy(held(own)), IDS)
    verdict = work.judge(evidence, Own(own))
    assert verdict.kind == VerdictKind.OK
    proof = work.sketch(own, SIGMA, TARGET)
    assert device.left == [CONFIG.judge.openings_tiles * TILE_BYTES, SUM_BYTES]
    expected = work.judge(evidence, Own(held(own)))
    assert verdict.kind == expected.kind
    assert verdict.reason == expected.reason
    assert verdict.residual_ratio == pytest.approx(expected.residual_ratio, rel=NEAR)
    assert proof == work.sketch(held(own), SIGMA, TARGET)
    assert len(proof) * 4 == SKETCH_BYTES


def held(gradient):
    """The values of D(g), which nobody but a test can read."""
    return gradient.rows.held.numpy().reshape(gradient.shape)


def test_a_copy_of_the_whole_gradient_would_be_noticed(device):
    tiles = torch.zeros(7, 64, 64).to(FAR)
    with pytest.raises(RuntimeError, match="numpy"):
        tiles.numpy()
    assert device.left == []
    assert torch.equal(tiles.cpu(), torch.zeros(7, 64, 64))
    torch.empty(7, 64, 64).copy_(tiles)
    assert float(tiles.sum()) == 0
    assert device.left == [7 * TILE_BYTES, 7 * TILE_BYTES, 4]
    with pytest.raises(RuntimeError, match="of the device and of the processor"):
        tiles + torch.zeros(64)


def test_a_device_without_fp64_hands_its_gradient_to_numpy(device):
    class OnMps(FarTensor):
        name = torch.device("mps")

    tiles = torch.randn(3, 64, 64)
    assert np.array_equal(gradient_of(OnMps(tiles)), tiles.numpy())
    assert device.left == [3 * TILE_BYTES]


def test_on_a_processor_a_gradient_is_an_array_without_a_copy():
    tiles = torch.randn(3, 64, 64)
    assert np.shares_memory(gradient_of(tiles), tiles.numpy())
