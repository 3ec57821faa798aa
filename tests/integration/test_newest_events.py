"""The events of an account are read once each, while transactions come and nodes lack some."""

from dataclasses import replace

import pytest
from support.faulty_rpc import Faults, FaultyRpc, always, first
from support.runs import NO_AUDITS, until_round

from troth_audit.newest import MOST_TRIES, NewestEvents
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import MalformedReplyError
from troth_localnet.direct import DirectRpc

PLENTY = 10_000


@pytest.fixture
async def run(run_factory):
    """A run of which some rounds are over, at a moment that the test holds."""
    made = await run_factory.start(6, names="ada bob", **NO_AUDITS)
    await until_round(made, 2)
    made.runtime.join()
    yield made
    made.runtime.leave()


def reader(run, most=PLENTY, faults=None):
    rpc = FaultyRpc(run.chain, faults)
    return NewestEvents(CoordinatorClient(rpc), run.at.run, run.at.run, most), rpc.faults


async def test_each_transaction_is_read_once_and_new_ones_follow(run):
    newest, faults = reader(run)
    before = await newest.read()
    assert list(before) == await run.client.history(run.at.run, run.at.run)
    asked = faults.num_calls["forget"]
    assert await newest.read() == before
    assert faults.num_calls["forget"] == asked, "no transaction was read again"
    run.runtime.leave()
    await until_round(run, 4, is_stopped=False)
    run.runtime.join()
    after = await newest.read()
    assert after[: len(before)] == before
    assert list(after) == await run.client.history(run.at.run, run.at.run)
    assert not newest.is_cut


async def test_a_bound_keeps_the_newest_and_says_so(run):
    newest, faults = reader(run, most=3)
    events = await newest.read()
    assert newest.is_cut
    assert faults.num_calls["forget"] == 3
    assert list(events) == (await run.client.history(run.at.run, run.at.run))[-len(events) :]


async def test_a_transaction_that_the_node_lacks_for_a_moment_is_not_lost(run):
    newest, _ = reader(run, faults=Faults(forget=first(1)))
    assert await newest.read() == ()
    assert list(await newest.read()) == await run.client.history(run.at.run, run.at.run)


async def test_a_node_that_has_forgotten_its_transactions_is_not_asked_for_ever(run):
    newest, faults = reader(run, most=4, faults=Faults(forget=always))
    for _ in range(4 * MOST_TRIES):
        await newest.read()
    assert faults.num_calls["forget"] == 4 * MOST_TRIES


class Spoiler(DirectRpc):
    """A node that cuts the last bytes off each inner call."""

    async def transaction(self, signature):
        found = await super().transaction(signature)
        calls = [replace(call, written=call.data[:-3]) for call in found.inner_calls]
        return replace(found, inner_calls=tuple(calls))


async def test_events_that_a_node_cut_are_a_bad_answer_of_that_node(run):
    """Threat T62. A watcher goes on after it: it is no error of an installation."""
    newest = NewestEvents(CoordinatorClient(Spoiler(run.chain)), run.at.run, run.at.run, PLENTY)
    with pytest.raises(MalformedReplyError, match="getTransaction"):
        await newest.read()
