"""Participants as processes on a chain of their own, driven one by one.

Owns: their folders, their fleet, waiting for what they log. Never: judges what they did.
Next: demos.py for reading logs and chains.
"""

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from solders.keypair import Keypair
from solders.system_program import TransferParams, transfer

from support.demos import SMOKE, events_of
from support.waiting import wait_for
from troth_cli.demo.options import DemoOptions
from troth_cli.demo.participant import PRELOAD, ParticipantProcess, run_participant
from troth_cli.demo.setup import DemoRun, create_run, participant_processes
from troth_client.network.fee_funds import UNSPENDABLE_LAMPORTS
from troth_client.telemetry.event_log import EventLog
from troth_coordinator.chain.client import CoordinatorClient, SendPolicy
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.rules.settings import RunSettings
from troth_localnet.fleet import Fleet, preload
from troth_localnet.launcher import Launcher
from troth_simulation.cheats.catalogue import NOBODY

# Slots are wall time: phases in which somebody is missing run to their ends.
SLOT = 60
# Nobody is sampled: who is away when an audit asks for openings pays, and that is not told here.
CHAIN = {
    "commit_slots": 50,
    "attest_slots": 40,
    "min_members": 2,
    "checkpoint_every": 100,
    "p_new_ppm": 0,
    "p_base_ppm": 0,
}
SECONDS = 240

Events = list[dict[str, Any]]


class Options(DemoOptions):
    """A demo of the smallest model whose run goes on while two members are there."""

    def settings(self) -> RunSettings:
        found = DemoOptions.settings(self)
        return found.model_copy(update={"chain": found.chain.model_copy(update=self.chain())})

    def chain(self) -> dict[str, int]:
        """Parameters of the run that differ from the config's."""
        return CHAIN


class LateOptions(Options):
    """A run whose first rounds leave the ring soon."""

    def chain(self) -> dict[str, int]:
        return CHAIN | {"ring": 8, "keep_rounds": 3, "checkpoint_every": 4}


def quiet(
    folder: Path, num_trainers: int, num_rounds: int, kind: type[Options] = Options
) -> Options:
    """Honest trainers of the smallest model, none of whom is audited."""
    return kind(
        folder=folder,
        config=SMOKE,
        num_trainers=num_trainers,
        num_witnesses=0,
        cheat=NOBODY,
        num_rounds=num_rounds,
        slot_milliseconds=SLOT,
    )


class Participants:
    """Participants that have a data folder each. A context manager; leaving it ends them all.

    The last `num_late` of them are the fleet `late`, which the test starts.
    """

    def __init__(self, options: DemoOptions, launcher: Launcher, num_late: int = 0) -> None:
        self.options = options
        options.folder.mkdir()
        self.launcher = launcher
        self.created = asyncio.run(self._create())
        processes = participant_processes(self.options, self.created, launcher.rpc_url)
        self.processes = [self._own_data(process) for process in processes]
        preload(PRELOAD)
        first = len(self.processes) - num_late
        self.fleet = Fleet(run_participant, self.processes[:first])
        self.late = Fleet(run_participant, self.processes[first:])

    def data_of(self, name: str) -> Path:
        return self.options.folder / f"data-{name}"

    def events(self, name: str, kind: str | None = None) -> Events:
        found = events_of(self.options.folder, name)
        return [event for event in found if kind in (None, event["event"])]

    def wait_for(self, name: str, condition: Callable[[Events], bool]) -> None:
        """Wait until the condition holds for a trainer's events."""
        wait_for(lambda: condition(self.events(name)), SECONDS, lambda: self.events(name)[-5:])

    def wait_for_round(self, name: str, round_: int) -> None:
        self.wait_for(
            name,
            lambda events: any(
                event["event"] == "round_closed" and event["round"] >= round_ for event in events
            ),
        )

    def wait_for_exit(self, index: int) -> int | None:
        """Exit code of one trainer."""
        self.wait_for(
            self.processes[index].name, lambda _: self.fleet.exit_codes()[index] is not None
        )
        return self.fleet.exit_codes()[index]

    def __enter__(self) -> Self:
        self.fleet.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.late.stop()
        self.fleet.stop()

    async def _create(self) -> DemoRun:
        async with HttpRpc(self.launcher.rpc_url) as rpc:
            client = CoordinatorClient(rpc, policy=SendPolicy(poll_seconds=SLOT / 2_000))
            with EventLog.open(self.options.events) as events:
                return await create_run(self.options, client, events)

    def _own_data(self, process: ParticipantProcess) -> ParticipantProcess:
        shutil.copytree(self.created.data, self.data_of(process.name))
        return replace(process, settings=replace(process.settings, data=self.data_of(process.name)))


FEE = 5_000
LEFT = UNSPENDABLE_LAMPORTS + 100 * FEE
"""A session key with so much is filled up."""


async def rob(launcher: Launcher, session: Keypair) -> None:
    """Leave a session key almost nothing."""
    async with HttpRpc(launcher.rpc_url) as rpc:
        client = CoordinatorClient(rpc)
        away = await client.balance(session.pubkey()) - LEFT - FEE
        terms = TransferParams(
            from_pubkey=session.pubkey(), to_pubkey=client.program_id, lamports=away
        )
        await client.send([transfer(terms)], [session])
