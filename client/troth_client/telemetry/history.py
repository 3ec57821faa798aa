"""The history of a run, round by round, as events show it.

Owns: one line for each round, folded from the events of any number of participants in any order.
Never: reads a file or draws; sums over the whole run are those of `board.py`.
Next: `troth_cli/plot/collect.py`, which makes a picture's numbers of it.

Logs may be damaged, or made by hand: a number that no run can have is passed over.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from troth_client.telemetry.events import Event

MICRO = 10**6
MAX_NUMBER = 2**63 - 1
"""No round and no amount is larger: the chain keeps them in 64 bits."""


@dataclass(slots=True)
class RoundLine:
    """One round. Losses in micro-nats a token by participant; `mean_loss` is that of all headers.

    `num_included` is None until somebody saw the round close.
    """

    losses: dict[str, int] = field(default_factory=dict)
    validations: dict[str, int] = field(default_factory=dict)
    mean_loss: int | None = None
    committed: set[str] = field(default_factory=set)
    num_included: int | None = None
    is_void: bool = False

    @property
    def loss(self) -> float | None:
        """The mean training loss in nats; of the participants whose logs are here, at worst."""
        if self.mean_loss is not None:
            return self.mean_loss / MICRO
        return _mean_nats(self.losses)

    @property
    def validation(self) -> float | None:
        """The mean loss on held-out data in nats, None where nobody measured it."""
        return _mean_nats(self.validations)


@dataclass(slots=True)
class History:
    """All rounds by number, and stakes in lamports by participant and round.

    `payload_bytes` is the length of a payload: all payloads of a run have the same.
    """

    rounds: dict[int, RoundLine] = field(default_factory=dict)
    stakes: dict[str, dict[int, int]] = field(default_factory=dict)
    payload_bytes: int = 0

    def take(self, event: Event) -> None:
        """Fold one event in; events that are not about a round change nothing."""
        note = _NOTES.get(str(event["event"]))
        number = whole_of(event, "round")
        if note is None or number is None:
            return
        line = self.rounds.setdefault(number, RoundLine())
        note(self, line, str(event.get("participant", "")), event)

    def closed(self) -> list[tuple[int, RoundLine]]:
        """Return the closed rounds with their numbers, oldest first."""
        return [(n, one) for n, one in sorted(self.rounds.items()) if one.num_included is not None]


def whole_of(event: Event, key: str) -> int | None:
    """Return a field that is a whole number of at most 63 bits, None where it is anything else."""
    value = event.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MAX_NUMBER else None


def _mean_nats(micro: dict[str, int]) -> float | None:
    return sum(micro.values()) / len(micro) / MICRO if micro else None


def _trained(_history: History, line: RoundLine, participant: str, event: Event) -> None:
    loss = whole_of(event, "loss_micro")
    if loss is not None:
        line.losses[participant] = loss


def _validated(_history: History, line: RoundLine, participant: str, event: Event) -> None:
    loss = whole_of(event, "loss_micro")
    if loss is not None:
        line.validations[participant] = loss


def _encoded(history: History, _line: RoundLine, _participant: str, event: Event) -> None:
    history.payload_bytes = max(history.payload_bytes, whole_of(event, "payload_bytes") or 0)


def _committed(_history: History, line: RoundLine, participant: str, _event: Event) -> None:
    line.committed.add(participant)


def _closed(_history: History, line: RoundLine, _participant: str, event: Event) -> None:
    included = event.get("included")
    num_included = len(included) if isinstance(included, list) else 0
    line.num_included = max(line.num_included or 0, num_included)
    line.is_void = bool(event.get("void"))
    mean = whole_of(event, "mean_loss_micro")
    if mean is not None:
        line.mean_loss = mean


def _tallied(history: History, line: RoundLine, participant: str, event: Event) -> None:
    stake, number = whole_of(event, "stake"), whole_of(event, "round")
    if stake is not None and number is not None:
        history.stakes.setdefault(participant, {})[number] = stake


_NOTES: dict[str, Callable[[History, RoundLine, str, Event], None]] = {
    "trained": _trained,
    "validated": _validated,
    "encoded": _encoded,
    "committed": _committed,
    "round_closed": _closed,
    "tallied": _tallied,
}
"""For each event, the function that adds it to the history."""
