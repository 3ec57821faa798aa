"""Participants as real processes whose RPC node stops in the middle of a run, and goes on."""

import asyncio
import os
import signal
from dataclasses import replace

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


@pytest.mark.long(reason="two processes whose chain is killed and started again")
def test_a_chain_that_is_started_again_on_its_ledger_fines_nobody(tmp_path):
    """Slots stand still meanwhile, so no window passes; members wait and go on."""
    options = EmbeddedOptions(slot_milliseconds=SLOT, ledger=tmp_path / "ledger")
    with EmbeddedLauncher(options) as chain:
        start_chain(chain, EventList())
        made = quiet(tmp_path / "run", num_trainers=2, num_rounds=6)
        with Participants(made, chain) as participants:
            names = participants.options.names
            participants.wait_for_round(names[0], 2)
            port = int(chain.rpc_url.rsplit(":", 1)[1])
            os.kill(chain.pid, signal.SIGKILL)
            for name in names:
                participants.wait_for(name, has("rpc_trouble"))
            chain.stop()
            chain.options = replace(options, port=port)
            start_chain(chain, EventList())
            assert [participants.wait_for_exit(index) for index in range(2)] == [0, 0]

        run, _rounds = asyncio.run(read_chain(chain, participants.created.run))
        assert run.phase == Phase.FINISHED
        roots = [roots_by_round(participants.options.folder, name) for name in names]
        assert [one[5] for one in roots] == [run.root.hex()] * 2
        assert list(roots[0]) == list(range(6))
        least = participants.options.settings().chain.min_stake_lamports
        assert run.total_stake == 2 * least


def has(kind):
    return lambda events: any(event["event"] == kind for event in events)
