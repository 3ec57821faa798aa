"""Whole runs with audits: honest work is cleared, work that was not done costs the stake."""

import pytest
from integration.inprocess_support import (
    BOTH,
    assert_conserved,
    assert_finished,
    assert_one_root_per_round,
    authority,
    enter,
    events_of,
    member,
    phases,
    time_stopped,
    until,
    until_round,
)

from troth_coordinator.chain.operations import Owner
from troth_coordinator.rules.view import Role, Status

WINDOWS = {
    "openings_slots": 20,
    "verdict_commit_slots": 30,
    "verdict_reveal_slots": 20,
    "committee_commit_slots": 30,
    "committee_reveal_slots": 20,
    "appeal_slots": 20,
    "breaker_slots": 20,
    "case_slots": 60,
    "p_new_ppm": 1_000_000,
    "audit_cap": 2,
}
FIVE = ("anna", "bob", "carl", "dora", "emma")


async def test_honest_work_is_cleared_and_its_judges_are_paid(theatre):
    run = await theatre.create(8, **WINDOWS | {"openings_slots": 200, "case_slots": 10})
    await enter(run, FIVE)
    await run.finish()
    view = await assert_finished(run)
    await assert_conserved(run)
    assert_one_root_per_round(run)
    judged = [event for name in FIVE for event in events_of(run, name, "judged")]
    assert len(judged) >= 3 * 2 * 4
    assert {event["verdict"] for event in judged} == {"OK"}
    refused = [event for name in FIVE for event in events_of(run, name, "audit_opened_refused")]
    assert len(refused) <= len(judged), "what is over is not opened again"
    assert sum(entry.strikes for entry in view.entries) == 0
    stake = run.settings.chain.stake_lamports
    assert [entry.stake for entry in view.entries[:5]] == [stake] * 5


async def stake_and_tickets(run, name):
    """What is left of a member's stake, at work or unbonding."""
    one = member(run, name)
    owner = await run.client.read_participant(run.at.run, one.owner.pubkey())
    entry = (await run.view()).entries[one.index]
    return entry.stake + sum(ticket.lamports for ticket in owner.tickets)


async def test_who_leaves_answers_for_its_work_and_its_seats_first(theatre):
    """Its stake is unbonding: no openings, or silence on a seat, would be paid from there."""
    run = await theatre.create(24, **WINDOWS)
    await enter(run, FIVE)
    await until_round(run, 4)
    emma = member(run, "emma")
    before = len(events_of(run, "emma", "verdict_revealed"))
    await Owner(run.client, run.at, emma.owner).leave_run()
    await emma.task
    view = await run.view()
    assert view.entries[emma.index].status == Status.LEFT
    assert phases(emma)[-1] != "FINISHED", "it did not stay longer than it had to"
    await run.finish()
    assert await stake_and_tickets(run, "emma") == run.settings.chain.stake_lamports
    assert len(events_of(run, "emma", "verdict_revealed")) >= before
    judged = {(e["round"], e["target"]) for e in events_of(run, "emma", "verdict_committed")}
    shown = {(e["round"], e["target"]) for e in events_of(run, "emma", "verdict_revealed")}
    assert judged == shown
    await assert_conserved(run)


async def test_a_pause_longer_than_every_window_costs_nobody_anything(theatre):
    run = await theatre.create(8, **WINDOWS)
    await enter(run, FIVE)
    await until(run, lambda view: view.run.num_audits >= 2 and view.run.round >= 3)
    with time_stopped(run):
        await authority(run).pause_run()
        paused = (await run.view()).slot
        await until(run, lambda view: view.slot > paused + 150, is_stopped=True)
        await authority(run).resume_run()
    await run.finish()
    view = await assert_finished(run)
    assert view.run.pause_total_slots >= 150
    stake = run.settings.chain.stake_lamports
    assert [entry.stake for entry in view.entries[:5]] == [stake] * 5
    assert sum(entry.seat_faults + entry.strikes for entry in view.entries) == 0
    await assert_conserved(run)


@pytest.mark.parametrize("names", [FIVE[:2], FIVE[:3]])
async def test_too_few_witnesses_mean_no_audit_and_no_harm(theatre, names):
    run = await theatre.create(6, **WINDOWS)
    await enter(run, names)
    await run.finish()
    view = await assert_finished(run)
    assert all(events_of(run, name, "audit_changed") == [] for name in names)
    stake = run.settings.chain.stake_lamports
    assert [entry.stake for entry in view.entries[: len(names)]] == [stake] * len(names)
    refused = [e for n in names for e in run_events(run, n) if e["event"].endswith("_refused")]
    assert [e for e in refused if e.get("name") == "TooFewWitnesses"] == []


def run_events(run, name):
    return member(run, name).events.events


async def test_a_trainer_that_does_not_witness_opens_its_tiles_and_sits_nowhere(theatre):
    run = await theatre.create(8, **WINDOWS)
    await enter(run, FIVE[:4], BOTH)
    await enter(run, ["tess"], Role.TRAINER)
    await run.finish()
    view = await assert_finished(run)
    assert len(events_of(run, "tess", "openings_posted")) >= 1
    assert events_of(run, "tess", "judged") == []
    assert sum(entry.strikes for entry in view.entries) == 0
