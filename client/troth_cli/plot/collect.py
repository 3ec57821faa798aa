"""From event logs to the numbers of a picture.

Owns: which logs a source means, whose log each one is, and what is missing in them.
Never: interprets an event; `troth_client/telemetry` does.
Next: `data.py` for the result; `draw.py`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from troth_cli.errors import EventLogError
from troth_cli.plot.data import PlotData, RoundRow, Slash, StakeLine
from troth_client.telemetry.board import Board
from troth_client.telemetry.event_log import EVENTS_FILE, EventTail
from troth_client.telemetry.events import Event
from troth_client.telemetry.history import MAX_NUMBER, History, RoundLine

PLACES = (EVENTS_FILE, f"*/{EVENTS_FILE}", f"*/*/{EVENTS_FILE}")
"""Where a folder holds logs: a state folder, and a folder of state folders, as a demo leaves it."""

Warn = Callable[[str], None]


def find_logs(sources: Iterable[Path]) -> list[Path]:
    """Return the event logs that files and folders hold, each once. Raises EventLogError."""
    found: dict[Path, None] = {}
    for source in sources:
        logs = _logs_of(source)
        if not logs:
            raise _no_log(source)
        found.update(dict.fromkeys(log.resolve() for log in logs))
    return list(found)


def collect(logs: Sequence[Path], warn: Warn) -> PlotData:
    """Fold all events of some logs, older files included, into the numbers of a picture.

    Lines that are no events are left out with a warning. Raises EventLogError where there is no
    event, or no round has closed; OSError for a file that cannot be read.
    """
    board, history = Board(), History()
    for log in logs:
        for event in _events(log, warn):
            board.take(event)
            history.take(event)
    closed = history.closed()
    if not closed:
        raise EventLogError(
            "a log of a run in which a round has closed",
            f"none in {_several(len(logs), 'log')}",
            "Wait for the end of the first round, or name the logs of its participants.",
            subject=str(logs[0]),
        )
    return PlotData(
        run=board.run,
        names=tuple(sorted(board.participants)),
        rounds=tuple(_row(number, line, history.payload_bytes) for number, line in closed),
        stakes=tuple(
            StakeLine(name, tuple(sorted(points.items())))
            for name, points in sorted(history.stakes.items())
        ),
        slashes=tuple(_slashes(board)),
    )


def _logs_of(source: Path) -> list[Path]:
    if source.is_dir():
        return [log for place in PLACES for log in sorted(source.glob(place)) if log.is_file()]
    return [source] if source.is_file() else []


def _no_log(source: Path) -> EventLogError:
    found = f"a folder without {EVENTS_FILE}" if source.is_dir() else "no such file"
    if source.exists() and not source.is_dir():
        found = "something that is no file"
    return EventLogError(
        f"{EVENTS_FILE} of a participant, a folder that holds some, or the address of a run",
        found,
        "Name a state folder, like one in troth-state, the folder of a demo, or the run's file.",
        subject=str(source),
    )


def _events(log: Path, warn: Warn) -> Iterator[Event]:
    tail, num_events = EventTail(log), 0
    for event in tail.read():
        num_events += 1
        yield _named(event)
    if tail.num_passed_over and num_events:
        lines = _several(tail.num_passed_over, "line")
        warn(f"{log}: {lines} without an event left out")
    if not num_events:
        lines = _several(tail.num_passed_over, "line")
        raise EventLogError(
            "an event log: on each line a JSON object with the key event",
            f"{lines} without an event" if tail.num_passed_over else "no complete line",
            f"Name the file {EVENTS_FILE} of a participant.",
            subject=str(log),
        )


def _named(event: Event) -> Event:
    """Name the participant of an event: a demo writes `participant`, `troth join` only `owner`."""
    if "participant" in event or "owner" not in event:
        return event
    return {**event, "participant": event["owner"]}


def _row(number: int, line: RoundLine, payload_bytes: int) -> RoundRow:
    num_included = line.num_included or 0
    return RoundRow(
        round=number,
        loss=line.loss,
        validation=line.validation,
        num_committed=len(line.committed),
        num_included=num_included,
        num_bytes=num_included * payload_bytes if payload_bytes else None,
        is_void=line.is_void,
    )


def _slashes(board: Board) -> Iterator[Slash]:
    for _, audit in sorted(board.audits.items()):
        if 0 < audit.taken <= MAX_NUMBER and 0 <= audit.round <= MAX_NUMBER:
            yield Slash(audit.round, board.name_of(audit.target), audit.taken)


def _several(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
