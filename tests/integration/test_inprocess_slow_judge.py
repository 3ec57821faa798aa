"""A judge for whom recomputing takes longer than a phase: its rounds go on meanwhile."""

import asyncio
from dataclasses import replace

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


class Hourglass:
    """Futures that are done so many slots after they were asked for."""

    def __init__(self, chain):
        self._chain = chain
        self._due = []
        chain.observers.append(self)

    def slot_opened(self, slot, parent):
        for until, future in self._due:
            if slot >= until and not future.done():
                future.set_result(None)

    def transaction_landed(self, landed, changed):
        """Only slots count."""

    def turned(self, slots):
        future = asyncio.get_running_loop().create_future()
        self._due.append((self._chain.slot + slots, future))
        return future


class SlowRuntime:
    """A runtime on which every recomputation takes `SLOTS` slots, while other tasks go on."""

    def __init__(self, runtime, hourglass):
        self._runtime = runtime
        self._hourglass = hourglass

    def __getattr__(self, name):
        return getattr(self._runtime, name)

    async def compute(self, function, *args, **kwargs):
        if getattr(function, "__func__", None) is HonestWitnessWork.gradient:
            await self._runtime.wait_for_others(self._hourglass.turned(SLOTS))
        return await self._runtime.compute(function, *args, **kwargs)


async def test_a_slow_judge_misses_no_attestation_and_is_in_time_with_its_verdicts(run_factory):
    run = await run_factory.create(6, **(AUDITED | SPARSE))
    hourglass = Hourglass(run.chain)

    def slowed(one, ports):
        if one.name != SLOW:
            return ports
        return replace(ports, runtime=SlowRuntime(ports.runtime, hourglass))

    run.wrap = slowed
    await start_members(run, FIVE)
    await run.finish()
    view = await assert_finished(run)
    assert_one_root_per_round(run)
    assert len(events_of(run, SLOW, "attested")) == 6
    assert len(events_of(run, SLOW, "judged")) >= 2, "it did judge meanwhile"
    assert sum(entry.strikes for entry in view.entries) == 0
    stake = run.settings.chain.min_stake_lamports
    assert [entry.stake for entry in view.entries[:5]] == [stake] * 5, "no seat was silent"
