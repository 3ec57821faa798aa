"""A member whose disk becomes full goes on training, and says so."""

import shutil
from dataclasses import replace

import pytest
from support.disks import full_log, small_disk
from support.runs import (
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
from troth_client.telemetry.events import EventSinks

ROUNDS = 17
FULL_AT = 13
"""From here on each round forgets as many momentums as it adds."""
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
    """Row 24 of the fault matrix: drop the oldest copies, keep no new weights, go on training."""
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
    assert (
        bob.here.state.store.weight_rounds() != member(run, "ada").here.state.store.weight_rounds()
    )


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


def never():
    raise DiskFullError("room", "none", "")
