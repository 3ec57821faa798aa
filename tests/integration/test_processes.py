"""Participants as real processes: they stop, die, run out of money or of data, and the run goes on.

Whole runs with such members are tested in one process (test_inprocess_*). Here we test the parts
that only processes have: signals, ports, files that change under a memory map.
"""

import asyncio
import signal

import pytest
from support.demos import read_chain, roots_by_round
from support.processes import FEE, LEFT, SLOT, Participants, quiet, rob

from troth_cli.demo.setup import start_chain
from troth_client.data.manifest import load_manifest
from troth_client.telemetry.events import EventList
from troth_coordinator.rules.phase import Phase
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions

pytestmark = pytest.mark.processes
"""The lamports that the robbed session key keeps: enough for some rounds only."""


@pytest.fixture
def chain():
    with EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=SLOT)) as launcher:
        start_chain(launcher, EventList())
        yield launcher


@pytest.mark.long(reason="four processes; make test has two that stop in test_cli_join.py")
def test_stopped_or_killed_they_return_on_the_same_port_with_refilled_session_keys(tmp_path, chain):
    """One is asked to stop, one dies by kill -9, one loses its money; all four finish."""
    stopped, robbed, killed = 0, 1, 3
    with Participants(
        quiet(tmp_path / "run", num_trainers=4, num_rounds=12), chain
    ) as participants:
        names = participants.options.names
        participants.wait_for_round("trainer-2", 1)
        asyncio.run(rob(chain, participants.created.participants[robbed].session))
        participants.fleet.kill(killed)
        participants.fleet.signal(stopped, signal.SIGTERM)
        assert participants.wait_for_exit(stopped) == 0
        last = participants.events(names[stopped])[-1]
        assert last["event"] == "ended"
        assert last["finished"] is False
        assert last["weights"] is None
        for index in (stopped, killed):
            participants.fleet.start_again(index)
        assert [participants.wait_for_exit(index) for index in range(4)] == [0] * 4

    run, rounds = asyncio.run(read_chain(chain, participants.created.run))
    assert run.phase == Phase.FINISHED
    assert run.round == 12
    folder = participants.options.folder
    assert [roots_by_round(folder, name)[11] for name in names] == [run.root.hex()] * 4
    for index in (stopped, killed):
        first, second = participants.events(names[index], "joined")
        assert first["endpoint"] == second["endpoint"]
        assert first["fee"] == FEE, "the same seat, no second stake"
        assert second["fee"] == 0, "the same seat, no second stake"
        assert participants.events(names[index], "resumed")
        assert not participants.events(names[index], "endpoint_differs")
        assert rounds[11].included >> first["index"] & 1, "it works again"

    (refilled,) = participants.events(names[robbed], "session_refilled")
    settings = participants.processes[robbed].settings
    given, limit = settings.session_lamports, settings.refill_lamports
    assert given - LEFT <= refilled["lamports"] <= given - LEFT + 60 * FEE
    assert refilled["left"] == limit - refilled["lamports"]
    assert {event["threads"] for event in participants.events(names[robbed], "computing")} == {1}


@pytest.mark.long(reason="a second whole run of processes")
def test_data_that_is_damaged_in_the_middle_of_a_run_ends_that_participant_only(tmp_path, chain):
    """A shard cut short and a shard with one other byte: each is named, nobody trains on them."""
    with Participants(quiet(tmp_path / "run", num_trainers=5, num_rounds=8), chain) as participants:
        names = participants.options.names
        for name in names:
            participants.wait_for_round(name, 1)
        cut = damage(participants.data_of(names[1]), lambda stream, size: stream.truncate(size - 1))
        changed = damage(participants.data_of(names[4]), change_a_byte)
        assert [participants.wait_for_exit(index) for index in range(5)] == [0, 1, 0, 0, 1]

    for name, kind, files in (
        (names[1], "ShardSizeError", cut),
        (names[4], "ShardContentError", changed),
    ):
        failed = participants.events(name)[-1]
        assert failed["event"] == "failed"
        assert failed["kind"] == kind
        assert any(str(path) in failed["reason"] for path in files)
        assert "troth data prepare" in failed["reason"]
    run, rounds = asyncio.run(read_chain(chain, participants.created.run))
    assert run.phase == Phase.FINISHED
    assert run.round == 8
    folder = participants.options.folder
    histories = [roots_by_round(folder, names[index]) for index in (0, 2, 3)]
    assert histories[0] == histories[1] == histories[2]
    assert histories[0][7] == run.root.hex()
    assert rounds[7].included.bit_count() == 3


def damage(folder, change):
    """Change every training shard of a data set in place; return their paths."""
    paths = [folder / entry.file for entry in load_manifest(folder).shards("train")]
    for path in paths:
        with path.open("r+b") as stream:
            change(stream, path.stat().st_size)
    return paths


def change_a_byte(stream, size):
    stream.seek(size // 2)
    old = stream.read(1)
    stream.seek(size // 2)
    stream.write(bytes([old[0] ^ 1]))
