"""One participant of a demo as a process whose funding, or whose pushes, meet an error.

Owns: the ways to break them. Never: judges what follows. Next: processes.py.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from troth_cli.demo.participant import ParticipantProcess, write_output_to
from troth_client.participant.assembly import Ports
from troth_client.participant.process import participate
from troth_client.telemetry.event_log import EventLog
from troth_client.telemetry.events import JsonValue


@dataclass(frozen=True, slots=True)
class Broken:
    """A process, and the part of it that is broken: "pushes" or "funding"."""

    process: ParticipantProcess
    part: str


class _FullDisk:
    """A log of events whose disk is full for the refills of the session key."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        if event == "session_refilled":
            Path("/dev/full").write_bytes(b"full")
        self._log.emit(event, **fields)


def _without_nodes(ports: Ports) -> Ports:
    """Let the pushes choose among no RPC nodes."""
    assert ports.pushes is not None
    ports.pushes._urls.clear()
    return ports


def _unchanged(ports: Ports) -> Ports:
    return ports


def run_broken(broken: Broken) -> None:
    """Take part as `run_participant` does."""
    process, is_funding = broken.process, broken.part == "funding"
    process.folder.mkdir(parents=True, exist_ok=True)
    write_output_to(process.output)
    with EventLog.open(process.events, participant=process.name) as log:
        events = _FullDisk(log) if is_funding else log
        wrap = _unchanged if is_funding else _without_nodes
        try:
            asyncio.run(participate(process.settings, events, wrap))
        except BaseException as error:
            log.emit("failed", kind=type(error).__name__, reason=str(error))
            raise
