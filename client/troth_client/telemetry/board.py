"""The sums over the events of a run: the numbers behind the display and the demo's summary.

Owns: folding events into counts, fees, losses, bytes. Never: reads a file or draws.
Next: `display.py`, which draws a board.

Logs are folded one after the other, not by time: an older event of one log may come after a newer
event of another. Sums and maxima are not affected; for the rest the event's time decides.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from troth_client.telemetry.audit_line import AuditLine
from troth_client.telemetry.events import Event, float_of, int_of


@dataclass(slots=True)
class ParticipantLine:
    """One participant as its events show it. Fees in lamports, sizes in bytes."""

    name: str
    state: str = "starting"
    round: int = -1
    loss_micro: int | None = None
    payload_bytes: int = 0
    num_included: int = 0
    fees: int = 0
    root: str = ""
    failure: str = ""
    index: int = -1
    num_judged: int = 0
    judging_seconds: float = 0.0
    training_seconds: float = 0.0
    changed_at: float = 0.0


@dataclass(slots=True)
class Board:
    """All participants and the run, folded from events in any order of files.

    `own_fees` are those of events that name no participant: the run's authority pays them.
    """

    run: str = ""
    num_rounds: int = 0
    phase: str = "SETTING UP"
    slot: int = 0
    round: int = 0
    own_fees: int = 0
    data_done: int = 0
    data_total: int = 0
    changed_at: float = 0.0
    participants: dict[str, ParticipantLine] = field(default_factory=dict)
    losses: dict[int, dict[str, int]] = field(default_factory=dict)
    audits: dict[tuple[int, int], AuditLine] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Fold one event in; events that the board does not know change nothing."""
        name, participant = str(event["event"]), event.get("participant")
        self.slot = max(self.slot, int_of(event, "slot"))
        if name in _OF_AUDITS:
            key = (int_of(event, "round"), int_of(event, "target"))
            self.audits.setdefault(key, AuditLine(*key)).take(event)
        if participant is None:
            self._take_own(name, event)
            return
        line = self.participants.setdefault(str(participant), ParticipantLine(str(participant)))
        line.fees += int_of(event, "fee")
        line.round = max(line.round, int_of(event, "round", line.round))
        state = _STATES.get(name)
        if state is not None and float_of(event, "time") >= line.changed_at:
            line.changed_at, line.state = float_of(event, "time"), state(event)
        phase = _PHASES.get(name)
        if phase is not None and float_of(event, "time") >= self.changed_at:
            self.changed_at, self.phase = float_of(event, "time"), phase(event)
        note = _NOTES.get(name)
        if note is not None:
            note(self, line, event)

    @property
    def fees(self) -> int:
        """All fees that events have named so far, in lamports."""
        return self.own_fees + sum(line.fees for line in self.participants.values())

    @property
    def num_closed(self) -> int:
        """How many rounds have closed, never more than the run has."""
        return min(self.round, self.num_rounds)

    def state_of(self, name: str) -> str:
        """Return the state of a participant, also of one without events so far."""
        return self.participants[name].state if name in self.participants else "starting"

    def name_of(self, index: int) -> str:
        """Return the name of the participant with an index, as far as it has joined."""
        names = (line.name for line in self.participants.values() if line.index == index)
        return next(names, f"participant {index}")

    @property
    def judging_share(self) -> float | None:
        """Time of judging as a share of the time of training, in total; None without training."""
        training = sum(line.training_seconds for line in self.participants.values())
        judging = sum(line.judging_seconds for line in self.participants.values())
        return judging / training if training else None

    def notable_audits(self) -> list[AuditLine]:
        """Return the audits that are worth showing, oldest first."""
        return [audit for _, audit in sorted(self.audits.items()) if audit.is_notable]

    def mean_losses(self) -> list[float]:
        """Return the mean training loss of each closed round, in nats."""
        return [
            sum(of.values()) / len(of) / 10**6
            for round_, of in sorted(self.losses.items())
            if round_ < self.round
        ]

    def _take_own(self, name: str, event: Event) -> None:
        self.own_fees += int_of(event, "fee")
        if name == "run_created":
            self.run, self.num_rounds = str(event.get("run", "")), int_of(event, "rounds")
        elif name == "data_progress":
            self.data_done, self.data_total = int_of(event, "done"), int_of(event, "total")


def _always(word: str) -> Callable[[Event], str]:
    return lambda _event: word


def _share(event: Event) -> str:
    done, total = int_of(event, "done_bytes"), int_of(event, "total_bytes")
    return f"{100 * done // max(1, total)} %"


def _trained(board: Board, line: ParticipantLine, event: Event) -> None:
    line.loss_micro = int_of(event, "loss_micro")
    board.losses.setdefault(int_of(event, "round"), {})[line.name] = line.loss_micro


def _encoded(_board: Board, line: ParticipantLine, event: Event) -> None:
    line.payload_bytes = int_of(event, "payload_bytes")


def _closed(board: Board, line: ParticipantLine, event: Event) -> None:
    line.num_included += bool(event.get("own"))
    line.root = str(event.get("root", ""))
    board.round = max(board.round, int_of(event, "round") + 1)


def _joined(_board: Board, line: ParticipantLine, event: Event) -> None:
    line.index = int_of(event, "index", -1)


def _judged(_board: Board, line: ParticipantLine, event: Event) -> None:
    line.num_judged += 1
    line.judging_seconds += float_of(event, "seconds")


def _step_ended(_board: Board, line: ParticipantLine, event: Event) -> None:
    if event.get("step") == "train":
        line.training_seconds += float_of(event, "seconds")


def _ended(_board: Board, line: ParticipantLine, event: Event) -> None:
    line.root = str(event.get("root", ""))


def _failed(_board: Board, line: ParticipantLine, event: Event) -> None:
    line.failure = str(event.get("reason") or event.get("kind") or "no reason given")


_STATES: dict[str, Callable[[Event], str]] = {
    "joined": _always("joined"),
    "phase": lambda event: str(event.get("phase", "")).lower().replace("_", " "),
    "trained": _always("trained"),
    "committed": _always("committed"),
    "attested": _always("attested"),
    "lagging": _always("LAGGING: a payload is missing"),
    "recovering": _always("LAGGING: needs a checkpoint"),
    "restoring": _always("fetching a checkpoint"),
    "fetching": lambda event: f"fetching {_share(event)}",
    "replaying": _always("replaying"),
    "arrived": _always("ready to join"),
    "root_differs": _always("another root: replaying"),
    "healing": _always("HEALING: fetching pieces"),
    "healed": _always("healed"),
    "stake_too_low": _always("short of stake"),
    "round_closed": lambda event: "void round" if event.get("void") else "applied",
    "ended": lambda event: "finished" if event.get("finished") else "stopped",
    "failed": _always("failed"),
    "killed": _always("killed"),
}
"""The state of a participant after an event."""

_PHASES: dict[str, Callable[[Event], str]] = {
    "phase": lambda event: str(event.get("phase", "")),
    "trained": _always("COMMIT"),
    "gathered": _always("ATTEST"),
}
"""The phase of the run after an event."""

_OF_AUDITS = frozenset({"audit_changed", "audit_closed", "judged", "judged_case"})
"""Events about one audited payload."""

_NOTES: dict[str, Callable[[Board, ParticipantLine, Event], None]] = {
    "joined": _joined,
    "judged": _judged,
    "step_ended": _step_ended,
    "trained": _trained,
    "encoded": _encoded,
    "round_closed": _closed,
    "ended": _ended,
    "failed": _failed,
}
"""For each event, the function that adds it to the numbers."""
