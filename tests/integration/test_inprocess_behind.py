"""A member that is behind when the run ends: audits ask it on, and the others serve it on."""

from support.runs import (
    FIVE,
    assert_finished,
    events_of,
    member,
    start_members,
    time_stopped,
    until_round,
)

from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.progress import LINGER_SLOTS

LONG = {
    "openings_slots": 40,
    "verdict_commit_slots": 60,
    "verdict_reveal_slots": 40,
    "case_slots": 100,
    "p_new_ppm": 1_000_000,
    "audit_cap": 5,
}
ROUNDS = 4


async def finished(run):
    view = await run.view()
    while view.run.phase != Phase.FINISHED:
        await run.runtime.wait()
        view = await run.view()
    return view


async def test_a_member_that_is_cut_off_at_the_end_pays_nothing(run_factory):
    """It lacks the payloads of the last round, and its verdicts are due later than it had waited.

    It had ended 16 slots after the run: committed verdicts stayed hidden, openings at home.
    """
    run = await run_factory.create(ROUNDS, **LONG)
    await start_members(run, FIVE)
    emma = member(run, "emma")
    await until_round(run, ROUNDS - 1, Phase.ATTEST)
    run.network.cut("emma")
    with time_stopped(run):
        end = (await finished(run)).run.finished_slot
        while run.chain.slot < end + LINGER_SLOTS + 8:
            await run.runtime.wait()
    assert emma.is_running
    run.network.mend("emma")
    await run.finish()
    view = await assert_finished(run)
    stakes = [entry.stake for entry in view.entries[:5]]
    assert stakes == [run.settings.chain.min_stake_lamports] * 5
    assert len(events_of(run, "emma", "staying")) == 1
