"""A member whose disk becomes full goes on training, and says so."""

import shutil
from dataclasses import replace

import pytest
from support.disks import full_log, small_disk
from support.runs import (
    AUDITED,
    FIVE,
    NO_AUDITS,
    assert_finished,
    events_of,
    included,
    member,
    start_members,
    time_stopped,
    until_round,
)

from troth_cli.view.events import EventLines
from troth_cli.view.output import Output
from troth_client.runtime.files import DiskFullError
from troth_client.storage import store as store_module
from troth_client.storage.sealed import write_record
from troth_client.telemetry.events import EventSinks

ROUNDS = 17
FULL_AT = 13
"""From here on each round forgets as many momentums as it adds."""
NUM_WEIGHTS = 4
LEFT = 12_000
"""Bytes that stay free once the momentum of a round is written: too few for its weights."""


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk", "16m") as folder:
        yield folder


def fill(folder):
    """Leave so little room that not all files of a round fit."""
    with (folder / "ballast").open("ab") as stream:
        stream.write(bytes(max(0, shutil.disk_usage(folder).free - LEFT)))


async def test_a_full_disk_costs_no_round(run_factory, disk):
    """Row 24 of the fault matrix: drop the oldest copies and weights, go on training."""
    run = await run_factory.create(ROUNDS, **NO_AUDITS, keep_rounds=3, ring=8, checkpoint_every=4)
    await start_members(run, ["ada", "cyd"])
    bob = await run.add("bob")
    bob.folder = disk / "bob"
    await run.start(bob)
    with time_stopped(run):
        await until_round(run, FULL_AT, is_stopped=True)
        run.on_slot.append(lambda _slot: fill(disk))
    await run.finish()
    await assert_finished(run)
    assert len(events_of(run, "bob", "disk_full")) >= 3
    assert "no space left" in events_of(run, "bob", "disk_full")[0]["reason"]
    assert included(run, "ada") == {round_: [0, 1, 2] for round_ in range(ROUNDS)}
    assert bob.here.state.store.weight_rounds()[-1] == ROUNDS


async def test_what_a_member_can_spare_gives_way_to_what_must_be_on_the_disk(run_factory):
    """Bytes of others and older weights go; our own payloads, and the newest weights, stay."""
    run = await run_factory.create(ROUNDS, **NO_AUDITS, keep_rounds=3, ring=8, checkpoint_every=4)
    await start_members(run, ["ada", "bob"])
    with time_stopped(run):
        await until_round(run, FULL_AT, is_stopped=True)
        bob = member(run, "bob").here
        store, transport = bob.state.store, bob.submissions.transport
        kept, own = store.weight_rounds(), store.submission_rounds()
        others = [store.peer_indices(round_) for round_ in own]
        assert len(kept) > 2
        assert any(others)
        with pytest.raises(DiskFullError):
            store.room.write(never)
        assert store.weight_rounds() == kept[-2:]
        assert store.submission_rounds() == own
        assert not any(store.peer_indices(round_) for round_ in own)
        assert [len(transport._cache.own(round_)) for round_ in own[:-1]] == [2] * (len(own) - 1)
        served = {one.split("/")[0] for one in transport._cache._blobs._blobs}
        assert served == {"header", "payload"}
        assert len(transport._cache._blobs._blobs) <= 2 * len(own) + 2
    await run.finish()
    await assert_finished(run)


async def test_a_log_that_cannot_be_written_costs_no_round(run_factory):
    """`nohup troth join ... &`: what it prints goes to the disk that is full."""

    def wrap(one, ports):
        if one.name != "bob":
            return ports
        return replace(ports, events=EventSinks(one.events, EventLines(Output(err=log))))

    run = await run_factory.create(3, **NO_AUDITS)
    run.wrap = wrap
    with full_log() as log:
        await start_members(run, ["ada", "bob"])
        await run.finish()
    await assert_finished(run)
    assert included(run, "ada") == {round_: [0, 1] for round_ in range(3)}


async def test_old_weights_give_way_and_every_seat_judges_in_time(run_factory, monkeypatch):
    """Disks with room for four files of weights, fewer than the ring keeps."""
    monkeypatch.setattr(store_module, "write_record", within(NUM_WEIGHTS))
    few = {**AUDITED, "case_slots": 200, "keep_rounds": 3, "ring": 8, "checkpoint_every": 4}
    run = await run_factory.create(10, **few)
    members = await start_members(run, FIVE)
    await run.finish()
    view = await assert_finished(run)
    root = view.run.root_round
    newest = {root, *range(view.run.round - NUM_WEIGHTS + 1, view.run.round + 1)}
    for one in members:
        kept = one.here.state.store.weight_rounds()
        assert len(kept) == NUM_WEIGHTS
        assert set(kept) <= newest
        assert one.events.named("disk_full")
        assert not one.events.named("judging_delayed")
    stakes = {entry.stake for entry in view.entries[: len(FIVE)]}
    assert stakes == {run.settings.chain.min_stake_lamports}


def within(num_weights):
    """Return what writes records to a disk with room for so many files of weights."""

    def write(path, record, durable=True, **options):
        if path.name.startswith("weights-"):
            others = {one.name for one in path.parent.glob("weights-*.record")} - {path.name}
            if len(others) >= num_weights:
                raise DiskFullError("room", "none", "")
        write_record(path, record, durable, **options)

    return write


def never():
    raise DiskFullError("room", "none", "")
