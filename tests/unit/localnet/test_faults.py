"""The catalogue of cheats: what a name promises is what is done to the numbers."""

import numpy as np
import pytest

from troth_coordinator.rules.view import Role
from troth_simulation.cheats import signed, work
from troth_simulation.cheats.catalogue import CHEATS
from troth_simulation.cheats.cheat import Cheat

SEQUENCES, PREDICTIONS = 8, 16
BATCH = np.arange(SEQUENCES * (PREDICTIONS + 1)).reshape(SEQUENCES, -1)


def test_each_cheat_has_a_story_and_a_penalty_that_exists():
    assert [cheat.name for cheat in CHEATS.values()] == list(CHEATS)
    for cheat in CHEATS.values():
        assert cheat.story and cheat.fault in ("P3", "P4", "P5", ""), cheat.name
    unpunished = [name for name, cheat in CHEATS.items() if not cheat.fault]
    assert unpunished == [
        "poison-within",
        "below-the-floor",
        "knife-edge",
        "starves-seats",
        "mismatch-juror",
    ]
    assert [cheat.name for cheat in CHEATS.values() if cheat.role & Role.WITNESS] == [
        "mismatch-juror"
    ]


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


def tiles_of(seed=3, count=96):
    """A gradient whose tiles have sizes from 1 to 1000; the last two have none."""
    rng = np.random.default_rng(seed)
    found = rng.standard_normal((count, 64, 64)) * np.geomspace(1, 1_000, count)[:, None, None]
    found[-2:] = 0
    return found.astype(np.float32)


def errors(cheat, gradient):
    """||changed - own|| / ||own|| of every tile that has a gradient."""
    changed = CHEATS[cheat].tiles(gradient)
    assert changed.dtype == np.float32
    norms = np.linalg.norm(gradient, axis=(1, 2))
    return np.linalg.norm(changed - gradient, axis=(1, 2))[norms > 0] / norms[norms > 0]


def test_half_of_the_tiles_are_claimed_absent_and_the_others_exact():
    found = CHEATS["absent-half"].tiles(tiles_of())
    assert not found[::2].any()
    assert np.array_equal(found[1::2], tiles_of()[1::2])


@pytest.mark.parametrize(
    ("cheat", "forged", "least"),
    [
        ("plants-a-16th", range(6), 4),
        ("plants-an-8th", range(12), 4),
        ("smallest-tiles", range(9), 1),
        ("below-the-floor", range(16), 2),
    ],
)
def test_forged_tiles_are_those_of_the_name_and_the_rest_is_exact(cheat, forged, least):
    """The smallest gradients are the first; 16 of them are below a 1000th of the median."""
    gradient = tiles_of()
    gradient[:16] *= np.float32(3e-4)
    found = errors(cheat, gradient)
    assert np.flatnonzero(found).tolist() == list(forged)
    assert found[list(forged)].min() > least


def test_tiles_below_the_floor_are_forged_within_the_bound_of_a_tile():
    gradient = tiles_of()
    gradient[:16] *= np.float32(3e-4)
    moved = CHEATS["below-the-floor"].tiles(gradient) - gradient
    norms = np.linalg.norm(gradient, axis=(1, 2))
    floor = 0.01 * np.median(norms[norms > 0])
    error = np.linalg.norm(moved, axis=(1, 2))[:16] / floor
    assert error == pytest.approx(np.full(16, 0.12), rel=0.01)


def test_smuggling_takes_turns_over_twelve_32nds():
    hit = [np.flatnonzero(errors("smuggles-in-turn", tiles_of(seed))).tolist() for seed in range(9)]
    assert all(len(part) == 6 for part in hit)
    assert set().union(*hit) <= set(range(36))
    assert len({tuple(part) for part in hit}) > 2
    assert errors("smuggles-in-turn", tiles_of()).max() > 900


def test_only_tiles_without_gradient_are_touched():
    gradient = tiles_of()
    found = CHEATS["touches-idle-tiles"].tiles(gradient)
    assert np.array_equal(found[:-2], gradient[:-2])
    assert (found[-2:].reshape(2, -1) != 0).sum(axis=1).tolist() == [1, 1]


def test_the_edge_is_just_inside_both_bounds():
    found = errors("knife-edge", tiles_of())
    assert sorted({round(float(one), 4) for one in found}) == [0.03, 0.1199]
    assert found.max() < 0.12
    assert np.median(found) < 0.03


def test_a_smuggled_residual_dwarfs_the_honest_one_in_every_tile():
    u = np.random.default_rng(1).standard_normal((3, 64, 64)).astype(np.float32)
    forged = signed.smuggling(u)
    assert forged.dtype == np.float32
    assert (np.linalg.norm(forged, axis=(1, 2)) > 100 * np.linalg.norm(u, axis=(1, 2))).all()
