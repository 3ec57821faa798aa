"""The GPU's kernels give the bits of torch.

They are interpreted by numpy, and compiled for a GPU where `make gpu` runs these tests.
"""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernels import (
    HARD,
    KS,
    RULE,
    SHAPES,
    A,
    B,
    deaf_to_signs_of_zeros,
    encoding_is_that_of_torch,
    greedy,
    hashed_here,
    moved,
    one_bit_off,
    path_with,
    step_is_that_of_torch,
    tensors,
    too_many_signs_go_through_torch,
    values_that_are_not_finite_are_refused,
)

from troth_attestation.pieces import CHUNK_BYTES
from troth_attestation.sizes import TILE_BYTES
from troth_client.compression.basis import float_basis, integer_basis
from troth_client.compression.encoder import Encoder
from troth_client.compression.errors import NonFiniteError
from troth_client.compression.kernels import choice, gpu_apply, gpu_leaves
from troth_client.compression.kernels.base import MAX_ERROR
from troth_client.compression.kernels.check import wrong_answer, wrong_hashes
from troth_client.compression.tiles import TileLayout

pytestmark = pytest.mark.cuda
IS_INTERPRETED = os.environ["TRITON_INTERPRET"] == "1"
DEVICE = torch.device("cpu" if IS_INTERPRETED else "cuda")


@pytest.fixture(scope="module")
def kernels():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "wrong_hashes", lambda *_asked: "")  # has a test of its own
        found, reason = choice.find_triton(DEVICE, HARD[:6], (A, B))
    assert reason == ""
    assert found is not None
    return found


@pytest.fixture(scope="module")
def path(kernels):
    return path_with(kernels, DEVICE)


def test_the_kernels_are_those_of_the_device(kernels):
    assert kernels.device_type == DEVICE.type


@settings(max_examples=4, deadline=None)
@given(SHAPES, KS, st.data())
def test_weights_after_a_step_are_those_of_torch(path, shapes, k, data):
    step_is_that_of_torch(path, shapes, k, data)


@settings(max_examples=4, deadline=None)
@given(SHAPES, KS, st.data())
def test_encode_gives_the_bits_of_torch_for_the_same_coefficients(path, shapes, k, data):
    encoding_is_that_of_torch(path, shapes, k, data)


def test_the_transform_is_within_the_stated_error_of_the_exact_one(kernels):
    layout = TileLayout.from_shapes({"w": (256, 64)})
    gradient = tensors(layout, 3)
    gradient["w"][:64] *= 1e-20
    gradient["w"][64:128, 3] *= 1e6
    gradient["w"][128:192] = 0.1
    tiles, basis = layout.to_tiles(gradient), torch.from_numpy(float_basis())
    exact = basis @ tiles.double() @ basis.T
    unit = 2.0**-24 * tiles.double().flatten(1).norm(dim=1)
    found = Encoder(layout, RULE, 8, kernels).encode(moved(gradient, DEVICE), None)
    worst = (found.u.cpu().double() - exact).abs().flatten(1).amax(1)
    assert bool((worst <= MAX_ERROR * unit).all())


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_values_that_are_not_finite_are_refused(kernels, bad):
    values_that_are_not_finite_are_refused(kernels, bad, DEVICE)


def test_two_halves_make_up_the_basis():
    high, low = gpu_apply.halves(integer_basis())
    assert np.array_equal(
        high.astype(np.int64) * gpu_apply.BASE + low, integer_basis().astype(np.int64)
    )
    assert int(np.abs(high.astype(np.int64)).max()) <= 46
    assert int(np.abs(low.astype(np.int64)).max()) <= 32


def test_three_digits_hold_all_sums_of_the_most_signs_and_not_of_twice_as_many():
    largest, holds = int(np.abs(integer_basis()).max()), 127 * (2**16 + 2**8 + 1)
    assert largest * gpu_apply.MAX_FIELDS <= holds < largest * 2 * gpu_apply.MAX_FIELDS


def test_more_signs_than_the_digits_hold_go_through_torch(kernels, path):
    assert kernels.max_fields == gpu_apply.MAX_FIELDS
    too_many_signs_go_through_torch(path)


def unfinished(way):
    def broken(*arguments):
        raise NonFiniteError("finite values", "garbage", "")

    return broken


UNFINISHED = pytest.mark.long(reason="another broken choice; numpy interprets the kernels slowly")


@pytest.mark.parametrize(
    ("part", "breaks", "cause"),
    [
        ("update", one_bit_off, "other weights in 'cut'"),
        ("update", deaf_to_signs_of_zeros, "other weights in 'cut' after a step with b = 0.0"),
        ("encode", greedy, "another choice"),
        pytest.param("encode", unfinished, "a choice that fails", marks=UNFINISHED),
    ],
)
def test_broken_kernels_are_found_out(kernels, part, breaks, cause):
    broken = replace(kernels, **{part: breaks(getattr(kernels, part))})
    assert cause in wrong_answer(broken, HARD[:6], (A, B), DEVICE)


SLOW = pytest.mark.long(reason="numpy takes four seconds for each 128 KiB that it hashes")


@SLOW
def test_leaf_hashes_are_those_of_the_host():
    """More than one program, a second tensor, ends: what the start of a participant asks."""
    assert wrong_hashes(gpu_leaves.leaf_hashes, DEVICE) == ""


@pytest.mark.parametrize(
    ("leaf_bytes", "sizes"),
    [
        pytest.param(TILE_BYTES, (1, 4095), id="short"),
        pytest.param(CHUNK_BYTES, (4096 * 33 + 7, 5, 4096 * 16), id="many", marks=SLOW),
    ],
)
def test_leaf_hashes_of_other_sizes_are_those_of_the_host(leaf_bytes, sizes):
    draw = torch.Generator().manual_seed(1)
    given = [torch.randn(size, generator=draw) for size in sizes]
    found = gpu_leaves.leaf_hashes([one.to(DEVICE) for one in given], leaf_bytes)
    assert found == hashed_here(given, leaf_bytes)


@SLOW
def test_leaves_are_hashed_in_groups_of_a_bounded_size(monkeypatch):
    given = [torch.randn(size) for size in (4096 * 5 + 3, 4096 * 2, 4096)]
    expected, sizes = hashed_here(given, TILE_BYTES), []
    real = gpu_leaves._empty
    monkeypatch.setattr(gpu_leaves, "GROUP_WORDS", 4096 * 3)
    monkeypatch.setattr(gpu_leaves, "_empty", lambda *a: sizes.append(a[0]) or real(*a))
    assert gpu_leaves.leaf_hashes([one.to(DEVICE) for one in given], TILE_BYTES) == expected
    assert max(sizes) == 3 * 16


@SLOW
@pytest.mark.parametrize("given", [torch.randn(64, 128).T, torch.randn(8192)[::2]])
def test_leaves_of_a_tensor_that_is_not_contiguous_are_those_of_its_values(given):
    there = given.to(DEVICE)
    assert gpu_leaves.leaf_hashes([there], TILE_BYTES) == hashed_here([given], TILE_BYTES)


def test_wrong_leaf_hashes_leave_the_host_and_a_note(monkeypatch):
    def one_off(tensors, leaf_bytes):
        return hashed_here([one.cpu() for one in tensors], leaf_bytes)[::-1]

    monkeypatch.setattr(choice, "wrong_answer", lambda *_asked: "")
    monkeypatch.setattr(gpu_leaves, "leaf_hashes", one_off)
    found, note = choice.find_triton(DEVICE, HARD[:6], (A, B))
    assert found is not None
    assert found.leaf_hashes is None
    assert (
        note == "the processor hashes weights and momentum: other hashes of leaves of 16384 bytes"
    )


def test_leaf_hashes_that_do_not_compile_leave_the_host_and_a_note(monkeypatch):
    errors = pytest.importorskip("triton.compiler.errors")

    def refused(*_asked):
        raise errors.CompilationError(None, None, "no such operation")

    monkeypatch.setattr(choice, "wrong_answer", lambda *_asked: "")
    monkeypatch.setattr(gpu_leaves, "leaf_hashes", refused)
    found, note = choice.find_triton(DEVICE, HARD[:6], (A, B))
    assert found is not None
    assert found.leaf_hashes is None
    assert "no such operation" in note


def test_without_triton_torch_does_it_and_the_note_says_why(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton.errors", None)
    kernels, note = choice.find_triton(DEVICE, HARD[:6], (A, B))
    assert kernels is None
    assert "triton" in note


@pytest.mark.parametrize("find", [choice.find_triton, choice.find_compiled])
def test_compiled_code_that_cannot_be_loaded_leaves_torch_and_a_note(find, monkeypatch):
    """A library in Triton's cache that was cut off, or a cache where nothing may be executed."""

    def cut_off(*_asked):
        raise ImportError("launcher.so: file too short")

    monkeypatch.setattr(choice, "wrong_answer", cut_off)
    kernels, note = find(DEVICE, HARD[:6], (A, B))
    assert kernels is None
    assert "remove the cache" in note
    assert "file too short" in note


ASKING = """
import torch
from troth_client.compression.kernels import choice
print(*choice.find_triton(torch.device("cpu"), torch.ones(3), (1.0, 0.5)))
"""


@pytest.mark.long(reason="a process of its own imports torch and triton")
def test_a_device_that_triton_cannot_compile_for_leaves_torch_and_a_note():
    run = subprocess.run(
        [sys.executable, "-c", ASKING],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TRITON_INTERPRET": "0"},
    )
    assert run.stdout.startswith("None "), run.stderr
    assert "Error: " in run.stdout
