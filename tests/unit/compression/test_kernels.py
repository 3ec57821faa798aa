"""Compiled kernels give the bits of torch: any shape, memory layout, tie, number of threads."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernels import (
    CPU,
    HARD,
    KS,
    RULE,
    SHAPES,
    TORCH,
    A,
    B,
    bits,
    carried,
    deaf_to_signs_of_zeros,
    encoding_is_that_of_torch,
    greedy,
    one_bit_off,
    payload,
    same,
    step_is_that_of_torch,
    tensors,
    too_many_signs_go_through_torch,
    values_that_are_not_finite_are_refused,
)

from troth_attestation.signs import Signs
from troth_client.compression import apply, known_answer
from troth_client.compression.basis import float_basis
from troth_client.compression.codec import decode, encode
from troth_client.compression.dct import dct2
from troth_client.compression.encoder import Encoder
from troth_client.compression.errors import (
    InexactConstantError,
    TensorMismatchError,
    TileShapeError,
    UnsupportedKError,
)
from troth_client.compression.kernels import choice, run, saved
from troth_client.compression.kernels.base import MAX_ERROR
from troth_client.compression.kernels.check import wrong_answer
from troth_client.compression.tiles import TileLayout


@cache
def compiled():
    """The path with kernels. Not made at import: each test process imports every test."""
    return known_answer.choose_path("cpu", num_tiles=known_answer.COMPILED_FROM_TILES)


@pytest.fixture
def kernels(request):
    return compiled().kernels if request.param == "compiled" else None


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_there_are_kernels_here():
    assert compiled().note == ""
    assert compiled().kernels is not None
    assert TORCH.kernels is None


def test_the_encoder_of_a_path_has_its_kernels_and_its_device():
    layout = TileLayout.from_shapes({"w": (64, 64)})
    expected = Encoder(layout, RULE, 32, compiled().kernels, CPU)
    assert compiled().encoder(layout, RULE, 32) == expected
    assert TORCH.encoder(layout, RULE, 32) == replace(expected, kernels=None)


@settings(max_examples=20, deadline=None)
@given(SHAPES, KS, st.data())
def test_weights_after_a_step_are_those_of_torch(shapes, k, data):
    step_is_that_of_torch(compiled(), shapes, k, data)


def test_signs_that_cancel_or_agree_move_as_in_torch():
    layout = TileLayout.from_shapes({"w": (64, 128)})
    k = 64
    rows, columns = np.triu_indices(64, 1)
    there, back = rows * 64 + columns, columns * 64 + rows
    made = []
    for first in range(0, 31 * k, k):
        for places, negative in ((there, False), (back, True)):
            ascending = np.sort(places[first : first + k]).astype(np.int16)
            indices = np.stack([ascending, np.arange(k, dtype=np.int16)])
            signs = Signs(np.ones(2, bool), indices, np.full((2, k), negative))
            made.append(decode(encode(signs), 2, k))
    one, other = ({"w": torch.zeros(64, 128)} for _ in range(2))
    apply.update(one, made, layout, (1.0, B), TORCH)
    apply.update(other, made, layout, (1.0, B), compiled())
    assert not one["w"].diagonal().any()
    assert one["w"].any()
    assert bits(one["w"]) == bits(other["w"])


def test_more_signs_than_fp32_holds_go_through_torch():
    assert compiled().kernels.max_fields == 64 * 64
    too_many_signs_go_through_torch(compiled())


def test_bad_arguments_of_a_step_change_nothing():
    layout = TileLayout.from_shapes({"w": (64, 70)})
    good = [payload(1, 2, 4)]
    for weights, included, constants, error in (
        ({"w": torch.ones(64, 70)}, good, (0.1, B), InexactConstantError),
        ({"w": torch.ones(64, 70)}, [payload(1, 3, 4)], (A, B), TileShapeError),
        ({"w": torch.ones(64, 71)}, good, (A, B), TensorMismatchError),
        ({"v": torch.ones(64, 70)}, good, (A, B), TensorMismatchError),
        ({"w": torch.ones(64, 70).bfloat16()}, good, (A, B), TensorMismatchError),
    ):
        with pytest.raises(error):
            apply.update(weights, included, layout, constants, compiled())
        assert all(bool((w == 1).all()) for w in weights.values())


def test_leaf_parameters_are_stepped():
    layout = TileLayout.from_shapes({"w": (3, 5), "norm": (7,)})
    one = {n: torch.nn.Parameter(w) for n, w in tensors(layout, 1).items()}
    other = {n: torch.nn.Parameter(w) for n, w in tensors(layout, 1).items()}
    for weights, path in ((one, TORCH), (other, compiled())):
        apply.update(weights, [payload(1, layout.num_tiles, 4)], layout, (A, B), path)
    assert {n: bits(w) for n, w in one.items()} == {n: bits(w) for n, w in other.items()}


@settings(max_examples=20, deadline=None)
@given(SHAPES, KS, st.data())
def test_encode_gives_the_bits_of_torch_for_the_same_coefficients(shapes, k, data):
    encoding_is_that_of_torch(compiled(), shapes, k, data)


def test_both_transforms_are_within_the_stated_error_of_the_exact_one():
    layout = TileLayout.from_shapes({"w": (640, 640)})
    gradient = tensors(layout, 3)
    gradient["w"][:64] *= 1e-20
    gradient["w"][64:128, 3] *= 1e6
    # Equal products all round alike: of all tiles, these come out least exact.
    gradient["w"][128:192] = torch.linspace(0.1, 1, 10).repeat_interleave(64)
    tiles, basis = layout.to_tiles(gradient), torch.from_numpy(float_basis())
    exact = basis @ tiles.double() @ basis.T
    unit = 2.0**-24 * tiles.double().flatten(1).norm(dim=1)
    found = Encoder(layout, RULE, 8, compiled().kernels).encode(gradient, None)
    for coefficients in (found.u, dct2(tiles)):
        worst = (coefficients.double() - exact).abs().flatten(1).amax(1)
        assert bool((worst <= MAX_ERROR * unit).all())
        assert bool((worst > 8 * unit).any())
    # So a choice differs only where two magnitudes are closer than both errors together.
    chosen = exact.flatten(1).abs().gather(1, torch.from_numpy(found.top.indices).long())
    cut = exact.flatten(1).abs().topk(8).values[:, -1]
    assert bool((chosen.amin(1) >= cut - 2 * MAX_ERROR * unit).all())


def test_numbers_of_threads_give_the_same_bits(two_threads):
    layout = TileLayout.from_shapes({"a": (200, 70), "b": (130,), "c": (64, 640)})
    gradient, included = tensors(layout, 4), [payload(n, layout.num_tiles, 8) for n in range(3)]
    results = []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        weights = tensors(layout, 5)
        apply.update(weights, included, layout, (A, B), compiled())
        found = Encoder(layout, RULE, 8, compiled().kernels).encode(gradient, None)
        results.append((found, {n: bits(w) for n, w in weights.items()}))
    for found, weights in results[1:]:
        same(found, results[0][0])
        assert weights == results[0][1]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("kernels", ["torch", "compiled"], indirect=True)
def test_values_that_are_not_finite_are_refused_alike(bad, kernels, two_threads):
    values_that_are_not_finite_are_refused(kernels, bad)


@pytest.mark.parametrize("kernels", ["torch", "compiled"], indirect=True)
def test_other_gradients_are_refused_alike(kernels):
    layout, one = TileLayout.from_shapes({"w": (64, 64)}), torch.ones(1, 64, 64)
    for gradient, before, k, error in (
        ({"w": torch.ones(64, 64).bfloat16()}, None, 4, TileShapeError),
        ({"w": torch.ones(64, 65)}, None, 4, TensorMismatchError),
        ({"w": torch.ones(64, 64)}, carried(one.bfloat16(), 4), 4, TileShapeError),
        ({"w": torch.ones(64, 64)}, carried(one, 8), 4, TileShapeError),
        ({"w": torch.ones(64, 64)}, None, 3, UnsupportedKError),
    ):
        with pytest.raises(error):
            Encoder(layout, RULE, k, kernels).encode(gradient, before)


def imprecise(way):
    def broken(gradient, *rest):
        return way({n: g.bfloat16().float() for n, g in gradient.items()}, *rest)

    return broken


@pytest.mark.parametrize(
    ("part", "breaks", "cause"),
    [
        ("update", one_bit_off, "other weights in 'cut'"),
        ("update", deaf_to_signs_of_zeros, "other weights in 'cut' after a step with b = 0.0"),
        ("encode", imprecise, "not precise enough"),
        ("encode", greedy, "another choice"),
    ],
)
def test_broken_kernels_are_found_out(part, breaks, cause):
    kernels = compiled().kernels
    broken = replace(kernels, **{part: breaks(getattr(kernels, part))})
    assert wrong_answer(kernels, HARD[:6], (A, B), CPU) == ""
    assert cause in wrong_answer(broken, HARD[:6], (A, B), CPU)


def test_without_numba_torch_does_it_and_the_note_says_why(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setitem(sys.modules, "numba.core.errors", None)
    kernels, note = choice.find_kernels(CPU, HARD[:6], (A, B))
    assert kernels is None
    assert "numba" in note


class Unloadable:
    """A compiler whose library is gone or cut off: llvmlite raises OSError when it is imported."""

    def __init__(self, name):
        self.name = name

    def find_spec(self, name, _path=None, _target=None):
        if name == self.name:
            raise OSError("libllvmlite.so: cannot open shared object file")


@pytest.mark.parametrize(
    ("find", "module"),
    [(choice.find_compiled, "numba.core.errors"), (choice.find_triton, "triton.errors")],
)
def test_a_compiler_whose_library_cannot_be_loaded_leaves_torch_and_a_note(
    monkeypatch, find, module
):
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Unloadable(module), *sys.meta_path])
    kernels, note = find(CPU, HARD[:6], (A, B))
    assert kernels is None
    assert note == "libllvmlite.so: cannot open shared object file"


def test_a_compiler_whose_library_cannot_be_loaded_has_compiled_nothing(monkeypatch):
    kernels = "troth_client.compression.kernels"
    monkeypatch.delitem(sys.modules, f"{kernels}.saved")
    monkeypatch.delattr(f"{kernels}.saved")
    monkeypatch.setattr(sys, "meta_path", [Unloadable(f"{kernels}.saved"), *sys.meta_path])
    assert not choice.has_compiled()


LOCATOR = "UserProvidedCacheLocator"
ASKING = """
from troth_client.compression import known_answer
path = known_answer.choose_path("cpu", num_tiles=known_answer.COMPILED_FROM_TILES)
print(path.kernels, path.reason, path.note)
"""


SAVED = """
from troth_client.compression.kernels.choice import has_compiled
print(has_compiled())
"""


def asked(script=ASKING, **settings):
    """Return what a process of its own says: numba looks for its cache when it sees a function."""
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | settings,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.long(reason="a process of its own imports torch and numba")
def test_a_cache_that_cannot_be_written_leaves_torch_and_a_note():
    said = asked(NUMBA_CACHE_DIR="/proc/none", NUMBA_CACHE_LOCATOR_CLASSES=LOCATOR)
    assert said.startswith("None  ")
    assert "cache" in said


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.long(reason="compiles the kernels anew, again and again")
def test_a_first_process_leaves_kernels_for_others_and_what_is_damaged_is_made_anew(tmp_path):
    """Flipped bits at these places of machine code end a process that loads it by a signal."""
    settings = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_CACHE_LOCATOR_CLASSES": LOCATOR}
    assert asked(SAVED, **settings) == "False\n"
    assert asked(**settings).startswith("Kernels(")
    assert asked(SAVED, **settings) == "True\n"
    for name, at in (("*encode_tiles*.nbc", 79387), ("*apply_tiles*.nbi", 100)):
        (path,) = tmp_path.rglob(name)
        flip(path, at)
        assert asked(SAVED, **settings) == "False\n"
        assert asked(**settings).startswith("Kernels(")
        assert asked(SAVED, **settings) == "True\n"


@pytest.fixture
def entry(tmp_path):
    """An entry as numba saves it: an index and a data file. Those of others lie beside them."""

    def compiled_once():
        pass

    name = f"apply.compiled_once-54.{saved._PYTHON}"
    for file in (f"{name}.nbi", f"{name}.1.nbc", f"{name}.pyc"):
        (tmp_path / file).write_bytes(file.encode())
    (tmp_path / "apply.compiled_once-54.py27.nbi").write_bytes(b"of another interpreter")
    compiled_once.stats = SimpleNamespace(cache_path=str(tmp_path))
    return compiled_once


def test_a_sealed_entry_stays_and_loads(entry, tmp_path):
    saved.seal([entry])
    kept = sorted(tmp_path.iterdir())
    saved.clear([entry])
    assert saved.is_sealed(entry)
    assert sorted(tmp_path.iterdir()) == kept


def damaged(_monkeypatch, folder):
    flip(next(folder.glob("*.nbc")), 3)


def index_of_a_killed_process(_monkeypatch, folder):
    """numba writes the index first, and takes the number of the file before for new code."""
    next(folder.glob(f"*.{saved._PYTHON}.nbi")).write_bytes(b"of new source")


def other_sources(monkeypatch, _folder):
    monkeypatch.setattr(saved, "SOURCES", bytes(32))


def other_compiler(monkeypatch, _folder):
    monkeypatch.setattr(saved.numba, "__version__", "0.0")


def never_sealed(_monkeypatch, folder):
    next(folder.glob("*.seal")).unlink()


@pytest.mark.parametrize(
    "change",
    [damaged, index_of_a_killed_process, other_sources, other_compiler, never_sealed],
)
def test_an_entry_without_a_right_seal_is_removed_before_numba_loads_it(
    entry, tmp_path, monkeypatch, change
):
    saved.seal([entry])
    change(monkeypatch, tmp_path)
    assert not saved.is_sealed(entry)
    saved.clear([entry])
    names = {path.suffix: path.name for path in tmp_path.iterdir() if path.suffix != ".seal"}
    assert names == {
        ".nbi": "apply.compiled_once-54.py27.nbi",
        ".pyc": f"apply.compiled_once-54.{saved._PYTHON}.pyc",
    }


def test_kernels_are_sealed_once_they_have_answered_right():
    assert compiled().kernels is not None
    assert [saved.is_sealed(one) for one in run.ENTRIES] == [True, True]


def test_files_that_cannot_be_removed_are_not_loaded(entry, tmp_path, monkeypatch):
    next(tmp_path.glob("*.nbc")).unlink()
    (tmp_path / f"apply.compiled_once-54.{saved._PYTHON}.1.nbc").mkdir()
    monkeypatch.setattr(run, "ENTRIES", (entry,))
    kernels, note = choice.find_compiled(CPU, HARD[:6], (A, B))
    assert kernels is None
    assert "IsADirectoryError" in note
