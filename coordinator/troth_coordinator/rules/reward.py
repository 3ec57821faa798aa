"""Rewards and how they vest (protocol section 8).

Owns: the scaled reward of a round, the three buckets of an entry, the order in which fees are
taken.
Never: holds lamports; it returns what an account should show.
Next: `standing.py` for who owes a fee.

The bucket of slot s is window s // w with w = half of the vesting time, rounded up, at position
window mod 3. It is claimable `vesting_slots` after its window ended; three windows later that
time has passed, so a newer window always finds a vested occupant.
"""

from dataclasses import dataclass, replace

from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.ids import Lamports

NUM_BUCKETS = 3
U64_MAX = 2**64 - 1

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Buckets:
    """Vesting rewards of one participant: window numbers and lamports by position."""

    windows: Triple
    amounts: Triple

    @property
    def unvested(self) -> Lamports:
        """Lamports in all buckets."""
        return Lamports(sum(self.amounts))


@dataclass(frozen=True, slots=True)
class FeeParts:
    """From where a fee was taken, in this order; less than the fee where nothing is left."""

    claimable: Lamports
    unvested: Lamports
    stake: Lamports
    buckets: Buckets

    @property
    def total(self) -> Lamports:
        """Lamports taken in all."""
        return Lamports(self.claimable + self.unvested + self.stake)


def window_slots(vesting_slots: int) -> int:
    """Return w, the length of a window in slots, at least 1."""
    return max(1, -(-vesting_slots // 2))


def window_of(slot: int, vesting_slots: int) -> int:
    """Return the window that a reward earned in `slot` vests with."""
    return slot // window_slots(vesting_slots)


def claimable_from(window: int, vesting_slots: int) -> int:
    """Return the first slot in which the amount of a window is claimable."""
    return (window + 1) * window_slots(vesting_slots) + vesting_slots


def credit(buckets: Buckets, window: int, lamports: int) -> tuple[Buckets, Lamports]:
    """Add a reward to its window; returns the buckets and what vested by making room for it.

    Raises RangeError where the bucket would exceed a u64.
    """
    at = window % NUM_BUCKETS
    if buckets.windows[at] != window:
        vested = buckets.amounts[at]
        windows = _with(buckets.windows, at, window)
        return Buckets(windows, _with(buckets.amounts, at, lamports)), Lamports(vested)
    total = buckets.amounts[at] + lamports
    if total > U64_MAX:
        raise RangeError("bucket", f"at most {U64_MAX} lamports", total, "this cannot be earned")
    return replace(buckets, amounts=_with(buckets.amounts, at, total)), Lamports(0)


def release(buckets: Buckets, slot: int, vesting_slots: int) -> tuple[Buckets, Lamports]:
    """Empty every bucket that is claimable in `slot`; returns the buckets and the sum."""
    released = 0
    amounts = buckets.amounts
    for at, window in enumerate(buckets.windows):
        if amounts[at] and claimable_from(window, vesting_slots) <= slot:
            released += amounts[at]
            amounts = _with(amounts, at, 0)
    return replace(buckets, amounts=amounts), Lamports(released)


def remove(buckets: Buckets, window: int, lamports: int) -> tuple[Buckets, Lamports]:
    """Take back at most `lamports` from one window; returns the buckets and what was there."""
    at = window % NUM_BUCKETS
    if buckets.windows[at] != window:
        return buckets, Lamports(0)
    part = min(lamports, buckets.amounts[at])
    amounts = _with(buckets.amounts, at, buckets.amounts[at] - part)
    return replace(buckets, amounts=amounts), Lamports(part)


def take(buckets: Buckets, lamports: int) -> tuple[Buckets, Lamports]:
    """Take at most `lamports`, oldest window first; returns the buckets and what was there."""
    taken = 0
    amounts = buckets.amounts
    for at in sorted(range(NUM_BUCKETS), key=buckets.windows.__getitem__):
        part = min(lamports - taken, amounts[at])
        amounts = _with(amounts, at, amounts[at] - part)
        taken += part
    return replace(buckets, amounts=amounts), Lamports(taken)


def take_fee(claimable: int, buckets: Buckets, stake: int, fee: int) -> FeeParts:
    """Take a fee from claimable, then unvested, then stake; never more than is there."""
    first = min(claimable, fee)
    rest, second = take(buckets, fee - first)
    third = min(stake, fee - first - second)
    return FeeParts(Lamports(first), second, Lamports(third), rest)


def scaled_reward(reward_per_payload: int, pool: int, num_included: int) -> Lamports:
    """Return what each included payload earns when the pool may not suffice, rounded down."""
    if num_included == 0:
        return Lamports(0)
    return Lamports(min(reward_per_payload, pool // num_included))


def _with(values: Triple, at: int, value: int) -> Triple:
    first, second, third = (value if i == at else old for i, old in enumerate(values))
    return first, second, third
