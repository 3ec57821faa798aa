"""A participant that is asked to stop while audits wait for it, and comes back in time."""

from dataclasses import replace

import pytest
from support.ports import Wrapped
from support.runs import (
    FIVE,
    NO_AUDITS,
    assert_conserved,
    assert_finished,
    events_of,
    member,
    start_members,
    until,
    until_round,
)

from troth_client.audit.debts import debts
from troth_client.state.errors import WeightsLostError
from troth_coordinator.rules.audit_view import NOTHING_OWED

pytestmark = pytest.mark.long(reason="runs long enough for audits to leave the ring")

LONG = {
    "openings_slots": 40,
    "verdict_commit_slots": 60,
    "verdict_reveal_slots": 40,
    "case_slots": 10,
    "p_new_ppm": 1_000_000,
    "audit_cap": 5,
}
"""Windows that outlast a restart; everything is audited."""
RING = 8


def owed_by(one, view):
    return list(debts(one.here.audits.tracker, one.index, view))


async def test_who_stops_is_told_what_it_owes_and_pays_nothing_if_it_resumes_in_time(run_factory):
    run = await run_factory.create(8, **LONG)
    await start_members(run, FIVE)
    emma = member(run, "emma")
    await until(run, lambda view: len(owed_by(emma, view)) > 1)
    emma.here.state.stop.set()
    last = await emma.task
    owed = events_of(run, "emma", "owed")
    assert owed
    slots, took = min(one["slots"] for one in owed), sum(one["lamports"] for one in owed)
    assert slots > 10 and took > 0
    await until(run, lambda view: view.slot > last.slot + 5)
    await run.start(emma)
    await run.finish()
    view = await assert_finished(run)
    assert [entry.stake for entry in view.entries[:5]] == [
        run.settings.chain.min_stake_lamports
    ] * 5
    await assert_conserved(run)


async def test_a_restart_keeps_the_weights_of_audits_that_the_ring_has_dropped(run_factory):
    """They are not settled yet: who cannot recompute then judges nothing."""
    run = await run_factory.create(24, **LONG | {"ring": RING, "verdict_commit_slots": 150})
    run.wrap = without_verdicts_of_dora
    await start_members(run, FIVE)
    emma = member(run, "emma")
    await until(run, lambda view: len(unsettled(emma, view)) > 1)
    await run.stop(emma)
    await run.start(emma)
    view = await until_round(run, (await run.view()).run.round + 2)
    still = unsettled(emma, view)
    assert still
    assert still <= set(emma.here.state.store.weight_rounds())


async def test_of_settled_audits_nothing_is_kept_once_the_ring_has_dropped_the_round(run_factory):
    """Their accounts stay open for cases, but the program refuses a case by then."""
    run = await run_factory.create(24, **LONG | {"ring": RING, "case_slots": 2_000})
    await start_members(run, FIVE)
    emma = member(run, "emma")
    view = await until(run, lambda view: len(settled(emma, view)) > 3)
    store, oldest = emma.here.state.store, view.run.round - 1 - RING
    old = {round_ for round_ in store.weight_rounds() if round_ < oldest}
    assert old <= {*unsettled(emma, view), view.run.root_round}


def without_verdicts_of_dora(one, ports):
    """Its seats stay silent, so that the others wait for the end of the window."""

    def gradient(_weights, _batch):
        raise WeightsLostError("weights", "none", "")

    if one.name != "dora":
        return ports
    return replace(ports, judges=lambda honest: Wrapped(honest, gradient=gradient))


def dropped(one, view):
    """The open audits of rounds that the ring had dropped before the last close."""
    oldest = view.run.round - 1 - RING
    return [audit for audit in one.here.audits.tracker.audits(view) if audit.round < oldest]


def unsettled(one, view):
    return {audit.round for audit in dropped(one, view) if audit.stage not in NOTHING_OWED}


def settled(one, view):
    return {audit.round for audit in dropped(one, view)} - unsettled(one, view)


@pytest.mark.parametrize("missed", [0, 1])
async def test_a_stop_that_misses_a_round_costs_no_momentum(run_factory, missed):
    """It stopped with all settled. A round later the chain still names the last one it was in."""
    run = await run_factory.create(9, **NO_AUDITS)
    await start_members(run, ["ada", "bob", "cyd", "dan"])
    dan = member(run, "dan")
    await until(run, lambda _: any(one["round"] == 2 for one in dan.events.named("round_closed")))
    dan.here.state.stop.set()
    await until(run, lambda _: dan.task.done())
    last = dan.events.named("encoded")[-1]["round"]
    await until_round(run, last + 1 + missed)
    await run.start(dan)
    await run.finish()
    await assert_finished(run)
    again = next(one for one in dan.events.named("encoded") if one["round"] > last)
    assert again["round"] == last + 1 + missed
    assert again["previous"] == last
