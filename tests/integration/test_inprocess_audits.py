"""Whole runs with audits: honest work is cleared, work that was not done costs the stake."""

from integration.inprocess_support import (
    assert_conserved,
    assert_finished,
    assert_one_root_per_round,
    enter,
    events_of,
)

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
