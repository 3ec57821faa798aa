"""A storm of crashes: twelve honest members die at random moments and come back.

A member dies in the middle of whatever it does. It may be about to commit, between a verdict and
its reveal, seated, a juror, or the target of an audit. It is down for 5 to 40 slots.
"""

import random
from dataclasses import dataclass, field

import pytest
from support.runs import Chronicle, assert_conserved, assert_finished, member, raise_failures

from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

pytestmark = pytest.mark.long(reason="twelve members, each computing for six rounds")

NAMES = " ".join(f"m{number:02}" for number in range(12))
DOWN_SLOTS = (5, 40)
KILLS_PER_SLOT = 0.1
MIN_RUNNING = 8
WINDOWS = {"commit_slots": 40, "attest_slots": 40, "ring": 64, "residual_rounds": 50}


@dataclass
class Storm:
    """Kills and raises members, one slot after the other, as its seed says."""

    run: object
    seed: int
    num_killed: int = 0
    earned: int = 0
    fined: int = 0
    rises: dict[str, int] = field(default_factory=dict)

    async def blow(self) -> None:
        """Work until the run is finished."""
        draw, run = random.Random(self.seed), self.run
        run.runtime.join()
        try:
            while (view := await run.view()).run.phase != Phase.FINISHED:
                raise_failures(run)
                await self._raise_the_dead(view.slot)
                running = [one for one in run.members if one.is_running]
                if draw.random() < KILLS_PER_SLOT and len(running) > MIN_RUNNING:
                    victim = draw.choice(running)
                    await run.stop(victim)
                    self.rises[victim.name] = view.slot + draw.randint(*DOWN_SLOTS)
                    self.num_killed += 1
                await run.runtime.wait()
        finally:
            run.runtime.leave()
        for name in self.rises:
            await run.start(member(run, name))

    async def _raise_the_dead(self, slot: int) -> None:
        for name in [name for name, when in self.rises.items() if when <= slot]:
            del self.rises[name]
            await self.run.start(member(self.run, name))


async def weather(run_factory, rounds: int, seed: int) -> Storm:
    """A whole run in a storm. Fines are small, nobody is gone, and every root is the same."""
    run = await run_factory.start(rounds, names=NAMES, seed=seed, **WINDOWS)
    storm, reported = Storm(run, seed), Chronicle(run)
    await storm.blow()
    await run.finish()
    view = await assert_finished(run)
    await assert_conserved(run)
    assert view.run.round == rounds
    entries = view.entries[:12]
    assert not {entry.status for entry in entries} & {Status.LEFT, Status.JAILED, Status.BARRED}
    assert [entry.work_faults for entry in entries] == [0] * 12
    stake = run.settings.chain.min_stake_lamports
    storm.earned = sum(entry.claimable + sum(entry.bucket_amount) for entry in entries)
    storm.fined = sum(event.burned for event in reported.named("Penalised"))
    lost = sum(stake - entry.stake for entry in entries)
    assert lost == 0, "small fines come out of rewards"
    assert storm.fined * 100 < storm.earned
    return storm


async def test_a_storm_of_crashes_ruins_nobody(run_factory):
    """Threat T47, T46."""
    assert (await weather(run_factory, 6, seed=3)).num_killed >= 3


@pytest.mark.nightly(reason="300 rounds of twelve members are half an hour each")
@pytest.mark.parametrize(("rounds", "seed"), [(100, 1), (300, 2), (300, 3)])
async def test_a_long_storm_of_crashes_ruins_nobody(run_factory, record_property, rounds, seed):
    """`pytest --junitxml` shows the deaths, and the lamports earned and fined. Threat T47, T46."""
    storm = await weather(run_factory, rounds, seed)
    for name in ("num_killed", "earned", "fined"):
        record_property(name, getattr(storm, name))
    assert storm.num_killed >= rounds // 3
