"""Whole runs in which the first of two RPC nodes lies: nobody ends, leaves, or loses stake."""

from dataclasses import dataclass, field, replace
from random import Random

import pytest
from support import fake_time
from support.rpc_nodes import Read, Weather
from support.runs import (
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
from troth_coordinator.chain.codec import DISCRIMINATOR_BYTES
from troth_coordinator.chain.failover import FailoverRpc
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

LAYOUT = program_layout()
SLOT_SECONDS = 0.4
NAMES = ("ada", "bob", "cyd")
LASTS_SLOTS = 90
SOME_SLOTS = 10
NUM_ROUNDS = 10


def written(kind, at, value):
    """Show other bytes at a place of every account of a kind."""

    def alter(account):
        if account is None or len(account.data) != LAYOUT.accounts[kind].size:
            return account
        place = at(account.data)
        data = account.data[:place] + value + account.data[place + len(value) :]
        return replace(account, data=data)

    return alter


def run_field(name, value, size):
    place = DISCRIMINATOR_BYTES + LAYOUT.field("Run", name).offset
    return written("Run", lambda _data: place, value.to_bytes(size, "little"))


def entry_field(owner, name, value):
    """Show another value in the entry of an owner."""
    step = LAYOUT.field("Entry", name).offset - LAYOUT.field("Entry", "owner").offset
    return written("Roster", lambda data: data.index(bytes(owner)) + step, value)


def finished(one):
    is_over, long_ago = run_field("phase", Phase.FINISHED, 1), run_field("finished_slot", 1, 8)
    return lambda account: is_over(long_ago(account))


def left(one):
    return entry_field(one.owner.pubkey(), "status", bytes([Status.LEFT]))


def barred(one):
    return entry_field(one.owner.pubkey(), "status", bytes([Status.BARRED]))


def replaced(one):
    return entry_field(one.owner.pubkey(), "session", bytes(32))


def poor(one):
    """No system account has anything to spend."""

    def alter(account):
        is_wallet = account is not None and not account.data
        return replace(account, lamports=890_880) if is_wallet else account

    return alter


def vanished(one):
    """No system account is there."""
    return lambda account: None if account is not None and not account.data else account


def root_to_come(one):
    """The stored weights are those of a round that is far ahead."""
    return run_field("root_round", 1_000, 8)


def restart_to_come(one):
    """The weights from which the run restarted are those of a round that is far ahead."""
    before = run_field("restart_round", 4, 8)
    root = run_field("restart_root_round", 1_000, 8)
    return lambda account: before(root(account))


def restarted(one):
    """The run restarted just now, from weights of long ago: those of its last checkpoint."""

    def alter(account):
        if account is None or len(account.data) != LAYOUT.accounts["Run"].size:
            return account
        for name, source in (("restart_round", "round"), ("restart_root_round", "root_round")):
            place = DISCRIMINATOR_BYTES + LAYOUT.field("Run", source).offset
            value = int.from_bytes(account.data[place : place + 8], "little")
            account = run_field(name, value, 8)(account)
        return account

    return alter


def at_the_end(one):
    """The run is at its last round, and so are its stored weights, which nobody has."""
    last = {"round": NUM_ROUNDS, "root_round": NUM_ROUNDS, "next_checkpoint_round": 2 * NUM_ROUNDS}
    alters = [run_field(name, value, 8) for name, value in last.items()]

    def alter(account):
        for field_alter in alters:
            account = field_alter(account)
        return account

    return alter


LIES = {one.__name__: one for one in (finished, left, barred, replaced, poor, vanished)}


@dataclass
class Story:
    """The nodes of a run's members; those of the first member lie for some slots."""

    factory: RunFactory
    num_nodes: int
    lasts_slots: int = LASTS_SLOTS
    from_round: int = 3
    nodes: dict[str, list[Weather]] = field(default_factory=dict)

    def wrap(self, one, ports):
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
        if slot == self.first + self.lasts_slots:
            self.nodes["ada"][0].heal()

    async def play(self, alter_of):
        try:
            self.run = await self.factory.create(NUM_ROUNDS, **NO_AUDITS, case_slots=20)
            self.run.wrap = self.wrap
            await start_members(self.run, NAMES)
            await until_round(self.run, self.from_round)
            self.first = self.run.chain.slot
            self.run.on_slot.append(self.on_slot)
            self.nodes["ada"][0].alter = alter_of(member(self.run, "ada"))
            await self.run.finish()
            raise_failures(self.run)
            return self.run, (await assert_finished(self.run)).entries[:3]
        finally:
            await self.factory.close()


def per_account(alter):
    def read(found: Read) -> Read:
        return found[0], [alter(account) for account in found[1]]

    return read


@pytest.fixture
def play(data, tmp_path):
    def begin(num_nodes, alter_of, **about):
        story = Story(RunFactory(data, tmp_path), num_nodes, **about)
        return fake_time.run(story.play(alter_of))

    return begin


@pytest.mark.long(reason="a whole run of ten rounds for each of six lies")
@pytest.mark.parametrize("lie", LIES)
def test_what_one_of_two_nodes_says_alone_ends_nobody(play, lie):
    run, entries = play(2, lambda one: per_account(LIES[lie](one)))
    assert not {entry.status for entry in entries} & {Status.LEFT, Status.BARRED, Status.JAILED}
    assert {entry.stake for entry in entries} == {run.settings.chain.min_stake_lamports}
    assert not events_of(run, "ada", "leaving")
    assert 0 in included(run, "bob")[NUM_ROUNDS - 1], "it takes part again"


@pytest.mark.long(reason="a whole run of ten rounds")
def test_a_restart_that_one_of_two_nodes_makes_up_takes_nobodys_weights(play):
    run, _ = play(2, lambda one: per_account(restarted(one)), lasts_slots=SOME_SLOTS)
    assert not events_of(run, "ada", "restarted")
    assert 0 in included(run, "bob")[NUM_ROUNDS - 1], "it takes part again"


@pytest.mark.long(reason="a whole run of ten rounds for each lie")
@pytest.mark.parametrize(
    ("lie", "from_round", "num_nodes"),
    [(root_to_come, 0, 2), (restart_to_come, 3, 2), (at_the_end, 0, 1), (at_the_end, 0, 2)],
)
def test_rounds_to_come_that_a_node_makes_up_hold_up_nobody_for_good(
    play, lie, from_round, num_nodes
):
    about = {"from_round": from_round, "lasts_slots": SOME_SLOTS}
    run, entries = play(num_nodes, lambda one: per_account(lie(one)), **about)
    assert not {entry.status for entry in entries} & {Status.LEFT, Status.BARRED, Status.JAILED}
    assert {entry.stake for entry in entries} == {run.settings.chain.min_stake_lamports}
    assert 0 in included(run, "bob")[NUM_ROUNDS - 1], "it takes part again"
