"""Trouble with RPC nodes as events of a participant.

Owns: the fields of `rpc_trouble` and `rpc_recovered`. Never: decides what trouble is;
`troth_coordinator/chain/rpc_health.py` does. Next: `participant/process.py`, which joins the two.
"""

from dataclasses import dataclass

from troth_client.telemetry.events import EventSink


@dataclass(frozen=True, slots=True)
class RpcEvents:
    """Reports trouble with an RPC node, and its end, to an event sink."""

    events: EventSink

    def trouble(self, name: str, what: str, seconds: float, meanwhile: str) -> None:
        """Report what is wrong with an RPC node, for how long, and what happens meanwhile."""
        self.events.emit(
            "rpc_trouble", node=name, what=what, seconds=round(seconds, 1), meanwhile=meanwhile
        )

    def recovered(self, name: str, seconds: float) -> None:
        """Report that an RPC node works again."""
        self.events.emit("rpc_recovered", node=name, seconds=round(seconds, 1))
