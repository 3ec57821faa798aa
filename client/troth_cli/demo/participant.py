"""One participant of the demo in a process of its own: the code of `troth join`, with a log.

Owns: the entry point of the fleet's children. Never: writes to the terminal, where the display is.
A failure becomes its last event; other output goes to a file.
Next: `troth_client.participant.process`; `troth_simulation.cheats` for a cheat.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from troth_client.participant.settings import ParticipantSettings
from troth_client.telemetry.event_log import EventLog
from troth_localnet.fleet import preload

if TYPE_CHECKING:
    from troth_client.participant.assembly import Ports

PRELOAD = (
    "torch",
    "troth_client.participant.process",
    "troth_client.archive.process",
    "troth_simulation.cheats.ports",
    "troth_coordinator.chain.http_rpc",
    "anchorpy.error",
)
"""Modules that the fork server imports once for all participants."""

STDOUT, STDERR = 1, 2


@dataclass(frozen=True, slots=True)
class ParticipantProcess:
    """The settings of one process; `cheat` is empty for an honest participant."""

    name: str
    settings: ParticipantSettings
    folder: Path
    cheat: str = ""

    @property
    def events(self) -> Path:
        """The log of its events."""
        return self.folder / "events.jsonl"

    @property
    def output(self) -> Path:
        """The file for output of the process and its libraries, tracebacks included."""
        return self.folder / "output.txt"


def preload_participants() -> None:
    """Start the fork server of the participants, unless it runs."""
    preload(PRELOAD)


def run_participant(process: ParticipantProcess) -> None:
    """Take part until the run ends. Raises the error that stopped it, after logging it."""
    # Here and below: the children of the fork server have these modules, the demo needs none.
    from troth_client.participant.process import participate

    process.folder.mkdir(parents=True, exist_ok=True)
    write_output_to(process.output)
    with EventLog.open(process.events, participant=process.name) as events:
        try:
            asyncio.run(participate(process.settings, events, _wrapper(process.cheat)))
        except BaseException as error:
            events.emit("failed", kind=type(error).__name__, reason=str(error))
            raise


def write_output_to(path: Path) -> None:
    """Let this process and its libraries write to a file instead of the terminal."""
    with path.open("ab") as output:
        os.dup2(output.fileno(), STDOUT)
        os.dup2(output.fileno(), STDERR)


def _wrapper(cheat: str) -> "Callable[[Ports], Ports]":
    from troth_client.participant.process import unchanged
    from troth_simulation.cheats.catalogue import CHEATS
    from troth_simulation.cheats.ports import cheating

    return partial(cheating, CHEATS[cheat]) if cheat else unchanged
