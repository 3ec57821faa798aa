"""The performance: start everything, draw the events until the trainers have ended, sum up.

Owns: the life of the chain, the fleet and the display. Never: takes part in the protocol.
Next: `summary.py`.
"""

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.live import Live
from solders.pubkey import Pubkey

from troth_client.cli.demo.options import DemoOptions
from troth_client.cli.demo.stage import Stage, create_run, start_chain, trainer_settings
from troth_client.cli.demo.summary import Summary, summarise
from troth_client.cli.demo.trainer import PRELOAD, TrainerTask, train
from troth_client.errors import ClientError
from troth_client.model.shapes import trainable_shapes
from troth_client.telemetry.board import Board
from troth_client.telemetry.display import draw, headline
from troth_client.telemetry.events import EventLog, EventTail
from troth_coordinator.chain.client import CoordinatorClient, SendPolicy
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.rules.config import ModelSection
from troth_localnet.fleet import Fleet
from troth_localnet.launcher import Launcher

SECONDS_PER_LOOK = 0.25


class DemoError(ClientError):
    """The demo could not be carried through."""


def run_demo(options: DemoOptions, console: Console) -> Summary:
    """Run the whole demo and return what it proved; the display goes to `console`.

    Raises DemoError when no trainer has finished; what stopped it is in its event log.
    """
    options.folder.mkdir(parents=True, exist_ok=True)
    events = EventLog.open(options.events)
    stream = Stream(options, console)
    launcher = start_chain(options, events)
    try:
        with stream:
            stage = asyncio.run(_create(options, launcher, events, stream))
            _perform(options, stage, launcher.rpc_url, events, stream)
        return asyncio.run(_sum_up(options, launcher, stage, stream.board))
    finally:
        launcher.stop()
        events.close()


def _perform(
    options: DemoOptions, stage: Stage, rpc_url: str, events: EventLog, stream: "Stream"
) -> None:
    """Run the trainers until all have ended."""
    tasks = [
        TrainerTask(
            f"trainer-{index}",
            trainer_settings(options, stage, rpc_url, index),
            options.trainer_folder(index) / "events.jsonl",
        )
        for index in range(len(stage.owners))
    ]
    stream.follow([task.events for task in tasks])
    victim = len(tasks) - 1
    is_killed = False
    with Fleet(train, tasks, PRELOAD) as fleet:
        while not fleet.wait(SECONDS_PER_LOOK):
            stream.refresh()
            due = options.kill_round is not None and stream.board.round > options.kill_round
            if due and not is_killed:
                is_killed = True
                fleet.kill(victim)
                events.emit("killed", peer=tasks[victim].name, round=stream.board.round)
    stream.refresh()


class Stream:
    """Folds the event logs into a board and draws it: live on a terminal, as lines elsewhere."""

    def __init__(self, options: DemoOptions, console: Console) -> None:
        self.board = Board()
        self._console = console
        self._tails = [EventTail(options.events)]
        is_live = options.is_live and console.is_terminal
        self._live = Live(console=console, refresh_per_second=4) if is_live else None
        self._num_parameters = num_parameters(options.settings().config.model)
        self._printed = ""

    def follow(self, logs: Sequence[Path]) -> None:
        """Read these logs too."""
        self._tails += [EventTail(path) for path in logs]

    def refresh(self) -> None:
        """Fold in what is new and draw."""
        for tail in self._tails:
            for event in tail.read():
                self.board.take(event)
        if self._live is not None:
            self._live.update(draw(self.board, self._num_parameters))
            return
        line = headline(self.board)
        if line != self._printed:
            self._console.print(line, highlight=False)
            self._printed = line

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()


def num_parameters(model: ModelSection) -> int:
    """Return the number of trainable parameters of a model."""
    return sum(math.prod(shape) for shape in trainable_shapes(model).values())


async def _create(
    options: DemoOptions, launcher: Launcher, events: EventLog, stream: Stream
) -> Stage:
    async with HttpRpc(launcher.rpc_url) as rpc:
        policy = SendPolicy(poll_seconds=options.slot_milliseconds / 2_000)
        client = CoordinatorClient(rpc, policy=policy)
        creating = asyncio.create_task(create_run(options, launcher, client, events))
        while not creating.done():
            stream.refresh()
            await asyncio.wait([creating], timeout=SECONDS_PER_LOOK)
        return creating.result()


async def _sum_up(options: DemoOptions, launcher: Launcher, stage: Stage, board: Board) -> Summary:
    if not any(line.state == "finished" for line in board.peers.values()):
        reasons = {line.failure for line in board.peers.values() if line.failure}
        raise DemoError(
            "at least one trainer to finish",
            "; ".join(sorted(reasons)) or "none did",
            f"Their event logs are {options.folder}/trainer-*/events.jsonl.",
        )
    async with HttpRpc(launcher.rpc_url) as rpc:
        view = await CoordinatorClient(rpc).read_run(Pubkey.from_string(stage.run))
    return summarise(options, stage, board, view)
