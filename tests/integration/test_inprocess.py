"""A whole run in one process: everybody ends with the same weights, and equal seeds repeat it."""

import math

import pytest
from support.runs import (
    assert_fees_reported,
    assert_finished,
    events_of,
    included,
    member,
    start_members,
    until_round,
)

from troth_coordinator.rules.view import Role, Status


async def test_four_trainers_from_genesis_to_finished(run_factory):
    run = await run_factory.start(5, names="ada bob cyd dan")
    views = await run.finish()
    view = await assert_finished(run)
    assert [one.run.root for one in views] == [view.run.root] * 4
    assert view.run.round == 5
    assert view.run.cursor == 5 * 4 * 2
    for name in ("ada", "bob", "cyd", "dan"):
        assert included(run, name) == {round_: [0, 1, 2, 3] for round_ in range(5)}
        # The steps of a round, in their order, once each.
        seen = [event["event"] for event in member(run, name).events.events]
        steps = ["trained", "encoded", "committed", "gathered", "attested", "applied"]
        assert [event for event in seen if event in steps] == steps * 5
        assert len(events_of(run, name, "published")) == 5


@pytest.mark.long(reason="forty rounds; test_inprocess_validation.py sees the loss fall")
async def test_training_learns(run_factory):
    run = await run_factory.start(40, names="ada bob")
    await run.finish()
    losses = [event["loss_micro"] for event in events_of(run, "ada", "trained")]
    first, last = (sum(part) / len(part) for part in (losses[:3], losses[-5:]))
    assert abs(first / 10**6 - math.log(256)) < 0.1
    assert last < first - 500_000, (first, last)


async def test_equal_seeds_give_equal_runs(run_factory):
    ends = []
    for seed in (3, 3, 4):
        run = await run_factory.start(3, names="ada bob cyd", seed=seed)
        view = (await run.finish())[0]
        events = [one.events.events for one in run.members]
        ends.append((view.run.chain_hash, run.chain.slot, view.run.root, events))
    assert ends[0] == ends[1]
    assert ends[0][0] != ends[2][0]


async def test_a_witness_attests_and_sends_nothing(run_factory):
    run = await run_factory.create(4)
    await start_members(run, ["ada", "bob", "cyd"])
    await start_members(run, ["wit"], Role.WITNESS)
    await run.finish()
    await assert_finished(run)
    assert len(events_of(run, "wit", "attested")) == 4
    assert not events_of(run, "wit", "committed")
    assert included(run, "ada") == {round_: [0, 1, 2] for round_ in range(4)}


@pytest.mark.long(reason="make test has newcomers in test_inprocess_late.py")
async def test_a_late_joiner_replays_the_ring_and_works_in_the_next_round(run_factory):
    run = await run_factory.start(9, names="ada bob cyd")
    await until_round(run, 4)
    await start_members(run, ["eve"])
    await run.finish()
    view = await assert_finished(run)
    assert view.entries[3].status == Status.PENDING  # a finished run has no active members
    ready = events_of(run, "eve", "ready")[-1]["round"]
    activated = events_of(run, "eve", "activated")[-1]["round"]
    first = events_of(run, "eve", "committed")[0]["round"]
    assert activated == ready + 1
    assert first == ready + 2
    assert 3 in included(run, "ada")[first]
    replayed = [event["round"] for event in events_of(run, "eve", "applied")]
    assert replayed == list(range(9))
    assert_fees_reported(run)
