"""Whole runs with audits: honest work is cleared, work that was not done costs the stake."""

import pytest
from support.runs import (
    AUDITED,
    BOTH,
    FIVE,
    Chronicle,
    assert_conserved,
    assert_finished,
    assert_one_root_per_round,
    authority,
    events_of,
    included,
    member,
    phases,
    start_members,
    time_stopped,
    until,
    until_round,
)

from troth_attestation.quorum import AuditOutcome
from troth_coordinator.chain.builders import audits
from troth_coordinator.chain.operations import Owner
from troth_coordinator.rules.view import Phase, Role, Status


async def test_honest_work_is_cleared_and_its_judges_are_paid(run_factory):
    run = await run_factory.create(8, **AUDITED | {"openings_slots": 200, "case_slots": 10})
    reported = Chronicle(run)
    await start_members(run, FIVE)
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
    chain = run.settings.chain
    settled = reported.named("AuditSettled", outcome=int(AuditOutcome.CLEARED))
    assert len(reported.named("AuditOpened")) == len(settled) >= 8
    assert {one.fee for one in settled} == {chain.witness_fee}
    assert {one.paid.bit_count() for one in settled} == {3}
    for one in run.members:
        num_included = sum(one.index in who for who in included(run, "anna").values())
        num_paid = sum(event.paid >> one.index & 1 for event in settled)
        earned = chain.reward_per_payload * num_included + chain.witness_fee * num_paid
        entry = view.entries[one.index]
        assert num_paid > 0
        assert entry.claimable + sum(entry.bucket_amount) == earned, one.name
        assert entry.stake == chain.min_stake_lamports


async def stake_and_tickets(run, name):
    """The rest of a member's stake, at work or unbonding."""
    one = member(run, name)
    owner = await run.client.read_participant(run.at.run, one.owner.pubkey())
    entry = (await run.view()).entries[one.index]
    return entry.stake + sum(ticket.lamports for ticket in owner.tickets)


@pytest.mark.long(reason="a whole run of six")
async def test_who_leaves_answers_for_its_work_and_its_seats_first(run_factory):
    """Its stake is unbonding: no openings, or silence on a seat, would be paid from there."""
    run = await run_factory.create(24, **AUDITED | {"case_slots": 20})
    reported = Chronicle(run)
    await start_members(run, FIVE)
    emma = member(run, "emma")
    with time_stopped(run):
        view = await until_round(run, 4, Phase.ATTEST, is_stopped=True)
        challenger = run.authority.pubkey()
        asked = audits.request_audit(run.at, challenger, view.run.round, emma.index)
        await run.client.send([asked], [run.authority])
        await Owner(run.client, run.at, emma.owner).leave_run()
        left = len(reported.events)
    await emma.task
    view = await run.view()
    assert view.entries[emma.index].status == Status.LEFT
    assert phases(emma)[-1] != "FINISHED", "it did not stay longer than it had to"
    (stayed,) = events_of(run, "emma", "staying")
    assert 0 < stayed["slots"] <= 21, "a case may follow for twenty slots and the present one"
    await run.finish()
    since = {event.name for event in reported.events[left:] if is_about(event, emma.index)}
    assert since >= {"OpeningsPosted", "VerdictCommitted", "VerdictRevealed"}, since
    assert await stake_and_tickets(run, "emma") == run.settings.chain.min_stake_lamports
    committed = reported.named("VerdictCommitted", index=emma.index)
    revealed = reported.named("VerdictRevealed", index=emma.index)
    keys = [{f"round {e.round}, target {e.target}" for e in said} for said in (committed, revealed)]
    assert keys[0] == keys[1]
    settled = reported.named("AuditSettled", target=emma.index)
    assert len(settled) == len(reported.named("AuditOpened", target=emma.index)) > 0
    assert {event.outcome for event in settled} == {AuditOutcome.CLEARED}
    assert not reported.named("Penalised")
    await assert_conserved(run)


def is_about(event, index):
    """Whether an event tells of somebody's verdict, or of its own openings."""
    if event.name == "OpeningsPosted":
        return event.target == index
    return event.name.startswith("Verdict") and event.index == index


@pytest.mark.long(reason="a whole run with a long pause")
async def test_a_pause_longer_than_every_window_costs_nobody_anything(run_factory):
    run = await run_factory.create(8, **AUDITED)
    await start_members(run, FIVE)
    await until(run, lambda view: view.run.num_audits >= 2 and view.run.round >= 3)
    with time_stopped(run):
        await authority(run).pause_run()
        # A pause that is asked for in Attest begins with the close.
        paused = await until(run, lambda view: view.run.phase == Phase.PAUSED, is_stopped=True)
        await until(run, lambda view: view.slot > paused.slot + 150, is_stopped=True)
        await authority(run).resume_run()
    await run.finish()
    view = await assert_finished(run)
    assert view.run.pause_total_slots >= 150
    stake = run.settings.chain.min_stake_lamports
    assert [entry.stake for entry in view.entries[:5]] == [stake] * 5
    assert sum(entry.seat_faults + entry.strikes for entry in view.entries) == 0
    await assert_conserved(run)


@pytest.mark.parametrize("names", [FIVE[:2], FIVE[:3]])
async def test_too_few_witnesses_mean_no_audit_and_no_harm(run_factory, names):
    run = await run_factory.create(6, **AUDITED)
    await start_members(run, names)
    await run.finish()
    view = await assert_finished(run)
    assert all(events_of(run, name, "audit_changed") == [] for name in names)
    stake = run.settings.chain.min_stake_lamports
    assert [entry.stake for entry in view.entries[: len(names)]] == [stake] * len(names)
    refused = [e for n in names for e in run_events(run, n) if e["event"].endswith("_refused")]
    assert [e for e in refused if e.get("name") == "TooFewWitnesses"] == []


def run_events(run, name):
    return member(run, name).events.events


@pytest.mark.long(reason="a whole run")
async def test_a_trainer_that_does_not_witness_opens_its_tiles_and_sits_nowhere(run_factory):
    run = await run_factory.create(8, **AUDITED)
    await start_members(run, FIVE[:4], BOTH)
    await start_members(run, ["tess"], Role.TRAINER)
    await run.finish()
    view = await assert_finished(run)
    assert len(events_of(run, "tess", "openings_posted")) >= 1
    assert events_of(run, "tess", "judged") == []
    assert sum(entry.strikes for entry in view.entries) == 0
