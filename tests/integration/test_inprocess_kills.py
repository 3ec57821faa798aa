"""kill -9 at every port: a process resumes, whatever it was about to do or had just done.

A killed member loses everything but its folder. It starts again in the same slot, so it must miss
nothing. It is included in every round, and its headers carry the residual on from round to round.
The bytes that it sends again equal the stored ones.
"""

import asyncio
from dataclasses import dataclass, replace

import pytest
from support.ports import Death, Killed
from support.runs import (
    AUDITED,
    assert_finished,
    included,
    member,
    start_members,
)

from troth_client.transport.errors import HolderUnreachableError
from troth_client.transport.memory import MemoryWire
from troth_coordinator.chain.client import CoordinatorClient

pytestmark = pytest.mark.long(reason="dozens of lives, each through one more port")


@dataclass
class Fate(Death):
    """Counts the ports that a process goes through, and ends it at one of them; 0: at none.

    With a `door` only that one counts.
    """

    at: int = 0
    is_after: bool = False
    door: str = ""
    seen: int = 0

    def enter(self, name: str) -> bool:
        """Count a door; True if the process dies behind it."""
        if self.is_dead:
            raise Killed(self.where)
        self.seen += self.door in ("", name)
        if self.seen != self.at or self.door not in ("", name):
            return False
        self.where = name
        if not self.is_after:
            self.die()
        return True


class Door:
    """Stands in front of an object and lets calls through, one by one."""

    def __init__(self, inner: object, fate: Fate, name: str) -> None:
        self._inner, self._fate, self._name = inner, fate, name

    def __getattr__(self, name):
        found = getattr(self._inner, name)
        if not callable(found) or name == "wait_for_others":
            return found  # one task waiting for another of the same process is no door
        label = f"{self._name}.{name}"
        if not asyncio.iscoroutinefunction(found):

            def call(*args, **kwargs):
                is_last = self._fate.enter(label)
                try:
                    return found(*args, **kwargs)
                finally:
                    if is_last:
                        self._fate.die()

            return call

        async def call_later(*args, **kwargs):
            is_last = self._fate.enter(label)
            try:
                return await found(*args, **kwargs)
            finally:
                if is_last:
                    self._fate.die()

        return call_later


@pytest.fixture(autouse=True)
def lost_connections(monkeypatch):
    """A member that pushes to one that dies of it loses the connection, and lives."""
    write = MemoryWire.write

    async def pushed(wire, holder, blob, data):
        try:
            await write(wire, holder, blob, data)
        except Killed as death:
            raise HolderUnreachableError(
                f"{holder} to answer", "its end", "Ask another."
            ) from death

    monkeypatch.setattr(MemoryWire, "write", pushed)


def doomed(run, name: str, fates: list[Fate]) -> None:
    """Let the named member die as the last of `fates` says, each time it is started."""

    def wrap(one, ports):
        if one.name != name:
            return ports
        fate = fates[-1]
        rpc = Door(ports.chain.rpc, fate, "rpc")
        return replace(
            ports,
            chain=CoordinatorClient(rpc, sleeper=lambda _seconds: asyncio.sleep(0)),
            transport=Door(ports.transport, fate, "transport"),
            store=Door(ports.store, fate, "store"),
            runtime=Door(ports.runtime, fate, "runtime"),
        )

    run.wrap = wrap


async def live(run, one, fates: list[Fate]) -> None:
    """Start a member in the slot in which it died before; wait until it dies as it is fated to.

    Any other error that ends it is raised.
    """
    fate = fates[-1]
    try:
        await run.start(one)
    except Killed:
        return
    finally:
        for previous in fates[-2:-1]:
            previous.release_clock()
    task, dying = one.task, asyncio.create_task(fate.died.wait())
    await asyncio.wait([task, dying], return_when=asyncio.FIRST_COMPLETED)
    dying.cancel()
    if fate.is_dead:  # perhaps only in the task of an audit, beside the round
        await run.stop(one)
    if not (task.cancelled() or isinstance(task.exception(), Killed)):
        await task


def nothing(_bob) -> None:
    """Nothing happens to a folder between two lives."""


async def play(run_factory, rounds: int, lives: list[tuple[int, bool]], between=nothing):
    """A run in which bob dies `len(lives)` times; `between` two lives its disk may fail."""
    run = await run_factory.create(rounds, checkpoint_every=7, residual_rounds=1_000, **AUDITED)
    fates: list[Fate] = []
    doomed(run, "bob", fates)
    await start_members(run, ["ada", "cyd", "dan"])
    bob = await run.add("bob")
    for at, is_after, *door in [*lives, (0, False)]:
        fates.append(Fate(run.runtime, at=at, is_after=is_after, door="".join(door)))
        await live(run, bob, fates)
        bob.events.emit("life_ended")
        if fates[-1].is_dead:
            between(bob)
    await run.finish()
    return run, fates


def assert_nothing_was_lost(run, rounds: int) -> None:
    assert included(run, "ada") == {round_: [0, 1, 2, 3] for round_ in range(rounds)}
    bob = member(run, "bob")
    assert not bob.events.named("commit_lost")
    assert not bob.events.named("commit_skipped")
    assert not bob.events.named("root_differs")
    encoded = bob.events.named("encoded")
    assert {event["round"] for event in encoded} >= set(range(rounds))
    for event in encoded:
        before = event["round"] - 1 if event["round"] else None
        assert event["previous"] == before, f"the residual was lost: {event}"
    for round_ in bob.here.state.store.submission_rounds():
        sent = member(run, "ada").here.state.store.load_peer(round_, 3)
        if sent is not None:
            stored = bob.here.state.store.load_submission(round_)
            assert sent == stored, "other bytes than those stored"


def died_between(reported: list[dict], first: str, second: str) -> int:
    """How many audits a member told the first thing of in one life, the second in a later one."""
    life, found, lives = 0, 0, {}
    for event in reported:
        audit = (event.get("round"), event.get("target"))
        life += event["event"] == "life_ended"
        if event["event"] == first:
            lives[audit] = life
        found += event["event"] == second and lives.get(audit, life) < life
    return found


async def assert_nobody_was_fined(run) -> None:
    """Bob opened and sat in time: an audit that it missed would have cost it stake."""
    stake = run.settings.chain.min_stake_lamports
    for entry in (await run.view()).entries[:4]:
        assert entry.stake == stake
        assert entry.strikes == 0
        assert entry.seat_faults == 0


async def assert_survived(run, rounds: int, fates, lives) -> None:
    """Every life was ended, and neither a round nor a lamport was lost by it."""
    await assert_finished(run)
    assert_nothing_was_lost(run, rounds)
    await assert_nobody_was_fined(run)
    assert sum(fate.is_dead for fate in fates) == len(lives)


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
async def test_killed_at_a_door(run_factory, is_after):
    lives = [(at, is_after) for at in range(2, 150, 13)]
    run, fates = await play(run_factory, 20, lives)
    await assert_survived(run, 20, fates, lives)


@pytest.mark.parametrize("lost", [2, 3], ids=["before", "own"])
async def test_a_payload_whose_u_was_lost_before_its_commit_is_not_committed(run_factory, lost):
    """A disk that breaks in this moment costs a round; refused openings would cost many."""

    def lose(bob):
        (path,) = bob.folder.rglob(f"residual-{lost:020}.record")
        path.unlink()

    lives = [(4, True, "store.save_submission")]
    run, fates = await play(run_factory, 12, lives, lose)
    assert fates[0].is_dead
    await assert_finished(run)
    found = included(run, "ada")
    assert found == {round_: [0, 1, 2] if round_ == 3 else [0, 1, 2, 3] for round_ in range(12)}
    bob = member(run, "bob")
    (skipped,) = bob.events.named("commit_skipped")
    assert f"u of round {lost}" in skipped["reason"]
    refused = [audit["round"] for audit in bob.events.named("openings_lost")]
    assert refused == ([2] if lost == 2 else []), "it was included before its u was lost"
    assert (await run.view()).entries[3].openings_step == len(refused)


@pytest.mark.nightly(reason="142 lives in sixty rounds: every port call, not one in thirteen")
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
async def test_killed_at_every_door(run_factory, is_after):
    saves = ["store.save_submission", "store.save_weights", "store.save_peer"]
    lives = [(at, is_after) for at in range(1, 140)]
    lives += [(1, is_after, door) for door in saves]  # so long a life comes to each of them
    run, fates = await play(run_factory, 60, lives)
    await assert_survived(run, 60, fates, lives)
    usual = {"rpc.send", "transport.push", *saves}
    of_audits = {"runtime.start", "transport.show"}
    assert {fate.where for fate in fates} >= usual | of_audits


@pytest.mark.nightly(reason="forty rounds, so that a death falls between two phases of an audit")
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
async def test_killed_between_a_hidden_verdict_and_its_reveal(run_factory, is_after):
    """A start takes some seventy ports, a round two hundred, a judge three rounds to commit."""
    lives = [(at, is_after) for at in range(700, 1_100, 90)]
    run, fates = await play(run_factory, 40, lives)
    await assert_survived(run, 40, fates, lives)
    assert died_between(member(run, "bob").events.events, "verdict_committed", "verdict_revealed")
