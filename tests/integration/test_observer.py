"""An outsider observes a whole run: what it says is what the members did."""

import asyncio
from statistics import mean

import pytest
from support.runs import AUDITED, NO_AUDITS, events_of, member, until_round

from troth_attestation.quorum import AuditOutcome
from troth_audit.history import read_closed
from troth_cli.observe.observer import Observer, ObserverSettings
from troth_client.transport.memory import memory_transport
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.rules.phase import Phase
from troth_localnet.direct import DirectRpc

SECONDS = 20.0
ONCE = ObserverSettings(follows=False)


async def observed(run, settings=ONCE, name="outsider"):
    """One look at a run, with all headers that members serve."""
    transport = memory_transport(run.network, name, listens=False)
    async with Observer(run.client, run.at.run, settings, transport=transport) as observer:
        await observer.settle(SECONDS)
        return observer.latest()


def mean_of(run, round_):
    """The mean loss of the payloads that a round included, as their trainers measured it."""
    (closed,) = [
        one for one in run.members[0].events.named("round_closed") if one["round"] == round_
    ]
    losses = {
        one.index: event["loss_micro"]
        for one in run.members
        for event in one.events.named("trained")
        if event["round"] == round_
    }
    return round(mean(losses[index] for index in closed["included"]))


async def test_the_loss_of_each_round_is_the_mean_of_what_the_included_trainers_measured(
    run_factory,
):
    run = await run_factory.start(6, names="ada bob cyd", **NO_AUDITS)
    await until_round(run, 4, Phase.ATTEST)
    seen = await observed(run)
    await run.finish()
    assert [one.chain.round for one in seen.rounds] == [0, 1, 2, 3]
    for one in seen.rounds:
        assert one.mean_loss_micro == mean_of(run, one.chain.round)
        assert one.loss.num_known == one.chain.num_included == 3
        assert one.loss.num_odd == 0
    assert seen.run.round == 4
    assert seen.first_round == 0
    assert {one.last_loss_round for one in seen.participants} == {3}
    assert {one.num_included for one in seen.participants} == {4}
    assert seen.time_left.num_rounds == 2
    assert seen.time_left.num_measured == 4
    assert (
        0
        < seen.time_left.slots
        <= 2
        * max(
            after.chain.open_slot - before.chain.open_slot
            for before, after in zip(seen.rounds, seen.rounds[1:], strict=False)
        )
    )
    assert seen.run.root_round == 0, "the program has stored no root yet"
    assert seen.run.newest_root_round == 3
    roots = [event["root"] for event in events_of(run, "ada", "round_closed")]
    assert seen.run.newest_root == roots[2], "of the weights that round 3 began with"


async def test_a_finished_run_shows_its_members_as_finished_and_no_time_left(run_factory):
    run = await run_factory.start(3, names="ada bob", **NO_AUDITS)
    await run.finish()
    seen = await observed(run)
    assert seen.run.phase == "finished"
    assert [one.status for one in seen.participants] == ["finished", "finished"]
    assert seen.time_left.seconds == 0
    assert seen.run.newest_root == seen.run.root
    assert seen.run.newest_root_round == seen.run.root_round == 3
    assert seen.warnings == ()
    assert all(one.mean_loss_micro is None for one in seen.rounds), "nobody serves any more"
    assert [one.loss.num_known for one in seen.rounds] == [0, 0, 0]


class SlowAccounts(DirectRpc):
    """A node that is silent while the run goes on; after its end it tells the rest once `open`."""

    def __init__(self, chain, run):
        super().__init__(chain)
        self.client = CoordinatorClient(DirectRpc(chain))
        self.run, self.open, self.num_waiting = run, asyncio.Event(), 0
        self.answers = asyncio.Event()
        self.answers.set()

    async def get_accounts(self, addresses):
        await self.answers.wait()
        if self.run not in addresses and await self.is_over():
            self.num_waiting += 1
            await self.open.wait()
        return await super().get_accounts(addresses)

    async def is_over(self):
        return (await self.client.read_run(self.run)).phase == Phase.FINISHED


async def test_the_rounds_before_the_end_are_told_though_their_accounts_come_after_it(run_factory):
    run = await run_factory.start(3, names="ada bob", **NO_AUDITS)
    rpc = SlowAccounts(run.chain, run.at.run)
    transport = memory_transport(run.network, "outsider", listens=False)
    client = CoordinatorClient(rpc)
    async with Observer(client, run.at.run, ObserverSettings(), transport=transport) as observer:
        rpc.answers.clear()  # no look may fall between the last round and the end
        await run.finish()
        rpc.answers.set()
        async with asyncio.timeout(SECONDS):
            while not (observer.latest().run.is_finished and rpc.num_waiting):
                await asyncio.sleep(0.01)
        settling = asyncio.create_task(observer.settle(SECONDS))
        await asyncio.sleep(0)
        rpc.open.set()
        await settling
        seen = observer.latest()
    assert [one.chain.round for one in seen.rounds] == [0, 1, 2]


async def test_headers_of_a_member_that_is_away_come_from_the_others(run_factory):
    run = await run_factory.start(6, names="ada bob cyd dan", **NO_AUDITS)
    await until_round(run, 3)
    await run.stop(member(run, "ada"))
    seen = await observed(run)
    assert seen.rounds[0].loss.num_known == 4
    assert seen.rounds[0].mean_loss_micro is not None


async def test_audits_that_are_open_are_listed_and_members_are_counted_as_witnesses(run_factory):
    run = await run_factory.start(8, names="ada bob cyd dan eve", **AUDITED)
    await until_round(run, 4)
    seen = await observed(run)
    assert seen.run.num_audits == len(seen.cases) > 0
    assert seen.run.num_eligible_witnesses == 5
    assert [row["round"] for row in seen.to_json()["audits"]] == [one.key[0] for one in seen.cases]


async def test_audits_that_are_over_are_listed_with_their_outcome(run_factory):
    run = await run_factory.start(3, names="ada bob cyd dan eve", **AUDITED)
    await run.finish()
    seen = await observed(run)
    known = await read_closed(run.client, run.at)
    still_open = {one.key for one in seen.cases}
    assert list(seen.closed) == [one for one in reversed(known) if one.key not in still_open]
    assert {one.outcome for one in seen.closed} == {AuditOutcome.CLEARED}
    assert not seen.is_closed_cut
    values = seen.to_json()["closed_audits"]
    assert {one["outcome"] for one in values} == {"cleared"}
    assert {one["stage"] for one in values} == {"closed"}
    cut = await observed(run, ObserverSettings(follows=False, most_transactions=8))
    assert cut.is_closed_cut
    assert 0 < len(cut.closed) < len(seen.closed)
    assert [one.key for one in cut.closed] == [one.key for one in seen.closed][: len(cut.closed)]


async def test_an_observer_follows_a_run_to_its_end(run_factory):
    run = await run_factory.start(5, names="ada bob", **NO_AUDITS)
    transport = memory_transport(run.network, "outsider", listens=False)
    rounds = []
    async with Observer(run.client, run.at.run, transport=transport) as observer:
        while not observer.latest().run.is_finished:
            if await observer.changed(SECONDS):
                rounds.append(observer.latest().run.round)
        last = observer.latest()
    await run.finish()
    assert rounds == sorted(rounds)
    assert last.run.round == 5
    assert [one.chain.round for one in last.rounds] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("rounds_from", [0, 2])
async def test_the_json_form_has_only_the_rounds_that_were_asked_for(run_factory, rounds_from):
    run = await run_factory.start(4, names="ada bob", **NO_AUDITS)
    await until_round(run, 3)
    values = (await observed(run)).to_json(rounds_from)
    assert [one["round"] for one in values["rounds"]] == list(range(rounds_from, 3))
    assert values["mean_loss_micro"] == values["rounds"][-1]["mean_loss_micro"]
