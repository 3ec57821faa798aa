"""A member whose disk becomes full goes on training, and says so."""

import os
import shutil
import subprocess

import pytest
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

ROUNDS = 20
FULL_AT = 13
"""From here on each round forgets as many momentums as it adds."""
LEFT = 12_000
"""Bytes that stay free once the momentum of a round is written: too few for its weights."""


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


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
