"""Whole runs in which the RPC nodes fail in every way: nobody ends, nobody loses stake.

The clock is fake: a node that is silent costs no time here.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from support import fake_time
from support.rpc_nodes import (
    Weather,
    foreign,
    garbage,
    limited,
    nothing,
    refused,
    short,
    unavailable,
)
from support.runs import (
    AUDITED,
    NO_AUDITS,
    RunFactory,
    assert_finished,
    events_of,
    included,
    member,
    raise_failures,
    start_members,
    until_round,
)

from troth_client.network.rpc_events import RpcEvents
from troth_coordinator.chain.client import CoordinatorClient, SendPolicy
from troth_coordinator.chain.failover import FailoverRpc
from troth_coordinator.rules.view import Status

SLOT_SECONDS = 0.4
NAMES = ("ada", "bob", "cyd", "dan")
WAYS: dict[str, Callable[[Weather], None]] = {
    "refused": lambda node: setattr(node, "raises", refused),
    "503": lambda node: setattr(node, "raises", unavailable),
    "429": lambda node: setattr(node, "raises", limited),
    "garbage": lambda node: setattr(node, "raises", garbage),
    "null": lambda node: setattr(node, "alter", nothing),
    "foreign": lambda node: setattr(node, "alter", foreign),
    "short": lambda node: setattr(node, "alter", short),
    "frozen": lambda node: setattr(node, "stands", True),
    "lagging": lambda node: setattr(node, "lag", 20),
    "silent": lambda node: setattr(node, "silent", True),
}
PATIENT = {"openings_slots": 60, "verdict_commit_slots": 90, "verdict_reveal_slots": 60}
LASTS_SLOTS = 14
NUM_ROUNDS = 36


@dataclass
class Skies:
    """The nodes of every member, and the ways in which they fail, one after another."""

    run: object
    num_nodes: int
    nodes: dict[str, list[Weather]] = field(default_factory=dict)
    every_slots: int = 28
    seen: list[str] = field(default_factory=list)
    first: int = 0

    def wrap(self, one, ports):
        """Put failing nodes between a member and the chain."""
        names = [f"node-{number}" for number in range(self.num_nodes)]
        self.nodes[one.name] = [Weather(name, self.run.rpc) for name in names]
        rpc = FailoverRpc(
            {node.name: node for node in self.nodes[one.name]},
            report=RpcEvents(one.events),
            clock=lambda: self.run.chain.slot * SLOT_SECONDS + fake_time.now(),
            random=Random(one.name),
        )
        client = CoordinatorClient(rpc, policy=SendPolicy(SLOT_SECONDS), sleeper=self.sleep)
        return replace(ports, chain=client)

    async def sleep(self, _seconds):
        await self.run.runtime.wait()

    def on_slot(self, slot):
        """Let the first node of everybody fail in the next way, for some slots."""
        number, within = divmod(slot - self.first, self.every_slots)
        if not 0 <= number < len(WAYS):
            return
        way = list(WAYS)[number]
        for nodes in self.nodes.values():
            if within == 0:
                WAYS[way](nodes[0])
            elif within == LASTS_SLOTS:
                nodes[0].heal()
        if within == 0:
            self.seen.append(way)


async def begin(factory, num_nodes, rounds, names=NAMES, **changes):
    run = await factory.create(rounds, **changes)
    skies = Skies(run, num_nodes)
    run.wrap = skies.wrap
    await start_members(run, names)
    return run, skies


def play(factory, story):
    """Play a story on the fake clock; end its members, whatever happens."""

    async def work():
        try:
            return await story()
        finally:
            await factory.close()

    return fake_time.run(work())


@pytest.fixture
def factory(data, tmp_path):
    return RunFactory(data, tmp_path)


async def weather(factory, num_nodes, names, every_slots, **changes):
    """Play a run through all kinds of weather; return it with the stakes before."""
    run, skies = await begin(factory, num_nodes, NUM_ROUNDS, names, **changes)
    view = await until_round(run, 1)
    skies.first, skies.every_slots = run.chain.slot + 1, every_slots
    run.on_slot.append(skies.on_slot)
    await run.finish()
    raise_failures(run)
    assert skies.seen == list(WAYS)
    after = await assert_finished(run)
    return run, view.entries[: len(names)], after.entries[: len(names)]


def assert_reported(run, names):
    for name in names:
        told = events_of(run, name, "rpc_trouble")
        assert {one["node"] for one in told} == {"node-0"}
        assert all(one["seconds"] >= 0 and one["meanwhile"] for one in told)
        assert events_of(run, name, "rpc_recovered")


@pytest.mark.long(reason="a whole run of 36 rounds, with audits, under ten kinds of failure")
def test_no_weather_ends_a_participant_or_costs_it_stake(factory):
    """Everybody's only node fails, in all ways, for half of the time."""
    changes = AUDITED | PATIENT
    run, before, after = play(factory, lambda: weather(factory, 1, NAMES, 28, **changes))
    assert [entry.stake for entry in after] == [entry.stake for entry in before]
    assert not {entry.status for entry in after} & {Status.JAILED, Status.BARRED, Status.LEFT}
    assert events_of(run, "ada", "audit_changed"), "audits went on"
    assert_reported(run, NAMES)


@pytest.mark.long(reason="a whole run of 36 rounds under ten kinds of failure")
def test_with_a_second_node_no_round_is_missed(factory):
    names = NAMES[:3]
    run, before, after = play(factory, lambda: weather(factory, 2, names, 18, **NO_AUDITS))
    assert [entry.stake for entry in after] == [entry.stake for entry in before]
    assert list(included(run, "ada").values()) == [[0, 1, 2]] * NUM_ROUNDS
    assert_reported(run, names)


@pytest.mark.long(reason="a whole run whose RPC node swallows transactions")
def test_a_node_that_swallows_transactions_holds_up_no_round(factory):
    """The participant cannot commit, but it follows every round, and says what waits."""

    async def story():
        run, skies = await begin(factory, 1, 9, names=NAMES[:3], **NO_AUDITS)
        await until_round(run, 2)
        skies.nodes["cyd"][0].swallows = True
        await until_round(run, 6)
        followed = {event["round"] for event in events_of(run, "cyd", "applied")}
        num_sends = len(member(run, "cyd").here.chain.sends)
        waiting = events_of(run, "cyd", "send_waiting")
        skies.nodes["cyd"][0].heal()
        await run.finish()
        await assert_finished(run)
        return run, followed, num_sends, waiting

    run, followed, num_sends, waiting = play(factory, story)
    assert followed >= {2, 3, 4}
    assert num_sends <= 20, "sends that are of no use end with their blockhash"
    assert {"commit_payload", "attest"} <= {one["what"] for one in waiting}
    assert all(one["tries"] >= 1 and one["seconds"] > 0 for one in waiting)
    assert 2 in included(run, "ada")[8], "it takes part again"
