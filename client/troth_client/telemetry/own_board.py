"""The sums over the events of one participant: the numbers behind the view of `troth join`.

Owns: folding its own events; the curve of the run, from what it says of each closed round.
A run of any length fits: sums that the view does not show are dropped.
Never: reads a file or draws. Next: `own_display.py`, which draws; `board.py` for several logs.
"""

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from troth_client.telemetry.board import Board, ParticipantLine
from troth_client.telemetry.duties import Duties
from troth_client.telemetry.events import Event, int_of
from troth_client.telemetry.spread import RECENT_ROUNDS, Spread, spread_of
from troth_client.telemetry.thinning import superfluous

ME = "this machine"
MOST_LOSSES = 4_096
MOST_AUDITS = 1_024
"""Audits of which lines are kept: those that are open, and closed ones that are worth showing."""
MICRO = 10**6


@dataclass(slots=True)
class OwnBoard:
    """One participant and its run. `clock`: seconds, for the length of rounds.

    `losses` are the run's mean training losses by round, `validation` losses on held-out text, in
    micro-nats. `tally` is the newest event `tallied`. `board` and `duties` have no losses by round
    and no findings, and of audits only open and notable ones.
    """

    run: str
    num_rounds: int
    clock: Callable[[], float]
    board: Board = field(default_factory=Board)
    duties: Duties = field(default_factory=Duties)
    losses: dict[int, int] = field(default_factory=dict)
    validation: dict[int, int] = field(default_factory=dict)
    tally: Event = field(default_factory=dict)
    num_void: int = 0
    _closed: deque[tuple[int, float]] = field(
        default_factory=lambda: deque(maxlen=RECENT_ROUNDS + 1)
    )

    def take(self, event: Event) -> None:
        """Fold one event in; events that it does not know change nothing."""
        self.board.take({**event, "participant": ME})
        self.duties.take(event)
        self._forget(event)
        name, round_ = event["event"], int_of(event, "round", -1)
        if name == "round_closed":
            self._close(round_, event)
        elif name == "validated":
            _keep(self.validation, round_, event.get("loss_micro"))
        elif name == "tallied":
            self.tally = event
            self.num_rounds = int_of(event, "rounds", self.num_rounds)

    @property
    def line(self) -> ParticipantLine:
        """Our own line."""
        return self.board.participants.get(ME) or ParticipantLine(ME)

    @property
    def num_closed(self) -> int:
        """How many rounds have closed, never more than the run has."""
        return min(self.board.round, self.num_rounds)

    def seconds_left(self) -> Spread | None:
        """Return how long the rounds that are left take; None before enough have closed."""
        closed = list(self._closed)
        lengths = [
            after - before
            for (one, before), (other, after) in itertools.pairwise(closed)
            if other == one + 1
        ]
        each, num_left = spread_of(lengths), self.num_rounds - self.num_closed
        if each is None:
            return None
        return Spread(each.low * num_left, each.middle * num_left, each.high * num_left)

    def _forget(self, event: Event) -> None:
        """Drop what would grow with the run, and what the view does not show."""
        self.board.losses.clear()
        self.duties.findings.clear()
        audits = self.board.audits
        key = (int_of(event, "round"), int_of(event, "target"))
        if event["event"] == "audit_closed" and not audits[key].is_notable:
            del audits[key]
        if len(audits) > MOST_AUDITS:
            del audits[next(iter(audits))]  # the oldest one

    def _close(self, round_: int, event: Event) -> None:
        self._closed.append((round_, self.clock()))
        self.num_void += bool(event.get("void"))
        _keep(self.losses, round_, event.get("mean_loss_micro"))


def _keep(losses: dict[int, int], round_: int, loss: object) -> None:
    """Keep a loss, and drop older ones where there are too many. Rounds come in their order."""
    if not isinstance(loss, int):
        return
    losses[round_] = loss
    for dropped in superfluous(list(losses), MOST_LOSSES):
        del losses[dropped]
