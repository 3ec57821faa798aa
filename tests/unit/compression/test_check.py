"""The questions to kernels at a start find what a participant would run into later."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.kernels import CPU, hashed_here

from troth_client.compression import known_answer
from troth_client.compression.encoder import Encoder
from troth_client.compression.kernels import run
from troth_client.compression.kernels.check import wrong_encode, wrong_hashes
from troth_client.compression.residual import Residual
from troth_client.compression.tiles import TileLayout

ASKED = (64, 32)


def honest(gradient, carried, layout, rule, k, into):
    return Encoder(layout, rule, k).encode(gradient, carried)


def scribbles_into_u(gradient, carried, layout, rule, k, into):
    found = honest(gradient, carried, layout, rule, k, into)
    if carried is not None and into is None:
        carried.u[0, 0, 0] += 1
    return found


def ignores_a_momentum_beside(gradient, carried, layout, rule, k, into):
    return honest(gradient, None if into is None else carried, layout, rule, k, into)


def keeps_what_few_places_should_lose(gradient, carried, layout, rule, k, into):
    if carried is not None and k < 64:
        carried = replace(carried, indices=np.broadcast_to(carried.indices[:, :1], (8, k)).copy())
    return honest(gradient, carried, layout, rule, k, into)


def test_torch_itself_answers_right():
    assert wrong_encode(honest, CPU, ASKED) == ""


@pytest.mark.parametrize(
    ("broken", "cause"),
    [
        (scribbles_into_u, "another momentum after an encoding beside it"),
        (ignores_a_momentum_beside, "another choice of 64 coefficients"),
        (keeps_what_few_places_should_lose, "another choice of 32 coefficients"),
    ],
)
def test_a_broken_encoding_is_found_out(broken, cause):
    assert wrong_encode(broken, CPU, ASKED) == cause


def turns_the_signs_of_eight(gradient, carried, layout, rule, k, into):
    found = honest(gradient, carried, layout, rule, k, into)
    top = replace(found.top, negative=~found.top.negative) if k == 8 else found.top
    return replace(found, top=top)


def test_a_kernel_is_asked_for_the_k_of_the_run():
    """A GPU's kernel of each k is compiled by itself; presets have k 8, 16 and 32."""
    assert wrong_encode(turns_the_signs_of_eight, CPU, ASKED) == ""
    assert wrong_encode(turns_the_signs_of_eight, CPU, (8,)) == "another choice of 8 coefficients"


def test_kernels_that_fail_at_the_k_of_the_run_are_not_used(monkeypatch):
    sound = run.encode_layout

    def broken(gradient, before, layout, rule, k, into):
        found = sound(gradient, before, layout, rule, k, into)
        return replace(found, is_sent=~found.is_sent) if k == 8 else found

    monkeypatch.setattr(run, "encode_layout", broken)
    tiles = known_answer.COMPILED_FROM_TILES
    assert known_answer.choose_path("cpu", num_tiles=tiles).kernels is not None
    path = known_answer.choose_path("cpu", num_tiles=tiles, k=8)
    assert path.kernels is None
    assert path.note == "another choice of 8 coefficients"


def test_kernels_that_were_not_asked_for_a_k_do_not_choose_so_many():
    """A caller that forgets to name the run's k gets what torch does, and no wrong payload."""
    layout = TileLayout.from_shapes({"w": (64, 64)})
    tiles, rule = known_answer.COMPILED_FROM_TILES, Residual(999_000)
    unasked = known_answer.choose_path("cpu", num_tiles=tiles)
    assert unasked.encoder(layout, rule, 8).kernels is None
    path = known_answer.choose_path("cpu", num_tiles=tiles, k=8)
    assert path.encoder(layout, rule, 8).kernels is path.kernels is not None


def hashes_one_program(tensors, leaf_bytes):
    """The first 128 KiB alone are right, as if no other program had been launched."""
    return hashed_here([cut_off(one, 2**15) for one in tensors], leaf_bytes)


def hashes_one_tensor(tensors, leaf_bytes):
    return hashed_here([tensors[0], *map(torch.zeros_like, tensors[1:])], leaf_bytes)


def forgets_the_ends(tensors, leaf_bytes):
    words = leaf_bytes // 4
    return hashed_here([cut_off(one, len(one) // words * words) for one in tensors], leaf_bytes)


def cut_off(tensor, words):
    return torch.cat([tensor[:words], torch.zeros_like(tensor[words:])])


def test_the_host_answers_right():
    assert wrong_hashes(hashed_here, CPU) == ""


@pytest.mark.parametrize("broken", [hashes_one_program, hashes_one_tensor, forgets_the_ends])
def test_a_broken_hash_is_found_out(broken):
    assert wrong_hashes(broken, CPU) == "other hashes of leaves of 16384 bytes"
