"""Earnings: what a day of honest work should bring, from the parameters of a run (section 8).

Owns: the expected pay of one participant, the transactions that it pays for, and how long the pool
and a balance last.
Never: decides anything on chain, or knows what electricity costs. The pay of a payload is
`reward.py`'s, the seats of an audit are those of `audits.py`.
Next: `economics.py` for what cheating would cost.

All numbers are expectations, lamports rounded down: nobody is late, every payload is included.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from troth_coordinator.rules.audits import FIRST_SEATS
from troth_coordinator.rules.economics import drawn_chance
from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.ids import Lamports
from troth_coordinator.rules.params_view import ParamsView
from troth_coordinator.rules.reward import scaled_reward
from troth_coordinator.rules.view import Role

DAY_MICROS: Final = 86_400 * 10**6
SHARED_TRANSACTIONS: Final = 4
"""Transactions of a round that somebody sends for all: phases, close, seed."""
SEAT_TRANSACTIONS: Final = 2
"""Transactions of a seat: the commit and the reveal of a verdict."""
TARGET_TRANSACTIONS: Final = 2
"""Transactions around a sampled payload: its openings, and the end of its audit."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """The members of a run with us among them: trainers, witnesses that may be seated, all.

    `max_audits` is the most audits of a round.
    """

    trainers: int
    eligible: int
    members: int
    max_audits: int

    def __post_init__(self) -> None:
        for name in ("trainers", "eligible", "members"):
            if getattr(self, name) < 1:
                raise RangeError(name, "at least 1: the newcomer", 0, "count the newcomer, too")


@dataclass(frozen=True, slots=True)
class Earnings:
    """The expectation for one participant; amounts are lamports of one round.

    `rounds` are those of a day that the run still has and the pool still pays. `pool_rounds` is
    None where nothing is taken from the pool. `seats` are those that it takes in a round.
    """

    rounds: int
    reward: Fraction
    seat_pay: Fraction
    fees: Fraction
    seats: Fraction
    pool_rounds: int | None

    @property
    def day_lamports(self) -> int:
        """The pay of a day less fees; below 0 where the fees are higher than the pay."""
        return int(self.rounds * (self.reward + self.seat_pay - self.fees))


def rounds_of_a_day(round_slots: Fraction, slot_micros: int) -> int:
    """Return how many rounds of so many slots a day has; RangeError unless both are above 0."""
    if round_slots <= 0 or slot_micros <= 0:
        raise RangeError("round", "above 0 slots and 0 s", round_slots, "measure again")
    return int(DAY_MICROS / (round_slots * slot_micros))


def earnings(
    params: ParamsView, pool: int, crowd: Crowd, roles: Role, rounds: int, fee: int
) -> Earnings:
    """Return what a participant with these roles earns in at most so many rounds.

    `pool` is the run's reward pool, `fee` that of a transaction, both in lamports.
    """
    is_trainer, is_witness = bool(roles & Role.TRAINER), bool(roles & Role.WITNESS)
    drawn = drawn_chance(params.p_base_ppm, crowd.trainers, crowd.max_audits)
    num_audits = drawn * crowd.trainers
    seats = num_audits * FIRST_SEATS / crowd.eligible if is_witness else Fraction(0)
    reward = scaled_reward(params.reward_per_payload, pool, crowd.trainers) if is_trainer else 0
    transactions = 1 + is_trainer + Fraction(SHARED_TRANSACTIONS, crowd.members)
    transactions += seats * SEAT_TRANSACTIONS + is_trainer * drawn * TARGET_TRANSACTIONS
    taken = (
        params.reward_per_payload * crowd.trainers + num_audits * FIRST_SEATS * params.witness_fee
    )
    pool_rounds = int(pool / taken) if taken else None
    return Earnings(
        rounds=rounds if pool_rounds is None else min(rounds, pool_rounds),
        reward=Fraction(reward),
        seat_pay=seats * params.witness_fee,
        fees=transactions * fee,
        seats=seats,
        pool_rounds=pool_rounds,
    )


def rounds_paid_for(balance: int, each: Earnings) -> int:
    """Return for how many rounds a balance of lamports pays the transaction fees."""
    return int(Lamports(balance) / each.fees) if each.fees > 0 else 0
