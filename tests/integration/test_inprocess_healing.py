"""LAGGING and HEALING: a member that lacks or lost something gets it from others, and no more."""

import pytest
import torch
from support.ports import computing, refused_by
from support.runs import (
    NO_AUDITS,
    assert_finished,
    events_of,
    included,
    member,
    start_members,
    until,
    until_round,
)

from troth_attestation.pieces import tensor_bytes
from troth_client.compression.limits import payload_length
from troth_client.transport.base import BlobKind
from troth_coordinator.rules.phase import Phase

BAD_ROUND = 5
TENSOR = "model.layers.0.mlp.up_proj.weight"
HEALED_WITHIN = 2
"""Rounds from the round in which a difference shows to the next payload that is included."""


def flip_one_bit(one) -> None:
    """Flip one bit of the mantissa of one weight, in memory; a lower one may be rounded away."""
    weights = one.here.state.replica.weights[TENSOR]
    bits = weights.view(torch.int32).view(-1)
    with torch.no_grad():
        bits[3] ^= 1 << 20


def replace_tensor(one) -> None:
    with torch.no_grad():
        one.here.state.replica.weights[TENSOR].fill_(0.25)


def damage_stored_weights(one) -> None:
    """No state on the disk of a member is whole any more."""
    for path in one.folder.glob("weights-*.record"):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(bytes(data))


async def spoil(run, name: str, change, *, is_disk_damaged: bool) -> None:
    """Change a member's weights after it has trained and voted in the round before `BAD_ROUND`."""
    one = member(run, name)
    done = one.events
    await until(run, lambda _view: any(e["round"] == BAD_ROUND - 1 for e in done.named("attested")))
    change(one)
    if is_disk_damaged:
        damage_stored_weights(one)


def assert_healed(run, name: str) -> dict:
    """Detected in the next round and healed within two; returns what was said of it."""
    (differs,) = events_of(run, name, "root_differs")
    (healed,) = events_of(run, name, "healed")
    index, seen = member(run, name).index, included(run, "ada")
    lost = [r for r, held in seen.items() if r >= BAD_ROUND - 1 and index not in held]
    assert differs["round"] in (BAD_ROUND - 1, BAD_ROUND)
    assert healed["round"] == differs["round"]
    assert len(lost) <= HEALED_WITHIN
    return healed


async def test_one_flipped_bit_is_healed_without_a_byte_from_others(run_factory):
    """The model is copied in threads twice: what was ours, and what the disk has instead."""
    computed = set()

    def wrap(one, ports):
        async def compute(function, *args, **named):
            computed.add(getattr(function, "__name__", ""))
            return await ports.runtime.compute(function, *args, **named)

        return computing(ports, compute) if one.name == "dan" else ports

    run = await run_factory.create(8, **NO_AUDITS)
    run.wrap = wrap
    await start_members(run, ["ada", "bob", "cyd", "dan"])
    await spoil(run, "dan", flip_one_bit, is_disk_damaged=False)
    await run.finish()
    await assert_finished(run)
    assert assert_healed(run, "dan")["fetched_bytes"] == 0
    assert computed >= {"copies_of", "take_up"}


@pytest.mark.parametrize(
    "change",
    [
        flip_one_bit,
        pytest.param(replace_tensor, marks=pytest.mark.long(reason="the same for a whole tensor")),
    ],
)
async def test_a_wrong_tensor_and_a_damaged_disk_cost_that_tensor(run_factory, change):
    """Nothing here can be replayed: HEALING compares tensor by tensor and fetches one."""
    run = await run_factory.start(8, names="ada bob cyd dan", **NO_AUDITS)
    await spoil(run, "dan", change, is_disk_damaged=True)
    await run.finish()
    await assert_finished(run)
    healed = assert_healed(run, "dan")
    shape = tuple(member(run, "dan").here.state.replica.weights[TENSOR].shape)
    assert healed["tensors"] == [TENSOR]
    assert 0 < healed["fetched_bytes"] <= tensor_bytes(shape)
    assert events_of(run, "dan", "healing")[0]["round"] == healed["round"]
    assert events_of(run, "dan", "file_damaged")


@pytest.mark.long(reason="sixteen rounds; test_inprocess_late.py has a checkpoint that is fetched")
async def test_a_lost_round_is_passed_over_with_the_next_checkpoint(run_factory):
    """Nobody ever gives one included payload to dan: it says so, and goes on from round 8."""
    run = await run_factory.create(16, checkpoint_every=4, **NO_AUDITS)

    def is_hidden(_holder, wanted) -> bool:
        return wanted.kind is BlobKind.PAYLOAD and wanted.round == BAD_ROUND

    run.wrap = lambda one, ports: refused_by(ports, is_hidden) if one.name == "dan" else ports
    await start_members(run, ["ada", "bob", "cyd", "dan"])
    dan = member(run, "dan").here.submissions.transport
    honest = dan.expect

    def expect(wanted, num_bytes, check) -> None:
        if not is_hidden("", wanted):
            honest(wanted, num_bytes, check)

    dan.expect = expect
    await run.finish()
    await assert_finished(run)
    (lagging,) = events_of(run, "dan", "lagging")
    assert lagging["round"] == BAD_ROUND
    (recovering,) = events_of(run, "dan", "recovering")
    assert str(BAD_ROUND) in recovering["reason"]
    assert events_of(run, "dan", "fetched")[0]["round"] == 8
    assert 3 in included(run, "ada")[15]


@pytest.mark.long(reason="another way to lose something, a run each")
async def test_a_checkpoint_that_cannot_be_written_is_reported_and_the_run_goes_on(run_factory):
    """Somebody keeps other files where ada's first checkpoint belongs; the next one is made."""
    run = await run_factory.start(14, names="ada bob", checkpoint_every=4, **NO_AUDITS)
    place = member(run, "ada").here.state.states.path(4)
    place.mkdir(parents=True)
    (place / "thesis.tex").write_text("all of it")
    await run.finish()
    await assert_finished(run)
    (failed,) = events_of(run, "ada", "checkpoint_failed")
    assert failed["round"] == 4
    assert "thesis.tex" in failed["reason"]
    assert (place / "thesis.tex").read_text() == "all of it"
    assert [event["round"] for event in events_of(run, "ada", "checkpoint_made")] == [8, 12, 14]
    assert [event["round"] for event in events_of(run, "bob", "checkpoint_made")] == [4, 8, 12, 14]


@pytest.mark.long(reason="another way to lose something, a run each")
async def test_the_disk_holds_what_was_promised_and_no_more(run_factory):
    quiet = {"ring": 8, "keep_rounds": 3, "checkpoint_every": 4, **NO_AUDITS}
    run = await run_factory.start(40, names="ada bob cyd", **quiet)
    ada = member(run, "ada")
    most = 0
    for round_ in range(8, 40, 3):
        await until_round(run, round_)
        held = sum(path.stat().st_size for path in ada.folder.rglob("*") if path.is_file())
        most = max(most, held)
    state = ada.here.state
    weights = sum(array.nbytes for array in state.replica.arrays().values())
    payload = payload_length(state.num_tiles, state.config.demo.k)
    bound = state.retention.disk_bytes(weights, state.num_tiles, payload, 3)
    assert bound / 4 < most <= bound, "the bound holds, and is not far away"
    stored = state.store.weight_rounds()
    assert len(state.states.checkpoints) == 2
    second = state.states.checkpoints[0]
    view = await run.view()
    for round_ in range(second, view.run.round):
        assert state.store.peer_indices(round_), f"payloads of round {round_}"
    assert min(stored[1:]) >= view.run.round - state.retention.weights - 2
    await run.finish()
    assert (await run.view()).run.phase == Phase.FINISHED
