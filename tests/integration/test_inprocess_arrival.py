"""Newcomers and returning members, while nodes are away or late and signals ask to stop."""

from dataclasses import replace

import pytest
from support.ports import Wrapped
from support.runs import (
    NO_AUDITS,
    assert_finished,
    events_of,
    included,
    member,
    start_members,
    until_round,
)

from troth_client.network.errors import StoppedError
from troth_coordinator.chain.errors import RpcError
from troth_coordinator.rules.ids import Digest
from troth_coordinator.rules.membership import index_of_owner

QUIET = {"ring": 16, "keep_rounds": 3, "checkpoint_every": 10, **NO_AUDITS}


@pytest.mark.long(reason="another way to arrive, a run each")
@pytest.mark.parametrize(
    ("door", "never_after"),
    [
        ("restoring", "fetched"),
        ("fetching", "fetched"),
        ("fetched", "applied"),
        ("round_closed", "arrived"),
    ],
)
async def test_nothing_is_deposited_after_a_request_to_stop(run_factory, door, never_after):
    """Ctrl-C while it fetches or replays: it ends soon, and its stake stays where it is."""
    run = await run_factory.start(40, names="ada bob cyd", **QUIET)
    await until_round(run, 24)
    dan = await run.add_late("dan")
    events, emit = dan.events, dan.events.emit

    def watched(event: str, /, **fields) -> None:
        emit(event, **fields)
        if event == door:
            dan.here.state.stop.set()

    events.emit = watched
    with pytest.raises(StoppedError):
        await dan.task
    dan.task = None
    assert not events.named(never_after)
    assert not events.named("joined")
    view = await run.view()
    assert index_of_owner(view.entries, bytes(dan.owner.pubkey())) is None


@pytest.mark.long(reason="another way to arrive, a run each")
@pytest.mark.parametrize("call", ["snapshot", "read_rounds", "read_participants"])
async def test_a_node_that_is_away_for_a_moment_ends_no_arrival(run_factory, call):
    """Three answers are missing while the newcomer fetches; the next ones are there."""
    run = await run_factory.create(40, **QUIET)
    num_failed = 0

    def wrap(one, ports):
        if one.name != "dan":
            return ports
        honest = getattr(ports.chain, call)

        async def failing(*arguments):
            nonlocal num_failed
            if one.events.named("restoring") and num_failed < 3:
                num_failed += 1
                raise RpcError("the node", "an answer", "status 503", "try again")
            return await honest(*arguments)

        return replace(ports, chain=Wrapped(ports.chain, **{call: failing}))

    run.wrap = wrap
    await start_members(run, ["ada", "bob", "cyd"])
    await until_round(run, 20)
    await run.add_late("dan")
    await run.finish()
    await assert_finished(run)
    assert num_failed == 3
    assert len(events_of(run, "dan", "joined")) == 1
    assert 3 in included(run, "ada")[39]


@pytest.mark.long(reason="another way to arrive, a run each")
async def test_a_fork_that_replaces_a_checkpoint_is_followed_at_once(run_factory):
    """The first looks show another root of round 10: nobody serves that one, then it is gone."""
    run = await run_factory.create(40, **QUIET)
    num_looks = 0

    def wrap(one, ports):
        if one.name != "dan":
            return ports

        async def snapshot(address):
            nonlocal num_looks
            num_looks += 1
            view = await ports.chain.snapshot(address)
            other = Digest(bytes([1]) * 32)
            return view if num_looks > 6 else replace(view, run=replace(view.run, root=other))

        return replace(ports, chain=Wrapped(ports.chain, snapshot=snapshot))

    run.wrap = wrap
    await start_members(run, ["ada", "bob", "cyd"])
    await until_round(run, 16)
    await run.add_late("dan")
    await run.finish()
    await assert_finished(run)
    assert [event["round"] for event in events_of(run, "dan", "restoring")] == [10, 10]
    assert 3 in included(run, "ada")[39]


@pytest.mark.long(reason="a whole run with a latecomer and an RPC node that lags")
async def test_a_node_that_lags_behind_a_loaded_checkpoint_starts_no_dispute(run_factory):
    """Of two nodes behind one address the second is a round late, just after a member's jump."""
    run = await run_factory.start(40, names="ada bob cyd dan", **QUIET)
    dan = member(run, "dan")
    await until_round(run, 3)
    await run.stop(dan)
    await until_round(run, 19)
    late, num_late = await run.view(), 0

    def wrap(one, ports):
        async def snapshot(address):
            nonlocal num_late
            has_jumped = one.events.named("fetched") and one.here.state.replica.round >= 20
            if has_jumped and num_late < 3:
                num_late += 1
                return late
            return await ports.chain.snapshot(address)

        return replace(ports, chain=Wrapped(ports.chain, snapshot=snapshot))

    run.wrap = wrap
    await until_round(run, 20)
    await run.start(dan)
    await run.finish()
    await assert_finished(run)
    assert num_late == 3
    assert not events_of(run, "dan", "root_differs")
    assert not dan.here.state.store.dispute_file.exists()
    assert 3 in included(run, "ada")[39]
