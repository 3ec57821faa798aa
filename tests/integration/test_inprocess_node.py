"""Whole runs whose node fails: for a while, and for good."""

from dataclasses import replace

import pytest
from integration.inprocess_support import (
    assert_finished,
    enter,
    events_of,
    included,
    member,
    raise_failures,
    until_round,
)

from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import RpcUnreachableError


async def test_a_node_that_fails_for_a_while_costs_nothing_but_time(theatre):
    run = await theatre.create(6)
    failing = {"left": 0}

    def wrap(one, doors):
        if one.name != "cyd":
            return doors
        client = CoordinatorClient(Flaky(doors.chain.rpc, failing), sleeper=one_turn)
        return replace(doors, chain=client)

    run.wrap = wrap
    await enter(run, ["ada", "bob", "cyd"])
    for round_ in range(1, 5):
        await until_round(run, round_)
        failing["left"] = 5 * round_
    await run.finish()
    await assert_finished(run)
    assert len(events_of(run, "cyd", "chain_unreachable")) >= 5
    assert included(run, "ada") == {round_: [0, 1, 2] for round_ in range(6)}


async def test_a_node_that_stays_away_ends_the_client_with_its_reason(theatre):
    run = await theatre.create(6)
    failing = {"left": 0}

    def wrap(one, doors):
        if one.name != "cyd":
            return doors
        client = CoordinatorClient(Flaky(doors.chain.rpc, failing), sleeper=one_turn)
        return replace(doors, chain=client)

    run.wrap = wrap
    await enter(run, ["ada", "bob", "cyd"])
    await until_round(run, 1)
    failing["left"] = 10**9
    cyd = member(run, "cyd")
    with pytest.raises(RpcUnreachableError, match="check the address"):
        await cyd.task
    cyd.task = None
    await run.finish()
    raise_failures(run)


async def one_turn(_seconds: float) -> None:
    return None


class Flaky:
    """A node that does not answer for a number of calls."""

    def __init__(self, rpc, failing):
        self._rpc = rpc
        self._failing = failing

    def __getattr__(self, name):
        found = getattr(self._rpc, name)

        async def call(*args, **kwargs):
            if self._failing["left"] > 0:
                self._failing["left"] -= 1
                raise RpcUnreachableError("http://node", f"nothing during {name}")
            return await found(*args, **kwargs)

        return call
