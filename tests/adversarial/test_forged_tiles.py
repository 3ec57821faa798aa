"""Trainers that do most of the work and forge the rest: some tiles, some rounds, some tolerance.

They know the judge, the bounds and the draw's size, but not its seed. The judge is the real one;
gradients are synthetic.
"""

from collections import Counter

import numpy as np
import pytest
from support.attacks.forging import NUM_TILES, Forger, nothing
from support.judged_work import CONFIG, payload_of

from troth_attestation import selection
from troth_attestation.verdict import Reason, VerdictKind
from troth_simulation.cheats import tiles
from troth_simulation.cheats.catalogue import CHEATS

OK, MISMATCH, _, INCONCLUSIVE = VerdictKind
JUDGE = CONFIG.judge
AGAIN = pytest.mark.long(reason="the same with another number")


@pytest.mark.parametrize("strata", [2, pytest.param(4, marks=AGAIN)])
def test_a_part_of_the_model_is_not_free_to_forge(strata):
    """It computes all gradients, and in one corner of the model sends what it likes instead.

    One tile was drawn from each 32nd of the tiles, and two far tiles were forgiven at any size. So
    two 32nds, all of the output matrix, belonged to it: 1232 of 1232 audits were ok. Now every tile
    may be drawn. One that is planted is a mismatch; to keep a planted direction it must be off by
    once the gradient, which is unpaid for one drawn tile and a mismatch for three. Threat T80.
    """
    corner = np.arange(NUM_TILES * strata // 32)
    forger = Forger()
    forger.play(nothing)
    for _ in range(8):
        _, audits = forger.play(lambda now: now.forge(corner, 5))
        for made, found in audits:
            is_drawn = not set(corner.tolist()).isdisjoint(made.sampled.tiles)
            assert (found.kind == OK) != is_drawn, found.explain()
    assert forger.verdicts[MISMATCH] >= 12
    assert forger.verdicts[OK] <= 3


def test_a_residual_that_is_smuggled_part_by_part_is_found():
    """Each round it plants a residual of 1000 times the gradient in two 32nds, in turn, of twelve.

    Only two tiles were far in any round, and the residual's median saw nothing, as most tiles were
    honest: it owned its votes in 37 % of the model for ever. Now a planted tile is a mismatch in
    the round of planting, and three of its residuals in every round after. Threat T81.
    """
    parts = np.array_split(np.arange(NUM_TILES * 12 // 32), 6)
    forger = Forger()
    for number in range(12):
        _, audits = forger.play(lambda now, n=number: now.forge(parts[n % 6], 1_000))
        assert {found.kind for _, found in audits} == {MISMATCH}, number
    _, audits = forger.play(nothing)
    for _, found in audits:
        assert found.kind == MISMATCH
        assert found.reason == Reason.RESIDUAL_OF_TILES


NUM_SEEDS, NUM_AUDITS = 20, 20


OTHERS = pytest.mark.long(reason="twenty seeds each; make test has the smallest part")


@pytest.mark.parametrize(
    ("cheat", "size"),
    [
        ("plants-a-16th", tiles.PLANTED),
        pytest.param("plants-a-16th", 1.0, marks=OTHERS),
        pytest.param("plants-an-8th", tiles.PLANTED, marks=OTHERS),
        pytest.param("plants-an-8th", 1.0, marks=OTHERS),
        pytest.param("smuggles-in-turn", tiles.PLANTED, marks=OTHERS),
    ],
)
def test_a_planted_part_ends_within_twenty_audits_and_is_seldom_cleared(monkeypatch, cheat, size):
    """The three clients of the catalogue, each under 20 seeds, until the first mismatch.

    They were cleared in all of their audits: 14 of 14, 10 of 10. Now they are cleared in at most a
    fifth of them, and convicted within 20 audits under at least 19 of 20 seeds. So are those that
    plant once the gradient, the least that gives a direction of their own the lead: three drawn
    tiles of it are a mismatch. Threat T80. Threat T81.
    """
    monkeypatch.setattr(tiles, "PLANTED", size)
    counts, num_convicted = Counter(), 0
    for seed in range(NUM_SEEDS):
        forger = Forger(seeds=1, seed=seed)
        forger.play(nothing)
        for _ in range(NUM_AUDITS):
            _, ((_, found),) = forger.play(lambda now: claim(now, cheat))
            counts[found.kind] += 1
            if found.kind == MISMATCH:
                num_convicted += 1
                break
    assert num_convicted >= 19
    assert counts[OK] <= counts.total() / 5


def claim(now, cheat):
    """Send u as a client of the catalogue makes it from the gradient."""
    changed = CHEATS[cheat].tiles(now.gradient.reshape(-1, 64, 64))
    now.u[:] = now.without + changed.reshape(now.u.shape)


def test_planting_one_tile_a_round_gambles_half_of_the_stake_each_time():
    """It plants so little that a draw rarely meets it: one tile a round, 133 times its gradient.

    Such a tile keeps its votes for some 70 rounds. But each planting is a mismatch whenever its
    tile is drawn: 64 of 160 here, and P(drawn) = 64 of T in any model. Afterwards, a residual
    beyond 60 in three drawn tiles is unpaid. Threat T81.
    """
    forger = Forger(seeds=4)
    forger.play(nothing)
    caught = 0
    for number in range(10):
        _, audits = forger.play(lambda now, n=number: now.forge(np.array([n * 7]), 133))
        for made, found in audits:
            is_drawn = number * 7 in made.sampled.tiles
            caught += is_drawn
            assert (found.kind == MISMATCH) == is_drawn
    assert caught / 40 == pytest.approx(64 / 160, abs=0.2)
    assert forger.verdicts[INCONCLUSIVE] > 0


@pytest.mark.parametrize("share", [5e-4, 1e-6])
def test_tiles_without_gradient_have_no_other_voter_and_no_forger(share):
    """Rare tokens have no gradient in most batches; there, a tiny u alone decides the votes.

    It adds a gradient far below the floor of the judge's scale, in such tiles only: 380 of 380
    audits were ok, and a backdoor grew. Now it needs no luck to be found: votes without gradient
    are counted over all tiles, not only over opened ones. Threat T82.
    """
    forger = Forger()
    idle = np.array([3, 70, 71, 150])
    own = forger.gradient()
    own[idle] = 0

    def plant(now):
        now.u[idle] = share * np.median(now.norms) / 64
        now.u[idle, ::2] *= -1

    _, audits = forger.play(plant, own)
    for _, found in audits:
        assert found.kind == MISMATCH
        assert found.reason == Reason.VOTES_WITHOUT_GRADIENT


def test_the_smallest_gradients_are_forged_within_the_floor_only():
    """It forges the tiles whose gradient is a thousandth of the others', where the floor is large.

    NOT caught: below 1 % of the median gradient an error is measured against that 1 %, because
    small gradients are noise on other hardware. Such a tile votes at full strength, one vote of N.
    An error that is large beside the floor is caught as anywhere. Threat T82.
    """
    small = np.arange(0, NUM_TILES, 40)
    for size, kind in ((1.1, OK), (100.0, MISMATCH)):
        forger = Forger()
        own = forger.gradient()
        own[small] *= (
            np.float32(1e-3 * np.median(np.linalg.norm(own, axis=1)))
            / (np.linalg.norm(own[small], axis=1)[:, None])
        )
        _, audits = forger.play(lambda now, s=size: now.forge(small, s), own)
        drawn = [f for made, f in audits if not set(small.tolist()).isdisjoint(made.sampled.tiles)]
        assert {found.kind for found in drawn} == {kind}


def test_one_unit_in_the_last_place_brings_no_vote_back():
    """The residual of an idle tile may vote again once u differs from it anywhere.

    It nudges one entry of every idle tile by one unit in the last place. Where that is less than
    2^-40 the tile is not sent, and a payload that sends it is not that of u. Where it is more, the
    vote has no gradient behind it. Threat T82.
    """
    idle = np.array([3, 70, 71, 150])
    for size, reason in ((2.0**-20, None), (1.0, Reason.VOTES_WITHOUT_GRADIENT)):
        forger = Forger()
        forger.sizes[idle] = size
        forger.play(nothing)
        own = forger.gradient()
        own[idle] = 0

        def nudge(now):
            place = np.abs(now.u[idle]).argmin(axis=1)
            top = now.u[idle, place]
            now.u[idle, place] = np.nextafter(top, np.float32(4))

        def nudge_large(now):
            place = np.abs(now.u[idle]).argmax(axis=1)
            top = now.u[idle, place]
            now.u[idle, place] = np.nextafter(top, np.float32(9))

        now, audits = forger.play(nudge if reason is None else nudge_large, own)
        for made, found in audits:
            assert made.signs.present[idle].tolist() == [reason is not None] * 4
            assert found.kind == (OK if reason is None else MISMATCH)
            assert found.reason == (reason or Reason.WORK_MATCHES)
        if reason is None:
            lied = made.signs.present.copy()
            lied[:] = True
            top = selection.top_k(now.u, CONFIG.demo.k).signs(lied)
            assert made.judged(signs=top).kind == MISMATCH


def test_work_that_is_declared_absent_was_not_done():
    """It computes half of the layers and declares that the others had no gradient: not sent.

    An absent tile is exact by the first test, and holds no vote to be wrong. But its implied
    gradient is zero where the judge has one. Threat T83.
    """
    forger = Forger()
    forger.play(nothing)

    def leave_out(now):
        now.u[::2] = now.without[::2]

    _, audits = forger.play(leave_out)
    for made, found in audits:
        assert not made.signs.present[::2].any()
        assert found.kind == MISMATCH
        assert found.reason == Reason.WORK_DIFFERS


JUST_INSIDE = [
    ("tile_bound_micro", 20),
    ("tile_mismatch_bound_micro", 20),
    ("tile_mismatch_micro", 2),
    ("ok_bound_micro", NUM_TILES),
    ("mismatch_bound_micro", NUM_TILES),
]


BEYOND = pytest.mark.long(reason="just beyond a bound; make test stands just inside each")


@pytest.mark.parametrize(("bound", "count"), JUST_INSIDE)
@pytest.mark.parametrize("side", [0.999, pytest.param(1.001, marks=BEYOND)])
def test_who_stands_at_a_bound_cannot_make_seats_and_jury_disagree(bound, count, side):
    """It wants the stakes of honest seats: it moves its work just inside a bound of the judge.

    Seats in bf16 and a jury in fp32 measure the same number 2 % apart. If one of them found ok and
    the other a mismatch, honest seats would pay for it. Between the two lies a factor of 1.5, so
    that the worst is an audit that ends unproven. Threat T84.
    """
    forger = Forger()
    forger.play(nothing)
    share = side * getattr(JUDGE, bound) / 10**6

    def move(now):
        rng = np.random.default_rng(7)
        noise = rng.normal(size=(count, 4096))
        scale = share * now.norms[:count] / np.linalg.norm(noise, axis=1)
        now.u[:count] = now.without[:count] + now.gradient[:count] + noise * scale[:, None]

    before = forger.before
    now, _ = forger.play(move)
    kinds = set()
    for way in range(6):
        rng = np.random.default_rng(way)
        noise = 0.0003 * way * rng.normal(size=now.gradient.shape) * now.norms[:, None]
        own = now.gradient * np.float32(1 + 0.004 * (way - 3)) + noise / 64
        other = (now.gradient + 0.01 * noise).reshape(-1, 64, 64).astype(np.float32)
        made = payload_of(before, now.u, own, bytes([way]) * 32, 64)
        kinds.add(made.judged(again=lambda o=other: o).kind)
    assert not {OK, MISMATCH} <= kinds


@pytest.mark.parametrize(
    ("share", "most_owned"), [(0.029, 0.05), pytest.param(0.02, 0.03, marks=AGAIN)]
)
def test_a_drip_inside_the_tolerance_owns_few_votes(share, most_owned):
    """It bends every tile by all that the median allows, always towards the same 16 coefficients.

    NOT caught, and no test of gradients can: it is the noise of honest hardware. It adds up in the
    residual; these coefficients then win some of its 32 votes of a tile. How many is measured here:
    honest work gives each of 4096 coefficients the same chance, 0.4 % for all 16. Threat T10.
    """
    forger = Forger(seeds=1)
    wanted = np.arange(16)
    owned = []
    for _ in range(40):

        def bend(now):
            now.u[:, wanted] += share * now.norms[:, None] / 4

        _, audits = forger.play(bend)
        for made, found in audits:
            assert found.kind == OK, found.explain()
            owned.append(float(np.isin(made.signs.indices, wanted).mean()))
    assert np.mean(owned[-10:]) < most_owned
    assert np.mean(owned[-10:]) > 0.004
