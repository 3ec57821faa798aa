"""Events as lines on stderr, while a participant or a hub works.

Owns: the form of a line, and which events of a participant are printed. Never: keeps an event.
Next: `troth_client/telemetry/event_log.py`, which keeps all of them.
"""

from collections.abc import Collection
from typing import Final

from troth_cli.view.output import Output
from troth_client.telemetry.events import JsonValue
from troth_client.telemetry.printable import one_line

OF_A_PARTICIPANT: Final = frozenset(
    {
        "joined",
        "compile_failed",
        "ranks_lost",
        "rank_failed",
        "out_of_memory",
        "judge_out_of_memory",
        "rpc_trouble",
        "rpc_recovered",
        "rpc_disagreement",
        "send_waiting",
        "send_late",
        "send_failed",
        "endpoint_differs",
        "endpoint_set",
        "fees_low",
        "fees_spent",
        "leaving",
        "leave_failed",
        "priority_cap_reached",
        "session_refilled",
        "session_refill_failed",
        "resumed",
        "phase",
        "trained",
        "round_closed",
        "activated",
        "judged",
        "judged_case",
        "audit_changed",
        "openings_lost",
        "openings_delayed",
        "stake_too_low",
        "stake_topped_up",
        "stake_top_up_failed",
        "stop_requested",
        "owed",
        "staying",
        "lagging",
        "recovering",
        "restoring",
        "fetching",
        "fetched",
        "replaying",
        "arrived",
        "root_differs",
        "healing",
        "healed",
        "checkpoint_made",
        "checkpoint_failed",
        "offering",
        "checkpoint_offered",
        "file_damaged",
        "slower_path",
        "disk_full",
        "events_lost",
        "ledger_behind",
        "archive_failed",
        "archive_trouble",
        "ledger_refused",
        "ledger_renewed",
        "validated",
        "validation_skipped",
        "ended",
    }
)

BESIDE_A_VIEW: Final = OF_A_PARTICIPANT - {
    "phase",
    "trained",
    "round_closed",
    "judged",
    "judged_case",
    "audit_changed",
    "fetching",
    "replaying",
    "validated",
    "ended",
}
"""Events that are printed above a live view, which shows the others."""


class EventLines:
    """An event sink that prints. `names`: what is printed; None for everything."""

    def __init__(self, output: Output, names: Collection[str] | None = None) -> None:
        self._output = output
        self._names = names
        self._last = ""

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Print one event, unless it repeats the last line."""
        line = " ".join([event, *(f"{name}={value}" for name, value in fields.items())])
        is_wanted = self._names is None or event in self._names
        if is_wanted and line != self._last:
            self._last = line
            self._output.note(one_line(line))
