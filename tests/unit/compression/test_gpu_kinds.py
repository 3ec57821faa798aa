"""A start compiles all that its rounds launch: Triton compiles a kernel for each kind of integers.

The integers are those of real launches, and Triton itself says of which kind they are. Nothing is
compiled or run: the processor's kernels answer.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from support.kernels import CPU, HARD, RULE, A, B, hashed_here
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend
from triton.runtime.jit import JITFunction, create_function_from_signature

from troth_attestation.signs import Signs
from troth_attestation.sizes import TILE_BYTES
from troth_client.compression.kernels import gpu_apply, gpu_encode, gpu_leaves, gpu_run, run
from troth_client.compression.kernels.base import MOST_K, Kernels
from troth_client.compression.kernels.check import wrong_answer, wrong_hashes
from troth_client.compression.residual import Carried
from troth_client.compression.tiles import TileLayout
from troth_client.model.shapes import trainable_shapes
from troth_coordinator.config_files import load_config

pytestmark = pytest.mark.cuda
NOWHERE = torch.device("meta")
"""Tensors with shapes and strides, and without values."""
PRESETS = sorted(path.stem for path in (Path(__file__).parents[3] / "configs").glob("*.toml"))
ENTRIES = (
    (gpu_encode, "encode_tiles"),
    (gpu_apply, "apply_tiles"),
    (gpu_leaves, "hash_chunks"),
    (gpu_leaves, "hash_pairs"),
)


class Launches:
    """An entry that only notes for which kinds of arguments Triton would compile it."""

    def __init__(self, entry, kinds):
        made = JITFunction(entry.fn)
        backend = make_backend(GPUTarget("cuda", 90, 32))
        self.bound = create_function_from_signature(made.signature, made.params, backend)
        self.name, self.kinds = entry.fn.__name__, kinds

    def __getitem__(self, programs):
        def launch(*arguments, **options):
            self.kinds.add((self.name, repr(self.bound(*arguments, **options)[1])))

        return launch


@pytest.fixture
def kinds(monkeypatch):
    found = set()
    for module, name in ENTRIES:
        monkeypatch.setattr(module, name, Launches(getattr(module, name), found))
    return found


def there(tensors):
    return {name: tensor.to(NOWHERE) for name, tensor in tensors.items()}


def encode(gradient, carried, layout, rule, k, into):
    """Launch the GPU's kernels on tensors without values; the processor's return the answer."""
    held = None if carried is None else Carried(carried.u.to(NOWHERE), carried.indices)
    room = None if into is None else into.to(NOWHERE)
    with pytest.raises(NotImplementedError):  # for what is copied back, after the last launch
        gpu_run.encode_layout(there(gradient), held, layout, rule, k, room)
    return run.encode_layout(gradient, carried, layout, rule, k, into)


def update(weights, payloads, layout, constants):
    gpu_run.update_layout(there(weights), payloads, layout, constants)
    run.update_layout(weights, payloads, layout, constants)


def leaf_hashes(tensors, leaf_bytes):
    with pytest.raises(NotImplementedError):
        gpu_leaves.leaf_hashes([one.to(NOWHERE) for one in tensors], leaf_bytes)
    return hashed_here(tensors, leaf_bytes)


def ask(k):
    """Ask what the start of a participant asks."""
    kernels = Kernels(encode, update, max_fields=gpu_apply.MAX_FIELDS, asked_k=(MOST_K, k))
    assert wrong_answer(kernels, HARD[:6], (A, B), CPU) == ""
    assert wrong_hashes(leaf_hashes, CPU) == ""


def play(layout, k):
    """Launch what rounds of a run launch: with and without a momentum, with few and many signs."""
    tensors = {name: torch.empty(shape, device=NOWHERE) for name, shape in layout.shapes.items()}
    u = torch.empty(layout.num_tiles, 64, 64, device=NOWHERE)
    places = np.zeros((layout.num_tiles, k), np.int16)
    for carried in (None, Carried(u, places)):
        with pytest.raises(NotImplementedError):
            gpu_run.encode_layout(tensors, carried, layout, RULE, k, None)
    signs = Signs(np.ones(layout.num_tiles, np.bool_), places, places.astype(np.bool_))
    for number in (1, 2, 7, 8):
        gpu_run.update_layout(tensors, [signs] * number, layout, (A, B))
    with pytest.raises(NotImplementedError):
        gpu_leaves.leaf_hashes([u], TILE_BYTES)


def layout_of(preset):
    config = load_config([Path(__file__).parents[3] / "configs" / f"{preset}.toml"]).config
    return TileLayout.from_shapes(trainable_shapes(config.model)), config.demo.k


@pytest.mark.parametrize("preset", PRESETS)
def test_a_start_compiles_all_that_the_rounds_of_a_preset_launch(kinds, preset):
    layout, k = layout_of(preset)
    ask(k)
    asked = set(kinds)
    kinds.clear()
    play(layout, k)
    assert {name for name, _ in kinds} == {name for _, name in ENTRIES}
    assert kinds - asked == set()


def test_the_numbers_of_rows_tiles_and_payloads_make_no_kind(kinds):
    """One, a multiple of sixteen, and neither: of columns alone the kind matters."""
    for rows, columns in ((1, 64), (15, 64), (16, 64), (64 * 16, 64), (64 * 17, 64), (70, 128)):
        play(TileLayout.from_shapes({"a": (rows, columns), "b": (rows, columns)}), 8)
    count = {name: sum(name == other for other, _ in kinds) for _, name in ENTRIES}
    assert count == {"encode_tiles": 2, "apply_tiles": 1, "hash_chunks": 1, "hash_pairs": 2}
