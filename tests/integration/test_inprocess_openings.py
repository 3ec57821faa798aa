"""In a whole run: each trainer opens each round that was seeded, also after kill -9 and a fork."""

from dataclasses import replace
from unittest.mock import AsyncMock

import pytest
from support.ports import Wrapped
from support.runs import (
    AUDITED,
    FIVE,
    Chronicle,
    assert_conserved,
    events_of,
    included,
    member,
    start_members,
    time_stopped,
    until,
    until_round,
)

from troth_attestation import header as headers
from troth_attestation import openings
from troth_attestation.quorum import AuditOutcome
from troth_client.audit.drawn import frozen_seed, sampled_payload
from troth_client.runtime.files import DiskFullError
from troth_client.state.errors import SeedNotFrozenError
from troth_client.state.openings_store import OpeningsStore
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.view import SeedStatus

CAST = ("ada", "bob", "cyd")


async def drawn(run, name, round_):
    """The tiles that a round's seed asks a member to open, from the chain and its own header."""
    state = member(run, name).here.state
    (account,) = await run.client.read_rounds(run.at.run, [round_])
    header = headers.decode(state.store.load_submission(round_).header)
    count = state.config.judge.openings_tiles
    return sampled_payload(frozen_seed(account), header, state.num_tiles, count)


async def open_round(run, name, round_):
    """Let a member make its opening set, as if it were sampled."""
    sampled = await drawn(run, name, round_)
    return sampled, member(run, name).here.work.open_tiles(sampled)


async def fetched(run, taker, sampled, root, holder):
    """The opening set that a member gets from a holder."""
    here = member(run, taker).here
    return await here.audits.openings.fetch(here.submissions.transport, sampled, root, [holder])


async def shown_to(run, taker, name, round_):
    """Make a set, let another member fetch and read it."""
    sampled, root = await open_round(run, name, round_)
    data = await fetched(run, taker, sampled, root, name)
    return sampled, openings.decode(data, sampled)


async def test_each_seeded_round_can_be_opened_and_fetched_while_the_run_goes_on(run_factory):
    run = await run_factory.start(8, names="ada bob cyd")
    await until_round(run, 6)
    with time_stopped(run):
        view = await run.view()
        accounts = await run.client.read_rounds(run.at.run, list(range(view.run.round)))
        frozen = [one.round for one in accounts if one.seed_status == SeedStatus.FROZEN]
        assert frozen[:3] == [0, 1, 2]
        for giver, taker in zip(CAST, (*CAST[1:], CAST[0]), strict=True):
            for round_ in frozen:
                sampled, found = await shown_to(run, taker, giver, round_)
                assert found.tiles == sampled.tiles
                assert found.after.any()
                assert bool(found.before.any()) == (sampled.previous_included != NONE)
        # Meanwhile the others have come to rest in this slot, and may have frozen one more.
        accounts = await run.client.read_rounds(run.at.run, list(range(view.run.round)))
        pending = [one.round for one in accounts if one.seed_status != SeedStatus.FROZEN]
        for round_ in pending:
            with pytest.raises(SeedNotFrozenError):
                await open_round(run, "ada", round_)
    await run.finish()
    assert included(run, "ada")[7] == [0, 1, 2]


async def test_a_killed_trainer_opens_what_it_committed_to_before(run_factory):
    run = await run_factory.start(8, names="ada bob cyd")
    await until_round(run, 5)
    with time_stopped(run):
        bob = member(run, "bob")
        made, root = await open_round(run, "bob", 1)
        await run.stop(bob)
        await run.start(bob)
        assert bob.here.state.archive.memory_bytes == 0
        assert bob.here.state.archive.waiting()[:4] == [0, 1, 2, 3]
        assert bob.here.audits.openings.find(1, bob.index) == root
        assert await fetched(run, "ada", made, root, "bob")
        sampled, found = await shown_to(run, "ada", "bob", 2)
        assert found.tiles == sampled.tiles


async def test_released_rounds_are_forgotten_and_a_fork_asks_for_them_again(run_factory):
    run = await run_factory.start(12, names="ada bob cyd")
    await until_round(run, 4)
    here = member(run, "ada").here
    ada, sets, index = here.state, here.audits.openings, here.chain.index
    for round_ in range(4):
        ada.archive.release(round_)
    await until_round(run, 10)
    with time_stopped(run):
        view = await run.view()
        # 4 was not released, and builds on 3.
        assert min(ada.store.residual_links()) == 3
        for round_ in (5, 7):
            await open_round(run, "ada", round_)
            ada.archive.release(round_)
        forked = replace(view, run=replace(view.run, round=6))
        replay = replace(
            here.replay, chain=Wrapped(here.chain, look=AsyncMock(return_value=forked))
        )
        while ada.replica.round > 6:
            await replay.follow_corrections(forked)
        assert 5 not in ada.archive.waiting()
        assert 7 in ada.archive.waiting()
        assert sets.find(5, index) is not None
        assert sets.find(7, index) is not None, "one that was drawn anew takes its place"


async def test_looks_of_the_past_take_back_no_round_and_throw_no_set_away(run_factory):
    """Of several nodes behind one address one lags: a round that has closed is open there."""
    run = await run_factory.create(6)
    past, shown, num_closed = [], [], []

    def wrap(one, ports):
        async def snapshot(address, *hint):
            past.append(await ports.chain.snapshot(address, *hint))
            is_next = num_closed and len(one.events.named("round_closed")) > num_closed[0]
            if not is_next or len(shown) >= 3:
                return past[-1]
            shown.append(next(view for view in past if view.run.round == 1))
            return shown[-1]

        client = Wrapped(ports.chain, snapshot=snapshot)
        return replace(ports, chain=client) if one.name == "bob" else ports

    run.wrap = wrap
    await start_members(run, CAST)
    await until_round(run, 3)
    bob = member(run, "bob")
    with time_stopped(run):
        _sampled, root = await open_round(run, "bob", 1)
        num_closed.append(len(bob.events.named("round_closed")))
    await until_round(run, 5)
    assert len(shown) == 3
    assert bob.events.named("round_corrected") == []
    assert bob.here.audits.openings.find(1, bob.index) == root
    await run.finish()
    assert included(run, "ada")[5] == [0, 1, 2]


def settled(reported, target):
    """The outcomes of the audits of a member so far."""
    return [event.outcome for event in reported.named("AuditSettled", target=target)]


async def assert_nobody_paid(run):
    view = await run.view()
    stake = run.settings.chain.min_stake_lamports
    assert [entry.stake for entry in view.entries[:5]] == [stake] * 5
    assert sum(entry.seat_faults + entry.strikes for entry in view.entries) == 0
    await assert_conserved(run)


@pytest.mark.long(reason="a whole run")
async def test_a_target_that_nobody_can_reach_loses_nothing(run_factory):
    """It sits behind a line that lets nothing in: it pushes, and others serve for it."""
    run = await run_factory.create(8, **AUDITED | {"case_slots": 10})
    reported = Chronicle(run)
    await start_members(run, FIVE)
    emma = member(run, "emma")
    run.network.hide("emma")
    await run.finish()
    assert set(settled(reported, emma.index)) == {AuditOutcome.CLEARED}
    assert included(run, "anna")[7] == [0, 1, 2, 3, 4]
    assert sum(event["taken"] for event in events_of(run, "emma", "openings_pushed")) > 0
    judged = [event["target"] for event in events_of(run, "emma", "judged")]
    assert judged, "it judges others too"
    await assert_nobody_paid(run)


@pytest.mark.long(reason="a whole run")
async def test_a_target_that_dies_after_its_push_is_judged_all_the_same(run_factory):
    """kill -9 in the slot in which the first set has reached its seats; it comes back later."""
    run = await run_factory.create(8, **AUDITED | {"audit_cap": 4, "case_slots": 10})
    reported = Chronicle(run)
    await start_members(run, FIVE)
    emma = member(run, "emma")
    await until(run, lambda _: bool(events_of(run, "emma", "openings_pushed")))
    with time_stopped(run):
        (posted,) = events_of(run, "emma", "openings_posted")[:1]
        await run.stop(emma)
        number = posted["round"]
        about = {"target": emma.index, "round": number}
        judges = FIVE[:4]
        await until(run, lambda _: bool(reported.named("AuditSettled", **about)), is_stopped=True)
        said = [e for n in judges for e in events_of(run, n, "judged") if e["round"] == number]
        assert {e["verdict"] for e in said if e["target"] == emma.index} == {"OK"}
        (outcome,) = reported.named("AuditSettled", **about)
        assert outcome.outcome == AuditOutcome.CLEARED
        await run.start(emma)
    await run.finish()


@pytest.mark.long(reason="a whole run; test_inprocess_disk.py has the full disk")
async def test_holders_with_full_disks_cost_nobody_anything(run_factory, monkeypatch):
    """Nobody but the targets can keep a set: the seats fetch theirs from the target, as before."""
    run = await run_factory.create(6, **AUDITED | {"case_slots": 10})
    reported = Chronicle(run)
    await start_members(run, FIVE)

    making = []

    def make(store, *args):
        making.append(store)
        root = made(store, *args)
        making.remove(store)
        return root

    def keep(store, *args, durable):
        if store not in making:
            raise DiskFullError("room", "none", "")
        whole(store, *args, durable=durable)

    whole, made = OpeningsStore.keep, OpeningsStore.make
    monkeypatch.setattr(OpeningsStore, "keep", keep)
    monkeypatch.setattr(OpeningsStore, "make", make)
    await run.finish()
    outcomes = [outcome for index in range(5) for outcome in settled(reported, index)]
    assert set(outcomes) == {AuditOutcome.CLEARED}
    refused = [e["failed"] for n in FIVE for e in events_of(run, n, "openings_pushed")]
    assert sum(refused) > 0
    await assert_nobody_paid(run)
