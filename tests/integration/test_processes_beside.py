"""Errors of what runs beside a participant as a process: each ends it, and is told."""

import asyncio

import pytest
from support.broken_participants import Broken, run_broken
from support.processes import SLOT, Participants, quiet, rob
from support.waiting import wait_for

from troth_cli.demo.setup import start_chain
from troth_client.telemetry.events import EventList
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions
from troth_localnet.fleet import Fleet

pytestmark = pytest.mark.processes
SECONDS = 120


@pytest.fixture
def participants(tmp_path):
    """Two members of a run on a chain, none of which is started."""
    with EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=SLOT)) as launcher:
        start_chain(launcher, EventList())
        yield Participants(quiet(tmp_path / "run", num_trainers=2, num_rounds=4), launcher)


@pytest.mark.parametrize(
    ("part", "kind"), [("pushes", "ZeroDivisionError"), ("funding", "OSError")]
)
def test_a_part_that_fails_ends_the_participant(participants, part, kind):
    """Nobody looked at these: a session key that nobody refilled any more ran dry in silence."""
    process, session = participants.processes[0], participants.created.participants[0].session

    def events(*names):
        found = participants.events(process.name)
        return [event for event in found if not names or event["event"] in names]

    with Fleet(run_broken, [Broken(process, part)]) as fleet:
        if part == "funding":
            wait_for(lambda: events("joined"), SECONDS, events)
            asyncio.run(rob(participants.launcher, session))
        wait_for(lambda: fleet.exit_codes()[0] is not None, SECONDS, events)
        assert fleet.exit_codes() == [1]
    assert events()[-1]["event"] == "failed"
    assert events()[-1]["kind"] == kind
