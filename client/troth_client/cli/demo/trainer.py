"""One trainer of the demo, in a process of its own: what `troth join` runs, with a log.

Owns: the entry point of the fleet's children. Never: prints; a failure becomes its last event.
Next: `../participant.py`.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from troth_client.cli.participant import ParticipantSettings, participate
from troth_client.errors import ClientError
from troth_client.telemetry.events import EventLog

PRELOAD = ("torch", "troth_client.cli.demo.trainer", "troth_coordinator.chain.http_rpc")
"""What the fork server imports once for all trainers."""


@dataclass(frozen=True, slots=True)
class TrainerTask:
    """A trainer's name, its settings, and the file of its events."""

    name: str
    settings: ParticipantSettings
    events: Path


def train(task: TrainerTask) -> None:
    """Take part until the run ends. Raises what stopped it, after it is in the log."""
    import torch

    if task.settings.num_threads is not None:
        torch.set_num_threads(task.settings.num_threads)
    events = EventLog.open(task.events, peer=task.name)
    try:
        asyncio.run(participate(task.settings, events))
    except BaseException as error:
        kind = type(error).__name__
        advice = error.next_step if isinstance(error, ClientError) else ""
        events.emit("failed", kind=kind, reason=str(error), next_step=advice)
        raise
    finally:
        events.close()
