"""Whole runs on a congested chain: congestion below the cap costs fees, and no stake.

A rush lets in only what pays its price; everything else vanishes. The clock is fake.
"""

from dataclasses import dataclass, field, replace

import pytest
from support import fake_time
from support.event_fields import number
from support.runs import (
    AUDITED,
    NO_AUDITS,
    RunFactory,
    assert_finished,
    events_of,
    included,
    raise_failures,
    start_members,
)

from troth_coordinator.chain.accounts import program_reader
from troth_coordinator.chain.client import CoordinatorClient, SendPolicy
from troth_coordinator.chain.pricing import Pricing
from troth_coordinator.chain.priority import PriorityPolicy
from troth_coordinator.chain.rpc import Account
from troth_coordinator.rules.phase import Phase

SLOT_SECONDS = 0.4
CAP, EPOCH_CAP = 100_000, 10_000_000
PRICE = 400_000
"""Above what a late send begins with, below what the cap pays for the dearest of ours."""


@dataclass
class Traffic:
    """Clients that wait for slots, each with its policy, and a rush whenever `is_rush` says so."""

    run: object
    policies: dict[str, str]
    clients: dict[str, CoordinatorClient] = field(default_factory=dict)
    rushed: set[int] = field(default_factory=set)

    def wrap(self, one, ports):
        """Give a member its priority policy."""
        self.clients[one.name] = CoordinatorClient(
            self.run.rpc,
            policy=SendPolicy(SLOT_SECONDS),
            sleeper=self.sleep,
            pricing=Pricing(
                self.run.rpc, PriorityPolicy.parse(self.policies[one.name], CAP, EPOCH_CAP)
            ),
        )
        return replace(ports, chain=self.clients[one.name])

    async def sleep(self, _seconds):
        await self.run.runtime.wait()

    def state(self):
        """Return the run as it stands in the open slot."""
        found = self.run.chain.accounts.get(self.run.at.run)
        account = Account(found.lamports, found.owner, found.data, found.executable)
        return program_reader().run(self.run.at.run, account)

    def rush(self, slot):
        """Fill the block of a slot."""
        self.rushed.add(slot)
        self.run.chain.congestion.add(slot, slot, PRICE)

    def priority_paid(self, name):
        """Return what a member paid for each transaction, beside the fee for its signature."""
        paid = []
        for event in self.run_events(name):
            if "fee" in event:
                paid.append(number(event, "fee") - 5_000)
        return paid

    def run_events(self, name):
        """Return all events of a member."""
        return next(one for one in self.run.members if one.name == name).events.events


@pytest.fixture
def factory(data, tmp_path):
    return RunFactory(data, tmp_path)


async def begin(factory, policies, rounds, **changes):
    run = await factory.create(rounds, **changes)
    traffic = Traffic(run, policies)
    run.wrap = traffic.wrap
    await start_members(run, policies)
    return run, traffic


def play(factory, story):
    async def work():
        try:
            return await story()
        finally:
            await factory.close()

    return fake_time.run(work())


def stakes(view, num):
    return [entry.stake for entry in view.entries[:num]]


def test_a_full_commit_window_is_missed_without_fees_and_kept_with_them(factory):
    """Rounds 3 and 4 take only who pays; both ways nobody loses stake."""
    policies = {"ada": "none", "bob": "percentile:75", "cyd": "percentile:75", "dan": "fixed:50000"}

    async def story():
        run, traffic = await begin(factory, policies, 6, **NO_AUDITS)
        before = await run.view()

        def on_slot(slot):
            state = traffic.state()
            if state.phase == Phase.COMMIT and state.round in (3, 4):
                traffic.rush(slot)

        run.on_slot.append(on_slot)
        await run.finish()
        raise_failures(run)
        return traffic, before, await assert_finished(run)

    traffic, before, after = play(factory, story)
    assert len(traffic.rushed) > 40, "whole windows"
    assert stakes(after, 4) == stakes(before, 4)
    everybody = {number: [0, 1, 2, 3] for number in range(6)}
    assert included(traffic.run, "bob") == everybody | {3: [1, 2, 3], 4: [1, 2, 3]}
    assert set(traffic.priority_paid("ada")) == {0}
    for name in ("bob", "cyd", "dan"):
        assert 0 < max(traffic.priority_paid(name)) <= CAP
        assert traffic.clients[name].pricing.epoch.spent <= EPOCH_CAP


@pytest.mark.long(reason="a whole run with audits, in which half of all blocks are full")
def test_no_reveal_is_lost_to_congestion_below_the_cap(factory):
    """Rushes come and go faster than recent fees show them: only haste tells what to offer."""
    names = ("ada", "bob", "cyd", "dan", "eve")

    async def story():
        windows = AUDITED | {"openings_slots": 40, "verdict_commit_slots": 60}
        windows |= {"verdict_reveal_slots": 40}
        policies = dict.fromkeys(names, "percentile:50")
        run, traffic = await begin(factory, policies, 12, **windows)
        before = await run.view()

        def on_slot(slot):
            if traffic.state().round >= 2 and slot % 110 < 55:
                traffic.rush(slot)

        run.on_slot.append(on_slot)
        await run.finish()
        raise_failures(run)
        return traffic, before, await assert_finished(run)

    traffic, before, after = play(factory, story)
    run = traffic.run
    assert len(traffic.rushed) > 80
    assert stakes(after, 5) == stakes(before, 5)
    revealed = sum(len(events_of(run, name, "verdict_revealed")) for name in names)
    assert revealed >= 15
    assert [entry.seat_faults for entry in after.entries[:5]] == [0] * 5
    assert [entry.openings_step for entry in after.entries[:5]] == [0] * 5
    for name in names:
        assert max(traffic.priority_paid(name)) <= CAP
