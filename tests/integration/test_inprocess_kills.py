"""kill -9 at every door: whatever a process was about to do or had just done, it resumes.

A killed member loses everything but its folder. It starts again in the same slot, so that it must
miss nothing: it is included in every round, its headers carry the residual on from round to round,
and what it sends again is byte for byte what it had stored.
"""

import asyncio
from dataclasses import dataclass, replace

import pytest
from integration.inprocess_support import (
    assert_finished,
    enter,
    included,
    member,
)

from troth_client.clock import SteppedClock
from troth_coordinator.chain.client import CoordinatorClient


class Killed(BaseException):
    """What kill -9 feels like from inside; nothing in the client may catch it."""


@dataclass
class Doom:
    """Counts the doors that a process goes through, and ends it at one of them.

    Time stands still from the death on, until `bury`.
    """

    at: int
    is_after: bool
    clock: SteppedClock
    seen: int = 0
    is_dead: bool = False
    where: str = ""

    def enter(self, name: str) -> bool:
        """Count a door; True if the process dies behind it."""
        if self.is_dead:
            raise Killed(self.where)
        self.seen += 1
        if self.seen != self.at:
            return False
        self.where = name
        if not self.is_after:
            self.die()
        return True

    def die(self):
        self.is_dead = True
        self.clock.join()
        raise Killed(self.where)

    def bury(self):
        if self.is_dead:
            self.clock.leave()


class Door:
    """Stands in front of an object and lets calls through, one by one."""

    def __init__(self, inner: object, doom: Doom, name: str) -> None:
        self._inner, self._doom, self._name = inner, doom, name

    def __getattr__(self, name):
        found = getattr(self._inner, name)
        if not callable(found):
            return found
        label = f"{self._name}.{name}"
        if not asyncio.iscoroutinefunction(found):

            def call(*args, **kwargs):
                is_last = self._doom.enter(label)
                try:
                    return found(*args, **kwargs)
                finally:
                    if is_last:
                        self._doom.die()

            return call

        async def call_later(*args, **kwargs):
            is_last = self._doom.enter(label)
            try:
                return await found(*args, **kwargs)
            finally:
                if is_last:
                    self._doom.die()

        return call_later


def doomed(run, name: str, dooms: list[Doom]) -> None:
    """Let the named member die as the last of `dooms` says, each time it is started."""

    def wrap(one, doors):
        if one.name != name:
            return doors
        doom = dooms[-1]
        rpc = Door(doors.chain.rpc, doom, "rpc")
        return replace(
            doors,
            chain=CoordinatorClient(rpc, sleeper=lambda _seconds: asyncio.sleep(0)),
            transport=Door(doors.transport, doom, "transport"),
            store=Door(doors.store, doom, "store"),
            clock=Door(doors.clock, doom, "clock"),
        )

    run.wrap = wrap


async def die_and_rise(run, name: str, dooms: list[Doom], lives: list[tuple[int, bool]]) -> int:
    """Start a member again whenever it dies, with the next doom; return how often it died."""
    one = member(run, name)
    for at, is_after in [*lives, (0, False)]:
        previous = dooms[-1:]
        dooms.append(Doom(at, is_after, run.clock))
        try:
            await run.start(one)
        except Killed:
            continue
        finally:
            for doom in previous:
                doom.bury()
        await asyncio.gather(one.task, return_exceptions=True)
    return sum(doom.is_dead for doom in dooms)


async def play(theatre, rounds: int, lives: list[tuple[int, bool]]):
    """A run in which bob dies `len(lives)` times."""
    run = await theatre.create(rounds, checkpoint_every=7, residual_rounds=1_000)
    dooms: list[Doom] = []
    doomed(run, "bob", dooms)
    await enter(run, ["ada", "cyd"])
    await run.add("bob")
    deaths = await die_and_rise(run, "bob", dooms, lives)
    await run.finish()
    return run, deaths, dooms


def assert_nothing_was_lost(run, rounds: int) -> None:
    assert included(run, "ada") == {round_: [0, 1, 2] for round_ in range(rounds)}
    bob = member(run, "bob")
    assert not bob.events.named("commit_lost")
    assert not bob.events.named("commit_skipped")
    assert not bob.events.named("root_differs")
    encoded = bob.events.named("encoded")
    assert {event["round"] for event in encoded} >= set(range(rounds))
    for event in encoded:
        before = event["round"] - 1 if event["round"] else None
        assert event["previous"] == before, f"the residual was lost: {event}"
    for round_ in bob.here.store.submission_rounds():
        sent = member(run, "ada").here.store.load_peer(round_, 2)
        if sent is not None:
            assert sent == bob.here.store.load_submission(round_), "other bytes than those stored"


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
async def test_killed_at_a_door(theatre, is_after):
    lives = [(at, is_after) for at in range(2, 150, 13)]
    run, deaths, _ = await play(theatre, 20, lives)
    await assert_finished(run)
    assert_nothing_was_lost(run, 20)
    assert deaths == len(lives)


@pytest.mark.nightly
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
async def test_killed_at_every_door(theatre, is_after):
    lives = [(at, is_after) for at in range(1, 140)]
    run, deaths, dooms = await play(theatre, 60, lives)
    await assert_finished(run)
    assert_nothing_was_lost(run, 60)
    assert deaths == len(lives)
    places = {doom.where for doom in dooms}
    for door in ("rpc.send", "store.save_submission", "store.save_weights", "transport.push"):
        assert door in places
