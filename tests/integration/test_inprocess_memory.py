"""Memory that does not suffice in the middle of a round: the round is skipped, the member lives."""

from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from support.ports import Wrapped, training
from support.runs import (
    AUDITED,
    NO_AUDITS,
    assert_finished,
    events_of,
    included,
    member,
    start_members,
    until_round,
)

from troth_client.data.shards import TokenData
from troth_client.model.device import CPU
from troth_client.network.errors import LaggingError, NoGradientError
from troth_client.participant import rounds
from troth_client.participant.validating import HeldOut
from troth_client.state import replica
from troth_client.steps.replay import Replay

SHORT_ROUND = 1
SHORT_ROUNDS = (2, 3)
TOO_MUCH = 1 << 46
"""Bytes that no machine gives a process."""


def of_torch():
    torch.empty(TOO_MUCH, dtype=torch.uint8)


def of_numpy():
    np.empty(TOO_MUCH, np.uint8)


@pytest.mark.parametrize(("call", "allocate"), [("gradient", of_torch), ("propose", of_numpy)])
async def test_a_trainer_without_memory_skips_the_round(run_factory, call, allocate):
    """Forward and backward pass allocate through torch, the encoder's kernels through NumPy."""

    def failing(*args):
        if dan.here.state.replica.round == SHORT_ROUND:
            allocate()
        return getattr(dan.here.work.inner, call)(*args)

    run = await run_factory.create(4)
    run.wrap = lambda one, ports: training(ports, **{call: failing}) if one.name == "dan" else ports
    await start_members(run, ["ada", "bob", "dan"])
    dan = member(run, "dan")
    await run.finish()
    await assert_finished(run)
    (short,) = events_of(run, "dan", "out_of_memory")
    assert short["round"] == SHORT_ROUND
    assert "llocate" in short["reason"]
    assert "--micro-batch" in short["advice"]
    everybody, others = [0, 1, 2], [0, 1]
    found = included(run, "ada")
    assert found == {r: others if r == SHORT_ROUND else everybody for r in range(4)}
    assert len(events_of(run, "dan", "attested")) == 4


async def test_a_member_without_memory_in_the_middle_of_a_step_takes_it_again(
    run_factory, monkeypatch
):
    """The weights are as before, so that the second try gives everybody's root."""
    real, calls = replica.update, []

    def failing(weights, *others):
        real(weights, *others)
        here = dan.here.state.replica
        if weights is here.weights and here.round == SHORT_ROUND:
            calls.append(here.round)
            if len(calls) <= 2:
                of_numpy()

    monkeypatch.setattr(replica, "update", failing)
    run = await run_factory.create(4)
    await start_members(run, ["ada", "bob", "dan"])
    dan = member(run, "dan")
    await run.finish()
    await assert_finished(run)
    (short,) = events_of(run, "dan", "out_of_memory")
    assert short["round"] == SHORT_ROUND
    assert len(calls) == 3
    assert "--past-mib" in short["advice"]
    assert events_of(run, "dan", "root_differs") == []


async def test_a_newcomer_without_memory_deposits_nothing(run_factory):
    def failing(*_batch):
        of_torch()

    run = await run_factory.create(12)
    run.wrap = lambda one, ports: training(ports, gradient=failing) if one.name == "dan" else ports
    await start_members(run, ["ada", "bob"])
    await until_round(run, 2)
    dan = await run.add_late("dan")
    with pytest.raises(NoGradientError, match="Nothing was deposited"):
        await dan.task
    dan.task = None
    assert (await run.view()).run.num_participants == 2


async def test_a_judge_without_memory_accuses_nobody(run_factory):
    def failing(weights, batch):
        of_torch()

    def wrap(one, ports):
        if one.name != "dan":
            return ports
        return replace(ports, judges=lambda honest: Wrapped(honest, gradient=failing))

    run = await run_factory.create(4, **AUDITED)
    run.wrap = wrap
    await start_members(run, ["ada", "bob", "cyd", "dan"])
    await run.finish()
    await assert_finished(run)
    assert events_of(run, "dan", "judge_out_of_memory")
    verdicts = {event["verdict"] for event in events_of(run, "dan", "judged")}
    assert verdicts == {"INCONCLUSIVE"}


def computing(failing):
    """Let each computation of dan's go through `failing`, which may find no memory."""

    def wrap(one, ports):
        if one.name != "dan":
            return ports
        return replace(ports, runtime=Wrapped(ports.runtime, compute=partial(failing, one, ports)))

    return wrap


async def test_weights_that_cannot_be_saved_cost_no_round(run_factory):
    """Audits of these rounds miss them; the round itself needs no file."""

    async def failing(one, ports, function, *args, **named):
        is_saving = getattr(function, "__name__", "") == "save_weights"
        if is_saving and one.here.state.replica.round in SHORT_ROUNDS:
            of_numpy()
        return await ports.runtime.compute(function, *args, **named)

    run = await run_factory.create(5, **NO_AUDITS)
    run.wrap = computing(failing)
    await start_members(run, ["ada", "bob", "dan"])
    await run.finish()
    await assert_finished(run)
    assert list(included(run, "ada").values()) == [[0, 1, 2]] * 5
    assert [one["round"] for one in events_of(run, "dan", "out_of_memory")] == [*SHORT_ROUNDS]
    state = member(run, "dan").here.state
    assert state.is_saved
    assert state.store.weight_rounds() == [0, 1, 4, 5]
    old = state.store.load_weights(5)
    state.store.save_weights(replace(old, state_root=bytes(32)))
    assert not state.is_saved, "a file of other weights of that round"


async def test_a_momentum_that_finds_no_memory_is_made_at_a_later_look(run_factory):
    """The round is not over before: each payload of the trainer carries on the one before."""
    calls = []

    async def failing(one, ports, function, *args, **named):
        is_settling = getattr(function, "__name__", "") == "settle"
        if is_settling and one.here.state.replica.round == SHORT_ROUND:
            calls.append(args[0])
            if len(calls) <= 2:
                of_torch()
        return await ports.runtime.compute(function, *args, **named)

    run = await run_factory.create(4, **NO_AUDITS)
    run.wrap = computing(failing)
    await start_members(run, ["ada", "bob", "dan"])
    await run.finish()
    await assert_finished(run)
    assert calls == [SHORT_ROUND] * 3
    assert [one["round"] for one in events_of(run, "dan", "out_of_memory")] == [SHORT_ROUND]
    assert [one["previous"] for one in events_of(run, "dan", "encoded")] == [None, 0, 1, 2]


@pytest.mark.parametrize("step", ["start_from_disk", "run_round"])
@pytest.mark.parametrize("allocate", [of_numpy, of_torch])
async def test_a_step_without_memory_is_tried_again(run_factory, monkeypatch, step, allocate):
    """Not only in a thread of its own: PyTorch says it in a RuntimeError."""
    real, calls = getattr(rounds, step), []

    async def failing(*args):
        calls.append(args)
        if len(calls) <= 4:
            allocate()
        return await real(*args)

    monkeypatch.setattr(rounds, step, failing)
    run = await run_factory.create(2, **NO_AUDITS)
    await start_members(run, ["ada", "bob"])
    await run.finish()
    await assert_finished(run)
    assert [len(events_of(run, name, "out_of_memory")) for name in ("ada", "bob")] == [1, 1]


async def test_a_recovery_without_memory_ends_nobody(run_factory, monkeypatch):
    """A member that lacks something takes weights of others, and those need memory."""
    real, recovered = rounds.run_round, []

    async def lagging(member, view, round_):
        if member is dan.here and not recovered:
            raise LaggingError("the payload of bob", "nobody who serves it", "LAGGING.")
        await real(member, view, round_)

    async def recover(replay, error):
        recovered.append(error)
        of_torch()

    monkeypatch.setattr(rounds, "run_round", lagging)
    monkeypatch.setattr(Replay, "recover", recover)
    run = await run_factory.create(2, **NO_AUDITS)
    await start_members(run, ["ada", "bob", "dan"])
    dan = member(run, "dan")
    await run.finish()
    await assert_finished(run)
    assert len(recovered) == 1
    assert len(events_of(run, "dan", "out_of_memory")) == 1


@pytest.mark.long(reason="a whole run with audits, judged from the disk alone")
async def test_a_run_whose_members_keep_nothing_of_past_rounds_in_memory(run_factory):
    """Openings are made, and audits are judged, from the disk."""
    run = await run_factory.create(5, **AUDITED)
    run.past_bytes = 0
    await start_members(run, ["ada", "bob", "cyd", "dan"])
    await run.finish()
    await assert_finished(run)
    for one in run.members:
        assert one.here.state.archive.memory_bytes == 0
        assert one.here.state.replica.past.memory_bytes == 0
        assert len(one.here.state.replica.past.closures()) >= 2
    judged = [event["verdict"] for one in run.members for event in one.events.named("judged")]
    assert set(judged) == {"OK"}


HEAVY = {
    *("Replica.root", "Replica.rewind", "Replica.apply", "RoundState.save_weights"),
    *("HonestWork.gradient", "HonestWork.propose", "HonestWork.encode", "_keep"),
    *("TokenData.sequences", "HonestWork.open_tiles", "or_none", "make_checkpoint"),
    *("HonestWitnessWork.judge", "HonestWitnessWork.sketch", "_measure"),
    *("Store.save_peer", "decode", "ResidualState.begin", "ResidualState.settle"),
}
"""The functions that a member of such a run computes in threads, once it is put together."""
NO_MEMORY = "out of memory"


async def test_each_heavy_computation_of_a_member_may_find_no_memory_once(run_factory, data):
    """The member lives, and does later whatever can be done later."""
    calls = Counter()

    def wrap(one, ports):
        if one.name != "dan":
            return ports
        return replace(ports, runtime=Wrapped(ports.runtime, compute=partial(failing, ports)))

    async def failing(ports, function, *args, **named):
        name = getattr(function, "func", function).__qualname__
        calls[name] += 1
        if calls[name] == 2 and name == "or_none":
            args = (*args[:-1], of_numpy)
        elif calls[name] == 2:
            of_numpy()
        return await ports.runtime.compute(function, *args, **named)

    folder, manifest = data
    run = await run_factory.create(8, **AUDITED, checkpoint_every=3, residual_rounds=3)
    run.held_out = HeldOut(TokenData(folder, manifest, "validation"), 2, CPU)
    run.wrap = wrap
    await start_members(run, ["ada", "bob", "cyd", "dan"])
    await run.finish()
    await assert_finished(run)
    assert set(calls) == {"assemble", *HEAVY}
    assert min(calls[name] for name in HEAVY) > 2
    assert len(events_of(run, "dan", "judge_out_of_memory")) == 3
    assert [e["reason"][:13] for e in events_of(run, "dan", "checkpoint_failed")] == [NO_MEMORY]
    rounds = included(run, "ada")
    skipped = [event["reason"] for event in events_of(run, "dan", "validation_skipped")]
    assert [reason[:13] for reason in skipped].count(NO_MEMORY) == 1
    judged = [(one["round"], one["target"]) for one in events_of(run, "dan", "judged")]
    assert sorted(judged) == list(product(range(8), range(3))), "every seat has spoken"
    own = [one for one in events_of(run, "ada", "judged") if one["target"] == 3]
    assert sorted(one["round"] for one in own) == [r for r, who in rounds.items() if 3 in who]
    assert {one["verdict"] for one in own} == {"OK"}, "its openings were there in time"
