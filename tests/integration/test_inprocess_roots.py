"""Roots that disagree: the minority replays, and heals, disputes or lags (section 4)."""

import pytest
import torch
from support.runs import (
    NO_AUDITS,
    assert_conserved,
    assert_finished,
    events_of,
    included,
    member,
    start_members,
    until,
    until_round,
)

from troth_client.network.errors import DisputedError, RootDisputeError
from troth_client.state.replica import Replica
from troth_coordinator.rules.phase import Phase

BAD_ROUND = 3


def spoil(monkeypatch, run, is_spoilt) -> None:
    """Change one weight right after a round was applied, where `is_spoilt(name)` says so."""
    honest = Replica.apply

    def apply(self, closure, payloads):
        honest(self, closure, payloads)
        name = next(one.name for one in run.members if one.parts and one.here.state.replica is self)
        if closure.round == BAD_ROUND - 1 and is_spoilt(name):
            with torch.no_grad():
                next(iter(self.weights.values())).view(-1)[0] += 1.0

    monkeypatch.setattr(Replica, "apply", apply)


@pytest.mark.long(reason="a whole run")
async def test_a_bit_that_flipped_is_healed_by_replay(run_factory, monkeypatch):
    run = await run_factory.start(8, names="ada bob cyd dan")
    flips = ["dan"]
    spoil(monkeypatch, run, lambda name: name in flips and not flips.remove(name))
    await run.finish()
    await assert_finished(run)
    (differs,) = events_of(run, "dan", "root_differs")
    assert differs["round"] == BAD_ROUND
    (healed,) = events_of(run, "dan", "healed")
    assert healed["root"] == differs["canonical"] != differs["own"]
    # Its wrong vote cost it that round and nothing else; the residual goes on from before.
    assert included(run, "ada")[BAD_ROUND] == [0, 1, 2]
    assert included(run, "ada")[BAD_ROUND + 1] == [0, 1, 2, 3]
    encoded = {one["round"]: one["previous"] for one in events_of(run, "dan", "encoded")}
    assert encoded[BAD_ROUND + 1] == BAD_ROUND - 1


async def test_the_majority_is_wrong_and_the_minority_stops(run_factory, monkeypatch):
    run = await run_factory.start(6, names="ada bob cyd dan")
    spoil(monkeypatch, run, lambda name: name != "dan")
    dan = member(run, "dan")
    with pytest.raises(RootDisputeError, match="ROOT_DISPUTE") as caught:
        await dan.task
    assert caught.value.round == BAD_ROUND
    assert caught.value.own.hex() in str(caught.value)
    assert caught.value.canonical.hex() in str(caught.value)
    assert caught.value.own != caught.value.canonical
    # It publishes the replay: root by root from the last one that it verified itself.
    last = events_of(run, "dan", "replayed")[-1]
    assert last["round"] == BAD_ROUND
    assert last["root"] == caught.value.own.hex()
    # Nothing was loaded, and the evidence stays: its own state of that round is on disk.
    stored = dan.here.state.store.load_weights(BAD_ROUND)
    assert stored.state_root == caught.value.own
    # The others go on without it.
    dan.task = None
    await run.finish()
    assert (await run.view()).run.phase == Phase.FINISHED
    await assert_conserved(run)


@pytest.mark.long(reason="a whole run")
async def test_a_dispute_is_not_forgotten_by_a_restart(run_factory, monkeypatch):
    """The majority is wrong. The honest one takes none of its weights, before it is told to."""
    quiet = {"ring": 6, "keep_rounds": 3, "checkpoint_every": 2, **NO_AUDITS}
    run = await run_factory.start(24, names="ada bob cyd dan", **quiet)
    spoil(monkeypatch, run, lambda name: name != "dan")
    dan = member(run, "dan")
    with pytest.raises(RootDisputeError):
        await dan.task
    dan.task = None
    file = dan.here.state.store.dispute_file
    assert file.exists()
    await until_round(run, 14)
    await run.start(dan)
    with pytest.raises(DisputedError, match=str(file)):
        await dan.task
    dan.task = None
    assert not events_of(run, "dan", "fetched")
    file.unlink()
    await run.start(dan)
    await run.finish()
    assert dan.here.state.replica.root() == (await run.view()).run.root
    assert events_of(run, "dan", "fetched")


@pytest.mark.long(reason="a whole run in which a member is damaged again and again")
async def test_replays_that_all_differ_are_damage_here_and_others_heal_it(run_factory, monkeypatch):
    """A machine that computes another root each time proves nothing against the majority."""
    run = await run_factory.start(8, names="ada bob cyd dan")
    spoil(monkeypatch, run, lambda name: name == "dan")
    honest, count = Replica.apply, [0]

    def apply(self, closure, payloads):
        honest(self, closure, payloads)
        if self is member(run, "dan").here.state.replica and closure.round == BAD_ROUND - 1:
            count[0] += 1
            next(iter(self.weights.values())).view(-1)[1] += count[0]

    monkeypatch.setattr(Replica, "apply", apply)
    await run.finish()
    await assert_finished(run)
    assert len(events_of(run, "dan", "replay_differs")) == 2
    (healed,) = events_of(run, "dan", "healed")
    assert healed["round"] == BAD_ROUND
    assert len(healed["tensors"]) == 1
    assert not member(run, "dan").here.state.store.dispute_file.exists()


async def test_damaged_stored_weights_are_passed_over(run_factory):
    """The file of the last verified state is broken: the one before it serves."""
    run = await run_factory.start(7, names="ada bob cyd")
    cyd = member(run, "cyd")
    await until_round(run, 5)
    await run.stop(cyd)
    newest = sorted(cyd.folder.glob("weights-*.record"))[-2:]
    for path in newest:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data))
    await run.start(cyd)
    await run.finish()
    await assert_finished(run)
    assert events_of(run, "cyd", "file_damaged")
    resumed = events_of(run, "cyd", "resumed")[-1]
    assert resumed["verified"] is not None
    assert resumed["verified"] < 5


async def test_a_wrong_state_on_disk_is_not_believed(run_factory):
    """A sound file with a root that the chain does not name: replay starts before it."""
    run = await run_factory.start(7, names="ada bob cyd")
    cyd = member(run, "cyd")
    await until_round(run, 5)
    await run.stop(cyd)
    replica = cyd.here.state.replica
    with torch.no_grad():
        next(iter(replica.weights.values())).view(-1)[0] += 1.0
    replica.restore(replica.weights, replica.round, replica.cursor)
    reopen_and_save(run, cyd)
    await run.start(cyd)
    await run.finish()
    await assert_finished(run)
    assert not events_of(run, "cyd", "root_differs")
    assert events_of(run, "cyd", "resumed")[-1]["verified"] < replica_round(cyd)


def reopen_and_save(run, one) -> None:
    store = run._open_store(one)
    try:
        one.here.state.store = store
        one.here.state.save_weights()
    finally:
        store.close()


def replica_round(one) -> int:
    return events_round(one, "resumed")


def events_round(one, event: str) -> int:
    return one.events.named(event)[-1]["round"]


@pytest.mark.long(reason="a whole run")
async def test_down_for_less_than_the_ring_is_replayed(run_factory):
    quiet = {"ring": 8, "keep_rounds": 3, **NO_AUDITS}
    run = await run_factory.start(16, names="ada bob cyd dan", **quiet)
    dan = member(run, "dan")
    await until_round(run, 3)
    await run.stop(dan)
    await until_round(run, 9)
    await run.start(dan)
    await run.finish()
    await assert_finished(run)
    assert not events_of(run, "dan", "root_differs")
    # It came back through ready and activate, and worked again.
    assert included(run, "ada")[8] == [0, 1, 2]
    assert included(run, "ada")[15] == [0, 1, 2, 3]


async def test_without_a_checkpoint_in_the_ring_a_participant_waits_for_the_next(run_factory):
    """Rounds 0 to 3 have left the ring, and the first checkpoint comes with the end of the run."""
    run = await run_factory.start(14, names="ada bob", ring=6, keep_rounds=3)
    await until_round(run, 9)
    (late,) = await start_members(run, ["eve"])
    await run.finish()
    view = await assert_finished(run)
    (waiting,) = events_of(run, "eve", "recovering")
    assert waiting["round"] == 0
    assert "last 6" in waiting["reason"]
    assert late.here.state.replica.root() == view.run.root


async def test_final_weights_are_those_of_the_run_for_who_was_slow_at_the_end(run_factory):
    """A member that wakes when the run is finished still ends with its weights."""
    run = await run_factory.start(6, names="ada bob cyd")
    cyd = member(run, "cyd")
    await until_round(run, 5)
    await run.stop(cyd)
    view = await until(run, lambda view: view.run.phase == Phase.FINISHED)
    await run.start(cyd)
    await run.finish()
    assert cyd.here.state.replica.root() == view.run.root
    await assert_finished(run)
