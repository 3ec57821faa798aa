"""Participants as real processes whose RPC node stops in the middle of a run, and goes on."""

import asyncio
import os
import signal

import pytest
from support.demos import read_chain, roots_by_round
from support.processes import SLOT, Participants, quiet

from troth_cli.demo.setup import start_chain
from troth_client.telemetry.events import EventList
from troth_coordinator.rules.phase import Phase
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions

pytestmark = pytest.mark.processes


@pytest.fixture
def chain():
    with EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=SLOT)) as launcher:
        start_chain(launcher, EventList())
        yield launcher


@pytest.mark.long(reason="two processes that wait for a chain that is stopped for some seconds")
def test_a_chain_that_stands_still_is_reported_and_waited_for(tmp_path, chain):
    with Participants(quiet(tmp_path / "run", num_trainers=2, num_rounds=6), chain) as participants:
        names = participants.options.names
        participants.wait_for_round(names[0], 1)
        os.kill(chain.pid, signal.SIGSTOP)
        try:
            for name in names:
                participants.wait_for(name, has("rpc_trouble"))
        finally:
            os.kill(chain.pid, signal.SIGCONT)
        for name in names:
            participants.wait_for(name, has("rpc_recovered"))
        assert [participants.wait_for_exit(index) for index in range(2)] == [0, 0]

    run, _rounds = asyncio.run(read_chain(chain, participants.created.run))
    assert run.phase == Phase.FINISHED
    folder = participants.options.folder
    assert [roots_by_round(folder, name)[5] for name in names] == [run.root.hex()] * 2
    for name in names:
        trouble = participants.events(name, "rpc_trouble")[0]
        assert chain.rpc_url.startswith(trouble["node"])
        assert trouble["what"].startswith("no answer")
        assert trouble["meanwhile"]


def has(kind):
    return lambda events: any(event["event"] == kind for event in events)
