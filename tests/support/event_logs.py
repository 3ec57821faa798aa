"""Event logs as participants write them, for what reads logs.

Owns: a small run of a few rounds with a conviction. Never: a chain.
"""

from pathlib import Path
from typing import Any

from troth_client.telemetry.event_log import EventLog, Rotation

STAKE = 100_000_000
TAKEN = 50_000_000


def write_log(path: Path, events: Any, rotation: Rotation | None = None, **bound: Any) -> Path:
    """Write events, (name, fields) each, through the product's own log."""
    with EventLog.open(path, rotation, **bound) as log:
        for name, fields in events:
            log.emit(name, **fields)
    return path


def rounds_of(num_rounds: int, loss: int = 5_000_000, **closed: Any) -> list[tuple[str, Any]]:
    """The events of a trainer in some rounds; its loss falls by a tenth of a nat in each."""
    found: list[tuple[str, Any]] = []
    for number in range(num_rounds):
        at = {"round": number}
        included = {"included": [0, 1], "void": False, "own": True, "root": "r"}
        found += [
            ("trained", at | {"loss_micro": loss - 100_000 * number}),
            ("encoded", at | {"payload_bytes": 640}),
            ("committed", at | {"slot": 10 * number, "fee": 5_000}),
            ("round_closed", at | included | closed),
        ]
    return found


def write_demo(folder: Path, num_rounds: int = 5) -> Path:
    """Write the logs that a demo leaves: its own, an honest trainer's, and that of a cheat."""
    write_log(folder / "events.jsonl", [("run_created", {"run": "Run1", "rounds": num_rounds})])
    joined = [("joined", {"index": 0}), ("tallied", {"round": 0, "stake": STAKE})]
    validated = ("validated", {"round": 2, "loss_micro": 4_900_000})
    honest = [*joined, *rounds_of(num_rounds), validated]
    write_log(folder / "trainer-0/events.jsonl", honest, participant="trainer-0")
    taken = {"round": 1, "target": 1, "stage": "DECIDED", "case_outcome": 1, "taken": TAKEN}
    cheat = [
        ("joined", {"index": 1}),
        ("tallied", {"round": 0, "stake": STAKE}),
        *rounds_of(2, loss=6_000_000),
        ("audit_changed", taken),
        ("tallied", {"round": 3, "stake": STAKE - TAKEN}),
    ]
    write_log(folder / "free-rider/events.jsonl", cheat, participant="free-rider")
    return folder
