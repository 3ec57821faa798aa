"""The time that is left of a run: measured slots, measured rounds, and honest gaps.

Owns: the pace of slots, and the estimate. Never: reads a clock or the chain.
Next: `fold.py`, which asks for it.

The rounds that are left take as long as the last ones took: their median, and the quartiles as
range. A halt or a pause among them is one long round, which moves neither much.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Final

from troth_audit.rounds import ClosedRound
from troth_cli.slot_time import STATED, STATED_SLOT_MICROS, SlotTime
from troth_cli.view.output import Json
from troth_client.telemetry.spread import LEAST_ROUNDS, RECENT_ROUNDS, spread_of
from troth_coordinator.rules.phase import Phase

LEAST_SECONDS: Final = 1.0
LEAST_SLOTS: Final = 4
"""The pace is known once so many seconds and slots lie between two looks."""
WINDOW_SECONDS: Final = 120.0
"""The pace is that of the last two minutes."""
WITHOUT: Final = {
    Phase.WAITING_FOR_MEMBERS: "the run waits for members",
    Phase.PAUSED: "the run is paused",
    Phase.HALTED: "the run is halted",
}
"""Phases whose end depends on people."""


class SlotPace:
    """Measures the length of a slot from looks at the chain.

    `before`: its length until enough looks were made, like that which a node measured.
    """

    def __init__(self, before: SlotTime = STATED) -> None:
        self.before = before
        self._looks: deque[tuple[float, int]] = deque()

    def observe(self, now: float, slot: int) -> None:
        """Take note of a look; `now` in seconds."""
        if self._looks and slot < self._looks[-1][1]:
            self._looks.clear()  # another node, or a fork
        self._looks.append((now, slot))
        while now - self._looks[0][0] > WINDOW_SECONDS and len(self._looks) > 2:
            self._looks.popleft()

    @property
    def slot_time(self) -> SlotTime:
        """The measured length; `before` while too little was seen."""
        if len(self._looks) < 2:
            return self.before
        (began, first), (ended, last) = self._looks[0], self._looks[-1]
        if ended - began < LEAST_SECONDS or last - first < LEAST_SLOTS:
            return self.before
        return SlotTime(max(1, round((ended - began) * 1e6 / (last - first))), is_measured=True)


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """An estimate, or the reason why there is none.

    `low` and `high` are what the rounds left take if all are like the quarter that was fastest or
    slowest. `num_measured`: rounds behind it. If `is_slot_time_measured` is False, the seconds
    assume Solana's stated slots. `note`: what the estimate leaves out.
    """

    num_rounds: int
    slots: int | None = None
    slots_low: int | None = None
    slots_high: int | None = None
    seconds: int | None = None
    seconds_low: int | None = None
    seconds_high: int | None = None
    slot_micros: int = STATED_SLOT_MICROS
    is_slot_time_measured: bool = False
    num_measured: int = 0
    reason: str = ""
    note: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return the estimate for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Position:
    """Where a run stands. `open_slot`: of the open round, None between rounds."""

    phase: Phase
    round: int
    max_rounds: int
    slot: int
    open_slot: int | None
    slots_left: int | None


def estimate(at: Position, rounds: Sequence[ClosedRound], slot_time: SlotTime) -> TimeLeft:
    """Estimate the time until the last round closes, from closed rounds, oldest first."""
    num_left = max(0, at.max_rounds - at.round)
    if at.phase == Phase.FINISHED or num_left == 0:
        return TimeLeft(num_left, 0, 0, 0, 0, 0, 0)
    if at.phase in WITHOUT:
        return TimeLeft(num_left, reason=WITHOUT[at.phase])
    spans = _spans(rounds, at)
    spread = spread_of(spans)
    if spread is None:
        reason = f"too few rounds have closed: {len(spans)} of {LEAST_ROUNDS} measured"
        return TimeLeft(num_left, num_measured=len(spans), reason=reason)
    warmup = (at.slots_left or 0) if at.phase == Phase.WARMUP else 0
    spent = 0 if at.open_slot is None else max(0, at.slot - at.open_slot)

    def slots(each: float) -> int:
        return round(warmup + (num_left - 1) * each + max(0.0, each - spent))

    def seconds(each: float) -> int:
        return round(slot_time.seconds(slots(each)))

    return TimeLeft(
        num_rounds=num_left,
        slots=slots(spread.middle),
        slots_low=slots(spread.low),
        slots_high=slots(spread.high),
        seconds=seconds(spread.middle),
        seconds_low=seconds(spread.low),
        seconds_high=seconds(spread.high),
        slot_micros=slot_time.micros,
        is_slot_time_measured=slot_time.is_measured,
        num_measured=len(spans),
        note="halts and pauses to come are not in it",
    )


def _spans(rounds: Sequence[ClosedRound], at: Position) -> list[int]:
    """Return the slots from open to open of the last rounds that follow each other."""
    begun = [(one.round, one.open_slot) for one in rounds[-RECENT_ROUNDS:]]
    if at.open_slot is not None:
        begun.append((at.round, at.open_slot))
    spans = [
        (after - before)
        for (one, before), (other, after) in pairwise(begun)
        if before is not None and after is not None and other == one + 1
    ]
    return [span for span in spans if span > 0]
