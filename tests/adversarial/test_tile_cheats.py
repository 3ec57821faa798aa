"""Trainers that forge single tiles, on the program: what they lose, and that nobody else does.

The judge's side of these stories, on models of many tiles, is in test_forged_tiles.py. Here the
model has twelve tiles, all of which are drawn. scripts/bench/tile_cheats.py plays them on the model
of the demo.
"""

import pytest
import torch
from support.attacks.cheats import (
    FIRST_LIE,
    MAL,
    assert_convicted_of_work,
    assert_found,
    assert_honest_untouched,
    play_out,
    stage,
    verdicts,
    work_cheat,
)

from troth_attestation.quorum import AuditOutcome
from troth_attestation.verdict import Reason, VerdictKind
from troth_client.model.device import Device

OTHERS = pytest.mark.long(reason="other parts of the model; make test has one of each fate")


@pytest.mark.parametrize(
    ("cheat", "reason"),
    [
        pytest.param("absent-half", Reason.WORK_DIFFERS, marks=OTHERS),
        ("plants-a-16th", Reason.TILES_FORGED),
        pytest.param("plants-an-8th", Reason.TILES_FORGED, marks=OTHERS),
        pytest.param("smuggles-in-turn", Reason.TILES_FORGED, marks=OTHERS),
    ],
)
async def test_a_part_of_the_model_costs_half_of_the_stake(run_factory, cheat, reason):
    """It computes most of the gradient, and claims or plants the rest as it likes.

    An honest median hides few tiles. But half of the tiles without a gradient are half of the
    errors, and one planted tile that is drawn is enough. Threat T80. Threat T81. Threat T83.
    """
    run, books = await stage(run_factory, work_cheat(cheat))
    await play_out(run)
    (loss,) = books.convictions()
    assert loss.event.round == FIRST_LIE
    assert_found(run, FIRST_LIE, VerdictKind.MISMATCH, reason)
    assert_convicted_of_work(books, loss)
    await assert_honest_untouched(run, books)


@pytest.mark.parametrize(
    ("cheat", "reason", "is_tied"),
    [
        pytest.param("smallest-tiles", Reason.TILES_FORGED, True, marks=OTHERS),
        ("touches-idle-tiles", Reason.VOTES_WITHOUT_GRADIENT, False),
    ],
)
async def test_one_or_two_forged_tiles_are_not_paid(run_factory, cheat, reason, is_tied):
    """It forges the smallest tile, or lets the two tiles of unused bytes vote.

    Three such tiles would be a mismatch; of one or two no seat is sure. The audit ends unproven, so
    that the payload earns nothing, and the third within 100 rounds is a strike. Threat T82.
    """
    run, books = await stage(run_factory, work_cheat(cheat), is_tied=is_tied)
    await play_out(run)
    (settled,) = books.settled(FIRST_LIE)
    assert settled.outcome == AuditOutcome.UNPROVEN
    assert settled.reward_undone == run.settings.chain.reward_per_payload
    assert_found(run, FIRST_LIE, VerdictKind.INCONCLUSIVE, reason)
    assert books.of(MAL) == []
    await assert_honest_untouched(run, books)


@pytest.mark.long(reason="a variant of a cheat")
async def test_the_knife_edge_takes_no_honest_stake(run_factory):
    """It stands just inside every bound, before seats in bf16 and jurors in the reference mode.

    Seats that say mismatch where the jury says ok would lose a part of their stake: a third of the
    tiles off by 0.1199 did that once. Now ok and mismatch lie apart by more than two honest
    computations do, so that nobody can be accused. Threat T84.
    """
    honest = work_cheat("knife-edge")

    def wrap(one, ports):
        one.device = Device(torch.device("cpu"), is_mixed=True)
        return honest(one, ports)

    run, books = await stage(run_factory, wrap, num_lies=3)
    await play_out(run)
    assert books.convictions() == []
    for round_ in range(FIRST_LIE, FIRST_LIE + 3):
        (settled,) = books.settled(round_)
        assert settled.outcome == AuditOutcome.CLEARED
        assert not any(words.startswith("mismatch") for words in verdicts(run, round_).values())
    await assert_honest_untouched(run, books)
