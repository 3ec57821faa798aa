"""Long runs whose members are killed, come back, join and leave by a seed: roots stay equal."""

import random
import shutil

import pytest
from support.runs import (
    assert_conserved,
    assert_finished,
    events_of,
    member,
    raise_failures,
    roots,
)

from troth_coordinator.chain.errors import ProgramRefusedError
from troth_coordinator.chain.operations import Owner
from troth_coordinator.rules.phase import Phase

pytestmark = pytest.mark.long(reason="runs whose members die and return for twenty rounds")

MAX_MEMBERS = 7
MIN_RUNNING = 3
DOWN_SLOTS = (1, 2, 5, 20, 60)
KILLS_PER_SLOT, JOINS_PER_SLOT, LEAVES_PER_SLOT = 0.2, 0.04, 0.004


class Fate:
    """Decides once a slot, by its seed, who dies, rises, joins or leaves."""

    def __init__(self, run, seed: int) -> None:
        self.counts = dict.fromkeys(("killed", "risen", "joined", "left"), 0)
        self.rises: dict[str, int] = {}
        self._run = run
        self._draw = random.Random(seed)

    async def follow(self) -> None:
        """Work until the run is finished, checking the vault at each new round."""
        run, seen = self._run, -1
        run.runtime.join()
        try:
            while (view := await run.view()).run.phase != Phase.FINISHED:
                raise_failures(run)
                if view.run.round != seen:
                    seen = view.run.round
                    await assert_conserved(run)
                await self._raise_the_dead(view.slot)
                await self._decide(view.slot)
                await run.runtime.wait()
        finally:
            run.runtime.leave()

    async def _raise_the_dead(self, slot: int) -> None:
        due = [name for name, when in self.rises.items() if when <= slot]
        for name in due:
            del self.rises[name]
            await self._run.start(member(self._run, name))
            self.counts["risen"] += 1

    async def _decide(self, slot: int) -> None:
        draw, run = self._draw, self._run
        running = [one for one in run.members if one.is_running]
        if draw.random() < KILLS_PER_SLOT and len(running) > MIN_RUNNING:
            victim = draw.choice(running)
            await run.stop(victim)
            self.rises[victim.name] = slot + draw.choice(DOWN_SLOTS)
            self.counts["killed"] += 1
        if draw.random() < JOINS_PER_SLOT and len(run.members) < MAX_MEMBERS:
            await self._join(draw.choice(running))
        if draw.random() < LEAVES_PER_SLOT and len(running) > MIN_RUNNING + 1:
            await self._leave(draw.choice(running))

    async def _join(self, giver) -> None:
        """Join with the weights that somebody holds, carried over by hand."""
        try:
            one = await self._run.add(f"late-{len(self._run.members)}")
        except ProgramRefusedError as error:
            assert error.name == "JoinClosed"
            return
        one.folder.mkdir()
        for file in giver.folder.glob("weights-*"):
            shutil.copy(file, one.folder)
        await self._run.start(one)
        self.counts["joined"] += 1

    async def _leave(self, one) -> None:
        try:
            await Owner(self._run.client, self._run.at, one.owner).leave_run()
        except ProgramRefusedError as error:
            assert error.name in ("NotJoined", "AlreadyLeaving", "WrongPhase")
        else:
            self.counts["left"] += 1


async def live(run_factory, rounds: int, seed: int):
    """A run of four that lives through its fate to the end."""
    run = await run_factory.start(
        rounds,
        names="ada bob cyd dan",
        seed=seed,
        ring=64,
        commit_slots=20,
        attest_slots=20,
        checkpoint_every=9,
        residual_rounds=25,
        rounds_per_epoch=10,
    )
    fate = Fate(run, seed)
    await fate.follow()
    for name in fate.rises:  # members that were down at the end return
        await run.start(member(run, name))
    await run.finish()
    return run, fate


async def judge(run, rounds: int) -> None:
    """Kills are not lies: nobody held a wrong root, or committed to what it could not show."""
    view = await assert_finished(run)
    assert view.run.round == rounds
    assert set(roots(run)) == set(range(rounds)), "a round that nobody saw close"
    for one in run.members:
        for event in ("root_differs", "header_refused", "commit_lost"):
            assert not events_of(run, one.name, event)


async def test_killed_before_its_first_step(run_factory):
    run = await run_factory.start(3, names="ada bob cyd")
    await run.stop(member(run, "cyd"))  # no await since its start: its task has not run yet
    await run.start(member(run, "cyd"))
    await run.stop(member(run, "cyd"))
    await run.finish()
    await judge(run, 3)


async def test_kills_and_joins(run_factory):
    run, fate = await live(run_factory, 20, seed=11)
    await judge(run, 20)
    assert fate.counts["killed"] >= 10
    assert fate.counts["joined"] >= 1


async def test_equal_fates_are_equal_to_the_last_byte(run_factory):
    ends = []
    for _ in range(2):
        run, fate = await live(run_factory, 6, seed=5)
        view = await run.view()
        events = [one.events.events for one in run.members]
        ends.append((view.run.chain_hash, view.slot, fate.counts, events))
    assert ends[0] == ends[1]


@pytest.mark.nightly(reason="three runs of 220 rounds, until somebody has left by chance")
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_many_kills_and_joins(run_factory, seed):
    run, fate = await live(run_factory, 220, seed)
    await judge(run, 220)
    assert fate.counts["killed"] >= 60
    assert fate.counts["joined"] >= 2
    assert fate.counts["left"] >= 1
