"""A judge for whom recomputing takes longer than a phase: its rounds go on meanwhile."""

from dataclasses import replace

from support.hourglass import Hourglass, SlowRuntime
from support.runs import (
    AUDITED,
    FIVE,
    assert_finished,
    assert_one_root_per_round,
    events_of,
    start_members,
)

from troth_client.audit.witness import HonestWitnessWork

SLOW = "emma"
SLOTS = 25
"""More than a whole round of these runs takes."""
SPARSE = {"capacity": 8, "audit_cap": 1, "verdict_commit_slots": 9 * SLOTS}
"""At most one seat a round, and time for all six one after the other, with fetching."""


async def test_a_slow_judge_misses_no_attestation_and_is_in_time_with_its_verdicts(run_factory):
    run = await run_factory.create(6, **(AUDITED | SPARSE))
    hourglass = Hourglass(run.chain)

    def slowed(one, ports):
        if one.name != SLOW:
            return ports
        slow = SlowRuntime(ports.runtime, hourglass, HonestWitnessWork.gradient, SLOTS)
        return replace(ports, runtime=slow)

    run.wrap = slowed
    await start_members(run, FIVE)
    await run.finish()
    view = await assert_finished(run)
    assert_one_root_per_round(run)
    assert len(events_of(run, SLOW, "attested")) == 6
    assert len(events_of(run, SLOW, "judged")) >= 2, "it did judge meanwhile"
    assert hourglass.num_turned >= 2, "and took its time"
    assert sum(entry.strikes for entry in view.entries) == 0
    stake = run.settings.chain.min_stake_lamports
    assert [entry.stake for entry in view.entries[:5]] == [stake] * 5, "no seat was silent"
