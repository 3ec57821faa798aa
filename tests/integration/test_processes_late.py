"""A latecomer as a real process: HTTP, kill -9 while it joins, and an end with everybody's root."""

import asyncio

import pytest
from support.demos import read_chain, roots_by_round
from support.processes import SLOT, LateOptions, Participants, quiet

from troth_cli.demo.setup import start_chain
from troth_client.telemetry.events import EventList
from troth_coordinator.rules.phase import Phase
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions

pytestmark = [
    pytest.mark.processes,
    pytest.mark.long(reason="four processes for thirty rounds"),
]
ROUNDS = 34
LATE = 3


@pytest.fixture
def chain():
    with EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=SLOT)) as launcher:
        start_chain(launcher, EventList())
        yield launcher


def test_a_latecomer_that_is_killed_on_its_way_joins_once_and_works(tmp_path, chain):
    options = quiet(tmp_path / "run", 4, ROUNDS, LateOptions)
    with Participants(options, chain, num_late=1) as participants:
        name = options.names[LATE]
        participants.wait_for_round(options.names[0], 11)
        participants.late.start()
        participants.wait_for(name, lambda events: any(e["event"] == "fetched" for e in events))
        participants.late.kill(0)
        assert not participants.events(name, "joined"), "nothing is deposited before the weights"
        participants.late.start_again(0)
        participants.wait_for(name, lambda events: any(e["event"] == "committed" for e in events))
        assert [participants.wait_for_exit(index) for index in range(LATE)] == [0] * LATE
        assert participants.late.wait(60)
        assert participants.late.exit_codes() == [0]

    run, rounds = asyncio.run(read_chain(chain, participants.created.run))
    assert run.phase == Phase.FINISHED
    (joined,) = participants.events(name, "joined")
    assert rounds[ROUNDS - 1].included >> joined["index"] & 1
    roots = {roots_by_round(options.folder, one)[ROUNDS - 1] for one in options.names}
    assert roots == {run.root.hex()}
