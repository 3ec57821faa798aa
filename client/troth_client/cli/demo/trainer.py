"""One trainer of the demo, in a process of its own: what `troth join` runs, with a log.

Owns: the entry point of the fleet's children. Never: writes to the terminal, which the display
has; a failure becomes its last event, anything else goes to a file.
Next: `../participant.py`.
"""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from troth_client.cli.participant import ParticipantSettings, participate
from troth_client.telemetry.events import EventLog

PRELOAD = ("torch", "troth_client.cli.demo.trainer", "troth_coordinator.chain.http_rpc")
"""What the fork server imports once for all trainers."""

STDOUT, STDERR = 1, 2


@dataclass(frozen=True, slots=True)
class TrainerTask:
    """A trainer's name, its settings, and the folder of its files."""

    name: str
    settings: ParticipantSettings
    folder: Path

    @property
    def events(self) -> Path:
        """The log of its events."""
        return self.folder / "events.jsonl"

    @property
    def output(self) -> Path:
        """What it and its libraries would have printed, tracebacks included."""
        return self.folder / "output.txt"


def train(task: TrainerTask) -> None:
    """Take part until the run ends. Raises what stopped it, after it is in the log."""
    task.folder.mkdir(parents=True, exist_ok=True)
    with task.output.open("ab") as output:
        os.dup2(output.fileno(), STDOUT)
        os.dup2(output.fileno(), STDERR)
    with EventLog.open(task.events, peer=task.name) as events:
        try:
            asyncio.run(participate(task.settings, events))
        except BaseException as error:
            events.emit("failed", kind=type(error).__name__, reason=str(error))
            raise
