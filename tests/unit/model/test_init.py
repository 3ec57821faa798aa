"""First weights: the same bits as the protocol's reference, drawn quickly."""

import hashlib
import time

import numpy as np
import pytest

from troth_client.model.init import initial_tensor, initial_weights
from troth_client.model.shapes import trainable_shapes
from troth_coordinator.rules.config import ModelSection
from troth_coordinator.rules.exact import initial_values

RUN = bytes(range(32))

# SHA-256 of the fp32 bytes that shared/prototypes/demo_reference.py gives for run 00 01 .. 1f.
REFERENCE = [
    (
        "lm_head.weight",
        (300, 50),
        20_000_000,
        "ca57e16e38dc63acbaa6af5a20f0dd1bd67bbff53f6146020c00669584b214fa",
    ),
    (
        "model.layers.0.mlp.up_proj.weight",
        (7, 3),
        123_456_789,
        "4fbdc4f60f6542986fc721ea5fd5b2fc12ec7cc7dab3e4a4c589c069987b4f16",
    ),
]


@pytest.mark.parametrize(("name", "shape", "std_nano", "sha256"), REFERENCE)
def test_equals_the_reference(name, shape, std_nano, sha256):
    found = initial_tensor(RUN, name, shape, std_nano)
    assert found.shape == shape
    assert found.dtype == np.float32
    assert hashlib.sha256(found.tobytes()).hexdigest() == sha256


@pytest.mark.parametrize("size", [1, 7, 8, 9, 65])
def test_equals_the_rules_definition(size):
    expected = list(initial_values(RUN, "x", size, 77_777_777))
    assert initial_tensor(RUN, "x", (size,), 77_777_777).tolist() == expected


def test_blocks_do_not_change_the_values(monkeypatch):
    whole = initial_tensor(RUN, "x", (40, 5), 20_000_000)
    monkeypatch.setattr("troth_client.model.init._DIGESTS_PER_BLOCK", 3)
    assert initial_tensor(RUN, "x", (40, 5), 20_000_000).tobytes() == whole.tobytes()


def test_norms_are_ones_and_matrices_have_the_standard_deviation():
    config = ModelSection(init_std_nano=40_000_000)
    weights = initial_weights(RUN, config)
    assert {n: w.shape for n, w in weights.items()} == trainable_shapes(config)
    for name, w in weights.items():
        if w.ndim == 1:
            assert (w == 1).all(), name
        else:
            assert abs(float(w.std()) - 0.04) < 0.001, name
            assert np.abs(w).max() <= 0.04 * 3**0.5 * 1.000001


def test_runs_and_names_draw_differently():
    config = ModelSection()
    weights = initial_weights(RUN, config)
    other = initial_weights(bytes(32), config)
    matrices = [n for n, w in weights.items() if w.ndim == 2]
    firsts = {weights[n].reshape(-1)[:8].tobytes() for n in matrices}
    assert len(firsts) == len(matrices)
    assert not any(np.array_equal(weights[n], other[n]) for n in matrices)


def test_a_million_parameters_take_well_under_a_second():
    started = time.process_time()
    initial_tensor(RUN, "x", (1000, 1000), 20_000_000)
    assert time.process_time() - started < 0.7


def test_a_run_address_has_32_bytes():
    with pytest.raises(ValueError, match="32 bytes; found 5"):
        initial_weights(b"short", ModelSection())
