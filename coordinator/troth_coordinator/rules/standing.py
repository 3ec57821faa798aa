"""Misses, strikes and the way back (protocol sections 3 and 8, P4).

Owns: the counters of misses in a row, when they make a participant inactive, the ring of strikes.
Never: takes the fee; `reward.py` says from where.
Next: `membership.py` for who is in a round.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from troth_coordinator.rules.ids import NONE, Lamports, RoundIndex
from troth_coordinator.rules.params_view import ParamsView

DEADLINE_MISSES = 3
"""Misses in a row, in phases that ran to the deadline, that make a participant inactive."""
ANY_MISSES = 12
REPEAT_ROUNDS = 500
"""A second inactivity within so many rounds waits for the next epoch."""
STRIKE_ROUNDS = 100
"""Rounds within which the strikes must fall, the newest one's round included."""
MAX_COUNT = 2**16 - 1

StrikeRing = tuple[RoundIndex, RoundIndex, RoundIndex]


NO_STRIKES: Final[StrikeRing] = (RoundIndex(NONE), RoundIndex(NONE), RoundIndex(NONE))


@dataclass(frozen=True, slots=True)
class Misses:
    """Phases missed in a row, of any length and of those that ran to the deadline."""

    in_row: int = 0
    deadline_in_row: int = 0

    @property
    def is_inactive(self) -> bool:
        """Whether so many misses make the participant inactive."""
        return self.is_fined or self.in_row >= ANY_MISSES

    @property
    def is_fined(self) -> bool:
        """Whether that costs the fee: only misses in phases that gave the full time do."""
        return self.deadline_in_row >= DEADLINE_MISSES


class Staker(Protocol):
    """The record that the rules of stake read: an entry of the roster, or of a recount."""

    @property
    def stake(self) -> int:
        """Lamports at stake."""

    @property
    def work_faults(self) -> int:
        """Convictions for work."""


def stake_to_stay(keep: int, min_: int, work_faults: int) -> Lamports:
    """Return the lamports below which a participant is inactive from the next open on.

    The stake to keep or, after a conviction for work, the stake to join with.
    """
    return Lamports(min_ if work_faults else keep)


def needed_stake(entry: Staker, params: ParamsView) -> Lamports:
    """Return the lamports that an entry must have at stake to stay, or to come back."""
    keep, min_ = params.keep_stake_lamports, params.min_stake_lamports
    return stake_to_stay(keep, min_, entry.work_faults)


def is_short(entry: Staker, params: ParamsView) -> bool:
    """Tell whether an entry has less at stake than it needs to stay, or to come back."""
    return entry.stake < needed_stake(entry, params)


@dataclass(frozen=True, slots=True)
class Duty:
    """One phase in which a participant had to act, and whether the phase gave it the full time."""

    has_acted: bool
    ran_to_deadline: bool


def after_round(misses: Misses, duties: Sequence[Duty]) -> Misses:
    """Return the counters after one more round with these duties.

    A row ends only with a round in which the participant did all that it had to: otherwise one
    who attests but never commits would hold up every round for nothing.
    """
    missed = [duty for duty in duties if not duty.has_acted]
    if not missed:
        return Misses()
    return Misses(
        min(misses.in_row + len(missed), MAX_COUNT),
        min(misses.deadline_in_row + sum(duty.ran_to_deadline for duty in missed), MAX_COUNT),
    )


def return_round(inactive_round: int, round_: int, rounds_per_epoch: int) -> RoundIndex:
    """Return the first round in which one who became inactive in `round_` may come back.

    `inactive_round` is the round of the inactivity before, or NONE.
    """
    if inactive_round == NONE or max(0, round_ - inactive_round) > REPEAT_ROUNDS:
        return RoundIndex(round_)
    return RoundIndex((round_ // rounds_per_epoch + 1) * rounds_per_epoch)


def add_strike(ring: StrikeRing, round_: int) -> tuple[StrikeRing, bool]:
    """Record a strike; true when it is the third within 100 rounds, which empties the ring."""
    newest, middle, _ = sorted(ring, key=lambda strike: _age(strike, round_))
    filled = (newest, middle, RoundIndex(round_))
    if all(_age(strike, round_) < STRIKE_ROUNDS for strike in filled):
        return NO_STRIKES, True
    return filled, False


def count_within(ring: StrikeRing, round_: int) -> int:
    """Return how many of the ring lie within 100 rounds of `round_`, its own included."""
    return sum(_age(strike, round_) < STRIKE_ROUNDS for strike in ring)


def _age(strike: int, round_: int) -> int:
    return NONE if strike == NONE else max(0, round_ - strike)
