"""An observer while RPC nodes are away, and when the accounts of a run are closed."""

from dataclasses import dataclass

import pytest
from support.runs import NO_AUDITS, until_round

from troth_cli.observe.observer import GONE_EARLY_SECONDS, GONE_SECONDS, Observer, ObserverSettings
from troth_client.transport.memory import memory_transport
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import RpcUnreachableError
from troth_localnet.direct import DirectRpc

SECONDS = 20.0


class Switch(DirectRpc):
    """A node that can be switched off, or shows no account at all."""

    is_dead = False
    is_empty = False

    async def get_accounts(self, addresses):
        if self.is_dead:
            raise RpcUnreachableError("switch", "connection refused")
        slot, accounts = await super().get_accounts(addresses)
        return slot, [None] * len(accounts) if self.is_empty else accounts


@dataclass
class Clock:
    """Seconds that the test moves; each reading is a moment later than the last."""

    now: float = 100.0

    def __call__(self):
        self.now += 0.001
        return self.now


async def look_until(observer, clock, holds):
    """Let seconds pass, some at a time, until an observation holds."""
    for _ in range(200):
        seen = observer.latest()
        if holds(seen):
            return seen
        clock.now += 3.0
        await observer.changed(0.5)
    raise AssertionError(seen)


def observer_of(run, clock, rpc, settings=None):
    transport = memory_transport(run.network, "outsider", listens=False)
    client = CoordinatorClient(rpc)
    return Observer(client, run.at.run, settings, clock=clock, transport=transport)


async def test_while_the_node_is_away_the_last_state_stays_with_its_age(run_factory):
    run = await run_factory.start(6, names="ada bob", **NO_AUDITS)
    await until_round(run, 3)
    run.runtime.join()  # time stands still
    rpc, clock = Switch(run.chain), Clock()
    async with observer_of(run, clock, rpc) as observer:
        await observer.settle(SECONDS)
        before = observer.latest()
        rpc.is_dead = True
        away = await look_until(observer, clock, lambda seen: seen.trouble)
        assert "connection refused" in away.trouble
        assert away.age_seconds > 0
        assert not away.is_gone
        assert away.run == before.run
        assert away.rounds == before.rounds
        assert away.participants == before.participants
        clock.now += 100.0
        assert observer.latest().age_seconds >= away.age_seconds + 100.0
        rpc.is_dead = False
        back = await look_until(observer, clock, lambda seen: not seen.trouble)
        assert back.age_seconds < 10.0
    run.runtime.leave()
    await run.finish()


async def test_a_finished_run_that_is_closed_stays_as_it_last_was(run_factory):
    run = await run_factory.start(3, names="ada bob", **NO_AUDITS)
    await run.finish()
    rpc, clock = Switch(run.chain), Clock()
    async with observer_of(run, clock, rpc) as observer:
        rpc.is_empty = True
        began = clock.now
        gone = await look_until(observer, clock, lambda seen: seen.is_gone)
        assert gone.run.phase == "finished"
        assert clock.now - began >= GONE_SECONDS
        assert len(gone.participants) == 2
        assert observer.latest().is_gone


async def test_a_node_that_shows_no_account_for_a_moment_closes_no_open_run(run_factory):
    run = await run_factory.start(5, names="ada bob", **NO_AUDITS)
    await until_round(run, 2)
    run.runtime.join()
    rpc, clock = Switch(run.chain), Clock()
    async with observer_of(run, clock, rpc) as observer:
        rpc.is_empty = True
        seen = await look_until(observer, clock, lambda seen: seen.trouble)
        assert clock.now - 100.0 < GONE_EARLY_SECONDS
        assert not seen.is_gone
        rpc.is_empty = False
        assert not (await look_until(observer, clock, lambda seen: not seen.trouble)).is_gone
    run.runtime.leave()
    await run.finish()


@pytest.mark.parametrize(("follows", "seconds"), [(True, SECONDS), (False, 0.2)])
async def test_one_look_is_all_if_nobody_follows(run_factory, monkeypatch, follows, seconds):
    """An observer that follows looks again at once here, and meets the dead node."""
    monkeypatch.setattr("troth_cli.observe.observer.LOOK_SECONDS", 0.0)
    run = await run_factory.create(3, **NO_AUDITS)
    rpc, clock = Switch(run.chain), Clock()
    settings = ObserverSettings(follows=follows)
    async with observer_of(run, clock, rpc, settings) as observer:
        await observer.settle(SECONDS)
        before = observer.latest()
        rpc.is_dead = True
        clock.now += 100.0
        assert await observer.wait_beyond(before.revision, seconds) is follows
        assert ("connection refused" in observer.latest().trouble) is follows
        assert observer.latest().run == before.run
