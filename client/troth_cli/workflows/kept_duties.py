"""A witness's duties, summed up over all its event logs, removed ones included.

Owns: the sums on disk. Never: decides when a log is removed; `telemetry/event_log.py` does.
Next: `take_part.py`, which keeps them; `troth_client/telemetry/duties.py`.
"""

import json
from pathlib import Path
from typing import Final

from troth_client.runtime.files import atomic_write
from troth_client.telemetry.duties import Duties
from troth_client.telemetry.event_log import EVENTS_FILE, EventTail

DUTIES_FILE: Final = "duties.json"


def duties_of(state: Path) -> Duties:
    """Return a witness's duties from the logs in its state folder, removed ones included."""
    last, duties = _kept_duties(state)
    for event in EventTail(state / EVENTS_FILE, after=last).read():
        duties.take(event)
    return duties


def keep_duties(state: Path, number: int, log: Path) -> None:
    """Add the duties in an older log, which is about to be removed, to those kept.

    The number of the last log that was added is written with the sums: a process that is killed in
    between adds none twice.
    """
    last, duties = _kept_duties(state)
    if number <= last:
        return
    for event in EventTail(log).read():
        duties.take(event)
    record = {"last_log": number, "duties": duties.to_record()}
    atomic_write(state / DUTIES_FILE, [json.dumps(record).encode()])


def _kept_duties(state: Path) -> tuple[int, Duties]:
    """Return the number of the last removed log, and the sums up to it."""
    try:
        record = json.loads((state / DUTIES_FILE).read_bytes())
        return int(record["last_log"]), Duties.from_record(record["duties"])
    except FileNotFoundError:
        return 0, Duties()
    except (ValueError, TypeError, KeyError):
        # Only a report at the end of `troth witness`: a damaged file costs what it held.
        return 0, Duties()
