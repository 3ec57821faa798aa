"""The catalogue of cheats: what a name promises is what is done to the numbers."""

import numpy as np
import pytest

from troth_simulation.cheats import signed, work
from troth_simulation.cheats.catalogue import CHEATS
from troth_simulation.cheats.cheat import Cheat

SEQUENCES, PREDICTIONS = 8, 16
BATCH = np.arange(SEQUENCES * (PREDICTIONS + 1)).reshape(SEQUENCES, -1)


def test_each_cheat_has_a_story_and_a_penalty_that_exists():
    assert [cheat.name for cheat in CHEATS.values()] == list(CHEATS)
    for cheat in CHEATS.values():
        assert cheat.story and cheat.fault in ("P3", "P4", "P5", ""), cheat.name
    assert [name for name, cheat in CHEATS.items() if not cheat.fault] == ["poison-within"]


@pytest.mark.parametrize("cheat", CHEATS.values(), ids=CHEATS)
def test_no_cheat_is_honest(cheat):
    """Each has something that differs from honest work."""
    assert cheat != Cheat(cheat.name, cheat.story, cheat.fault)


@pytest.mark.parametrize(("some", "all_"), [(7, 8), (3, 4), (1, 2), (1, 4), (1, 8)])
def test_parts_are_what_their_names_say(some, all_):
    cut = CHEATS[f"batch-{some}-{all_}"].batch(BATCH)
    assert np.array_equal(cut, BATCH[:, : PREDICTIONS * some // all_ + 1])
    skipped = CHEATS[f"sequences-{some}-{all_}"].batch(BATCH)
    assert np.array_equal(skipped, BATCH[: SEQUENCES * some // all_])


def test_a_batch_of_one_is_never_empty():
    assert work.part_of_batch(1, 8)(BATCH[:1]).shape == BATCH[:1].shape
    assert work.part_of_each(1, 8)(BATCH[:, :3]).shape == (SEQUENCES, 2)


@pytest.mark.parametrize(("num_layers", "kept"), [(1, []), (2, [1]), (3, [2]), (4, [2, 3])])
def test_the_last_half_of_the_layers_is_kept(num_layers, kept):
    ends = ("model.embed_tokens.weight", "model.norm.weight", "lm_head.weight")
    layers = [f"model.layers.{n}.mlp.up_proj.weight" for n in range(num_layers)]
    found = work.of_last_layers({name: np.ones(3, np.float32) for name in (*ends, *layers)})
    expected = {*ends[1:], *(layers[n] for n in kept)}
    assert {name for name, tensor in found.items() if tensor.any()} == expected


def test_bent_gradients_are_off_by_exactly_their_share():
    draw = np.random.default_rng(1)
    gradient = {"w": draw.standard_normal((64, 64)).astype(np.float32)}
    bent = work.bent(0.02)(gradient)["w"]
    error = np.linalg.norm(bent - gradient["w"]) / np.linalg.norm(gradient["w"])
    assert error == pytest.approx(0.02, rel=1e-4)


def test_a_smuggled_residual_dwarfs_the_honest_one_in_every_tile():
    u = np.random.default_rng(1).standard_normal((3, 64, 64)).astype(np.float32)
    forged = signed.smuggling(u)
    assert forged.dtype == np.float32
    assert (np.linalg.norm(forged, axis=(1, 2)) > 100 * np.linalg.norm(u, axis=(1, 2))).all()
