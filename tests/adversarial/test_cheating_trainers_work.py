"""Trainers that do not do the work which they sign for.

Each is honest until three of its payloads were included. Then it cheats, once or twice, and every
payload is audited. How long it takes where few are audited: scripts/bench/convictions.py.
"""

import numpy as np
import pytest
from solders.keypair import Keypair
from support.attacks.cheating_ports import as_own_gradient, as_own_payload, leaked
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
from support.fields import assert_fields
from support.runs import until_round

from troth_attestation import selection as judge
from troth_attestation.quorum import AuditOutcome
from troth_attestation.selection import TopK
from troth_attestation.verdict import Reason, VerdictKind
from troth_client.audit.recompute import recompute
from troth_coordinator.chain.audit_instructions import request_audit
from troth_coordinator.rules.assignment import SequenceOrder, sequences_of
from troth_coordinator.rules.phase import Phase


async def assert_loses_half(run_factory, wrap, reason: Reason = Reason.WORK_DIFFERS, **settings):
    """One payload, one conviction: half of the stake and all that has not vested."""
    run, books = await stage(run_factory, wrap, **settings)
    await play_out(run)
    (loss,) = books.convictions()
    assert loss.event.round == FIRST_LIE
    assert_found(run, FIRST_LIE, VerdictKind.MISMATCH, reason)
    assert_convicted_of_work(books, loss)
    await assert_honest_untouched(run, books)
    return run


async def test_a_free_rider_loses_half_and_the_reward_of_each_further_round(run_factory):
    """It trains honestly until it is trusted, then computes nothing and sends what it has left.

    Its decayed residual still has the shape of an honest payload and half of its signs, so it
    hopes to be paid for nothing. But its implied gradient u - beta M is zero, so every witness
    finds an error of 1. Two rounds of it before the first verdict: half of its stake and all that
    has not vested, then the reward of the other round. The next offence bars. Threat T01, T75.
    """
    run, books = await stage(run_factory, work_cheat("free-rider"), num_lies=2)
    await play_out(run)
    first, second = books.convictions()
    assert sorted((first.event.round, second.event.round)) == [FIRST_LIE, FIRST_LIE + 1]
    assert_convicted_of_work(books, first)
    reward = run.settings.chain.reward_per_payload
    assert_fields(second.event, fault=3, stake=0, unbonding=0, unvested=reward)
    assert second.event.reward_undone == reward
    assert second.after.work_faults == 1
    await assert_honest_untouched(run, books)


LESS = pytest.mark.long(reason="farther from honest work than a half, which make test has")
WHOLE = pytest.mark.long(reason="another half of the work; make test has half of each sequence")


@pytest.mark.parametrize("part", ["1-2", *(pytest.param(p, marks=LESS) for p in ("1-4", "1-8"))])
@pytest.mark.parametrize("what", ["batch", pytest.param("sequences", marks=WHOLE)])
async def test_half_of_the_batch_or_less_is_a_mismatch(run_factory, what, part):
    """It cuts the end off every sequence, or skips some whole, and claims the whole batch.

    The beginning of a text is much like the whole, and sequences are much like each other, so it
    hopes that its gradient looks the same. Data root and cursor prove what was assigned, not what
    was read; but the gradient of the rest is missing. Threat T02.
    """
    await assert_loses_half(run_factory, work_cheat(f"{what}-{part}"), sequences=8)


@pytest.mark.long(reason="make test has unproven work in test_tile_cheats.py")
async def test_an_eighth_left_out_is_never_cleared_nor_paid(run_factory):
    """It saves as little as an eighth of the work, to stay below the bounds.

    On this toy text, which has eleven words, an eighth of it is hard to tell from noise: the seats
    find a difference between the bounds. Nobody loses a stake for doubt, but an unproven payload
    earns nothing: it saved an eighth of the work and lost all of the pay, and three in 100 rounds
    are a strike. Threat T02.
    """
    run, books = await stage(run_factory, work_cheat("batch-7-8"), sequences=8)
    await play_out(run)
    (settled,) = books.settled(FIRST_LIE)
    assert settled.outcome == AuditOutcome.UNPROVEN
    assert settled.reward_undone == run.settings.chain.reward_per_payload
    assert books.of(MAL) == []
    entry = (await run.view()).entries[MAL]
    assert FIRST_LIE in entry.unproven_rounds and entry.strikes == 0
    await assert_honest_untouched(run, books)


@pytest.mark.long(reason="other work than asked for; make test has half of a batch")
async def test_the_first_layers_left_out_are_found(run_factory):
    """It stops its backward pass half-way and sends exact gradients for the last layers only.

    Half of the tiles are right to the bit, so that the median of a few tiles may be too. But tiles
    are drawn from all of the model: three of 64 that are off by their whole gradient are enough.
    Threat T38.
    """
    await assert_loses_half(run_factory, work_cheat("last-layers"))


@pytest.mark.long(reason="other work than asked for; make test has half of a batch")
async def test_data_of_its_own_choice_is_not_the_assigned_one(run_factory):
    """It trains on text that it has at hand, and signs the data root of the assigned sequences.

    Witnesses read those sequences by the cursor, from the manifest. Threat T03.
    """
    await assert_loses_half(run_factory, work_cheat("wrong-data"))


@pytest.mark.long(reason="other work than asked for; make test has half of a batch")
async def test_the_weights_of_three_rounds_ago_are_not_the_runs(run_factory):
    """It does not wait for the round to be applied, and trains on weights of three rounds before.

    State root and vote are those of the round, so that it is included. But the gradient is that of
    other weights. Threat T04.
    """
    await assert_loses_half(run_factory, work_cheat("stale-model"))


@pytest.mark.long(reason="other work than asked for; make test has half of a batch")
async def test_a_payload_of_the_round_before_is_no_work_of_this_one(run_factory):
    """It computes nothing and sends the signs that ada sent in the round before, as its own.

    Before Commit has ended nothing is served, so last round's payload is the freshest there is. It
    builds a u that has exactly these signs: payload and openings fit each other. The gradient that
    u implies belongs to nobody's sequences. Threat T05.
    """
    await assert_loses_half(run_factory, work_cheat("copies"))


@pytest.mark.long(reason="other work than asked for; make test has half of a batch")
async def test_a_payload_leaked_before_commit_is_that_of_other_sequences(run_factory):
    """Ada gives mal her u before either has committed; mal signs for it and computes nothing.

    The same bytes are right for ada and wrong for mal: other sequences, another residual. Mal pays
    for a second stake that earns once; ada has done her work and loses nothing. Threat T06.
    """
    run = await assert_loses_half(run_factory, leaked("ada", "propose", as_own_payload))
    ada, mal = (
        one.here.state.store.load_submission(FIRST_LIE) for one in (run.members[0], run.members[-1])
    )
    assert ada.payload == mal.payload
    assert_found(run, FIRST_LIE, VerdictKind.OK, Reason.WORK_MATCHES, target=0)


@pytest.mark.long(reason="other work than asked for; make test has half of a batch")
async def test_two_identities_with_one_gpu_are_paid_for_one(run_factory):
    """Dan and mal are one person with one GPU: dan's gradient goes into both residuals.

    Each identity is assigned sequences of its own. Dan's audit is cleared, mal's is not.
    Threat T07.
    """
    run = await assert_loses_half(run_factory, leaked("dan", "gradient", as_own_gradient()))
    assert_found(run, FIRST_LIE, VerdictKind.OK, Reason.WORK_MATCHES, target=3)


@pytest.mark.long(reason="farther from honest work than poison inside the tolerance")
@pytest.mark.parametrize("kind", ["sign-flip", "poison"])
async def test_poison_outside_the_tolerance_is_a_mismatch(run_factory, kind):
    """It wants the weights to go somewhere else: uphill, or towards weights of its own choice.

    One-bit signs leave it no magnitude to inflate, so that it must turn signs; and each turned sign
    is a difference from the gradient of its sequences. Threat T09, T11.
    """
    await assert_loses_half(run_factory, work_cheat(kind))


@pytest.mark.long(reason="test_forged_tiles.py measures a drip inside the tolerance")
async def test_poison_inside_the_tolerance_is_cleared_and_bends_few_signs(run_factory):
    """It bends every value of its gradient by 2 % of itself, round after round, and is paid.

    NOT caught, and no test of gradients can: honest hardware differs as much. Its effect is
    bounded. A tile's gradient is off by at most `ok_bound`, so few or none of its own signs turn,
    never a third of them, and its signs are 1/N of the round's. Threat T10.
    """
    run, books = await stage(run_factory, work_cheat("poison-within"), num_lies=3)
    await play_out(run)
    for round_ in range(FIRST_LIE, FIRST_LIE + 3):
        (settled,) = books.settled(round_)
        assert_fields(settled, outcome=AuditOutcome.CLEARED, reward_undone=0)
        assert_found(run, round_, VerdictKind.OK, Reason.WORK_MATCHES)
        error, turned = await bent_signs(run, round_)
        assert error == pytest.approx(0.02, abs=1e-4)
        assert error < run.settings.config.judge.ok_bound_micro / 10**6
        assert turned < 1 / 3
    assert books.of(MAL) == []
    await assert_honest_untouched(run, books)


async def bent_signs(run, round_: int) -> tuple[float, float]:
    """The largest error of a tile, and the share of signs that honest work would not have sent."""
    honest = await honest_gradient(run, round_)
    store, demo = run.members[MAL].here.state.store, run.settings.config.demo
    entry, shape = store.load_residual(round_), (len(honest), -1)
    before = store.load_residual(entry.previous_round).u.reshape(shape)
    without = judge.decayed(judge.after_included(before, demo), demo).reshape(entry.u.shape)
    bent = entry.u - without
    size = np.linalg.norm(honest, axis=(1, 2))
    error = (np.linalg.norm(bent - honest, axis=(1, 2)) / size).max()
    sent = judge.top_k(entry.u.reshape(shape), demo.k)
    due = judge.top_k((without + honest).reshape(shape), demo.k)
    same = sum(len(signs_of(sent, t) & signs_of(due, t)) for t in range(len(honest)))
    return float(error), 1 - same / (len(honest) * demo.k)


async def honest_gradient(run, round_: int):
    """The gradient that the cheat should have computed: D(g), fp32 [tiles, 64, 64]."""
    ada, config = run.members[0].here.state, run.settings.config
    (account,) = await run.client.read_rounds(run.at.run, [round_])
    order = SequenceOrder(len(ada.data), config.manifest_digest())
    ids = sequences_of(order, account, MAL, config.train.sequences_per_payload)
    weights = ada.store.load_weights(round_).tensors
    return recompute(config, weights, ada.data.sequences(ids))


def signs_of(found: TopK, tile: int) -> set[tuple[int, bool]]:
    return set(zip(found.indices[tile].tolist(), found.negative[tile].tolist(), strict=True))


@pytest.mark.long(reason="unit tests of the judge name such a tile")
@pytest.mark.parametrize("kind", ["nan-residual", "infinite-residual"])
async def test_a_residual_that_is_no_number_is_a_mismatch(run_factory, kind):
    """It signs for a u with NaN or infinities in every tile, and sends an honest payload beside it.

    No comparison with NaN holds, so that no bound is ever exceeded; divided by an infinity every
    difference is nothing. But values that were signed for must be finite before anything is
    compared. Threat T40.
    """
    await assert_loses_half(run_factory, work_cheat(kind), Reason.NOT_FINITE)


async def test_a_residual_smuggled_in_an_unsampled_round_shows_in_the_next(run_factory):
    """Once it commits to a residual a thousand times too large; nobody looks at that round.

    From then on its gradients are honest to the bit, so that u - beta M is right, and its payloads
    are what the smuggled residual says. A stranger who wonders at them pays for an audit of a later
    round: there M is far too large to come from honest gradients. Threat T12.
    """
    nobody = {"p_base_ppm": 0, "p_new_ppm": 0}
    run, books = await stage(run_factory, work_cheat("smuggled-residual"), num_lies=3, **nobody)
    stranger = Keypair.from_seed(b"stranger".ljust(32, b"."))
    run.chain.airdrop(stranger.pubkey(), 10**9)
    await until_round(run, FIRST_LIE + 1, Phase.ATTEST)
    request = request_audit(run.at, stranger.pubkey(), FIRST_LIE + 1, MAL)
    await run.client.send([request], [stranger])
    await play_out(run)
    (loss,) = books.convictions()
    assert loss.event.round == FIRST_LIE + 1
    assert verdicts(run, FIRST_LIE) == {}
    assert_found(run, FIRST_LIE + 1, VerdictKind.MISMATCH, Reason.RESIDUAL_TOO_LARGE)
    assert_convicted_of_work(books, loss)
    await assert_honest_untouched(run, books)
