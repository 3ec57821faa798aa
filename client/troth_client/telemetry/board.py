"""What the events of a run add up to: the numbers behind the display and the demo's summary.

Owns: folding events into counts, fees, losses, bytes. Never: reads a file or draws.
Next: `display.py`, which draws a board.
"""

from dataclasses import dataclass, field

from troth_client.telemetry.events import JsonValue

Event = dict[str, JsonValue]


@dataclass(slots=True)
class PeerLine:
    """One participant as its events show it. Fees in lamports, sizes in bytes."""

    name: str
    state: str = "starting"
    round: int = -1
    loss_micro: int | None = None
    payload_bytes: int = 0
    num_included: int = 0
    fees: int = 0
    num_commits: int = 0
    root: str = ""
    failure: str = ""


@dataclass(slots=True)
class Board:
    """All participants and the run, folded from events in any order of files."""

    run: str = ""
    num_rounds: int = 0
    phase: str = "SETTING UP"
    slot: int = 0
    round: int = 0
    creation_fees: int = 0
    data_done: int = 0
    data_total: int = 0
    peers: dict[str, PeerLine] = field(default_factory=dict)
    losses: dict[int, list[int]] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Fold one event in; events that the board does not know change nothing."""
        name = str(event["event"])
        peer = event.get("peer")
        if peer is not None:
            line = self.peers.setdefault(str(peer), PeerLine(str(peer)))
            line.fees += _int(event, "fee")
            if "round" in event:
                line.round = max(line.round, _int(event, "round"))
            handler = _PEER.get(name)
            if handler is not None:
                handler(self, line, event)
            return
        if name == "run_created":
            self.run, self.num_rounds = str(event["run"]), _int(event, "rounds")
            self.creation_fees = _int(event, "fees")
        elif name == "data_progress":
            self.data_done, self.data_total = _int(event, "done"), _int(event, "total")

    @property
    def fees(self) -> int:
        """All fees paid so far, in lamports."""
        return self.creation_fees + sum(peer.fees for peer in self.peers.values())

    def mean_losses(self) -> list[float]:
        """Return the mean training loss of each round so far, in nats."""
        return [sum(v) / len(v) / 10**6 for _, v in sorted(self.losses.items())]


def _int(event: Event, key: str) -> int:
    value = event.get(key)
    return value if isinstance(value, int) else 0


def _phase(board: Board, line: PeerLine, event: Event) -> None:
    if _int(event, "slot") >= board.slot:
        board.phase, board.slot = str(event["phase"]), _int(event, "slot")
    line.state = str(event["phase"]).lower().replace("_", " ")


def _trained(board: Board, line: PeerLine, event: Event) -> None:
    line.state, line.loss_micro = "trained", _int(event, "loss_micro")
    board.losses.setdefault(_int(event, "round"), []).append(line.loss_micro)
    board.round = max(board.round, _int(event, "round"))
    board.phase = "COMMIT"


def _encoded(_board: Board, line: PeerLine, event: Event) -> None:
    line.payload_bytes = _int(event, "payload_bytes")


def _committed(board: Board, line: PeerLine, event: Event) -> None:
    line.state, line.num_commits = "committed", line.num_commits + 1
    board.slot = max(board.slot, _int(event, "slot"))


def _attested(board: Board, line: PeerLine, event: Event) -> None:
    line.state = "attested"
    board.phase, board.slot = "ATTEST", max(board.slot, _int(event, "slot"))


def _closed(board: Board, line: PeerLine, event: Event) -> None:
    line.num_included += bool(event.get("own"))
    line.root = str(event.get("root", ""))
    line.state = "void round" if event.get("void") else "applied"
    board.round = max(board.round, _int(event, "round") + 1)


def _ended(_board: Board, line: PeerLine, event: Event) -> None:
    line.state, line.root = "finished" if event.get("finished") else "stopped", str(event["root"])


def _failed(_board: Board, line: PeerLine, event: Event) -> None:
    line.state, line.failure = "failed", str(event.get("reason", ""))


def _killed(_board: Board, line: PeerLine, _event: Event) -> None:
    line.state = "killed"


_PEER = {
    "phase": _phase,
    "trained": _trained,
    "encoded": _encoded,
    "committed": _committed,
    "attested": _attested,
    "round_closed": _closed,
    "ended": _ended,
    "failed": _failed,
    "killed": _killed,
}
