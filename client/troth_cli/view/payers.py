"""Fees of the participants on this machine, by their newest `payer` event, for `troth status`.

Owns: names and units of the printed fields. Never: asks the chain.
Next: `troth_client/participant/payer.py`, which writes the event.
"""

from collections.abc import Sequence
from pathlib import Path

from troth_cli.view.amounts import sol
from troth_cli.view.output import Grid, Json
from troth_client.telemetry.event_log import EVENTS_FILE, newest_event
from troth_client.telemetry.events import Event, int_of


def payer_values(folders: Sequence[Path]) -> list[Json]:
    """Return the payers whose event logs are in these state folders; none for one without."""
    found = [(folder, newest_event(folder / EVENTS_FILE, "payer")) for folder in folders]
    return [_values(folder, event) for folder, event in found if event is not None]


def payer_grids(payers: Sequence[Json]) -> list[Grid]:
    """Return the same for people."""
    columns = ("state", "to spend", "rounds left", "a round", "priority", "this epoch", "at most")
    rows = [
        (
            one["state"],
            sol(int(str(one["spendable_lamports"]))),
            one["rounds_left"],
            sol(int(str(one["round_lamports"]))),
            one["priority_fee"],
            sol(int(str(one["priority_spent_lamports"]))),
            sol(int(str(one["priority_epoch_cap_lamports"]))),
        )
        for one in payers
        if isinstance(one, dict)
    ]
    return [Grid(columns, rows, "fees of participants here")] if rows else []


def _values(folder: Path, event: Event) -> dict[str, Json]:
    return {
        "state": str(folder),
        "time": event.get("time"),
        "spendable_lamports": int_of(event, "spendable"),
        "rounds_left": int_of(event, "rounds_left"),
        "round_lamports": int_of(event, "per_round"),
        "priority_fee": str(event.get("policy", "")),
        "priority_cap_lamports": int_of(event, "priority_cap"),
        "priority_spent_lamports": int_of(event, "priority_spent"),
        "priority_epoch_cap_lamports": int_of(event, "priority_epoch_cap"),
    }
