"""Priority fees: the price of a compute unit from a policy, recent fees, time left and caps.

Owns: the policy as users write it, the arithmetic of one price, and the lamports of one epoch.
Never: asks a node or signs; whole numbers only.
Next: pricing.py, which asks a node for recent fees; sender.py, which signs with the price.

    level  time left of the window       price
    0      more than a half, or unknown  what the policy says
    1      at most a half                4 times that, at least 4 times FLOOR
    2      at most a quarter             16 times that, at least 16 times FLOOR
    3      at most an eighth, and tried  what the caps allow
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from troth_coordinator.chain.errors import PriorityPolicyError
from troth_coordinator.rules.params_view import ParamsView

MICRO: Final = 1_000_000
"""Micro-lamports in a lamport; prices are in micro-lamports per compute unit."""
FULL_WINDOW: Final = 1_000
"""Time left is counted in thousandths of the window."""
FLOOR: Final = 10_000
"""Where nobody paid lately: the price from which a late send is raised, 0.01 lamports a unit."""
RAISE: Final = 4
"""Each level is so many times the one before."""
LAST_LEVEL: Final = 3
PER_TRANSACTION_LAMPORTS: Final = 100_000
PER_EPOCH_LAMPORTS: Final = 10_000_000
LEAST_EPOCH_SECONDS: Final = 600.0
SLOT_SECONDS: Final = 0.4
"""The length of a slot on the public clusters."""
DEFAULT_POLICY: Final = "percentile:75"
"""The policy of `troth join` where none is named."""
MAX_PRICE: Final = 2**64 - 1
"""The instruction that names the price holds 64 bits."""


class PriorityKind(Enum):
    """Where a price comes from."""

    NONE = "none"
    FIXED = "fixed"
    PERCENTILE = "percentile"


@dataclass(frozen=True, slots=True)
class PriorityPolicy:
    """How much may be paid to come first.

    amount: micro-lamports per compute unit for `fixed`; for `percentile` 1 to 100, of the recent
    prices on the accounts that the transaction writes. The caps are lamports, for one transaction
    and for all of one epoch.
    """

    kind: PriorityKind = PriorityKind.NONE
    amount: int = 0
    cap_lamports: int = PER_TRANSACTION_LAMPORTS
    epoch_cap_lamports: int = PER_EPOCH_LAMPORTS

    @classmethod
    def parse(
        cls,
        text: str,
        cap_lamports: int = PER_TRANSACTION_LAMPORTS,
        epoch_cap_lamports: int = PER_EPOCH_LAMPORTS,
    ) -> PriorityPolicy:
        """Read `none`, `fixed:N` or `percentile:P`; PriorityPolicyError for anything else."""
        name, _, number = text.partition(":")
        highest = {"fixed": MAX_PRICE, "percentile": 100}.get(name, 0)
        if text == PriorityKind.NONE.value:
            return cls(PriorityKind.NONE, 0, cap_lamports, epoch_cap_lamports)
        is_number = number.isascii() and number.isdecimal() and len(number) <= len(str(MAX_PRICE))
        if not is_number or not 1 <= int(number) <= highest:
            raise PriorityPolicyError(text)
        return cls(PriorityKind(name), int(number), cap_lamports, epoch_cap_lamports)

    def __str__(self) -> str:
        """Return the policy as `parse` reads it, without the caps."""
        return self.kind.value + (f":{self.amount}" if self.amount else "")

    @property
    def send_cap(self) -> int:
        """The lamports that one transaction may cost for priority, 0 for `none`."""
        return 0 if self.kind is PriorityKind.NONE else self.cap_lamports

    def base(self, recent: Sequence[int]) -> int:
        """Return the price without haste, from recent prices, 0 where nobody paid."""
        if self.kind is PriorityKind.PERCENTILE:
            return percentile(recent, self.amount)
        return self.amount

    def price(self, base: int, level: int, units: int, lamports_left: int) -> int:
        """Return the price of each of `units` compute units; see the module for the levels.

        It never falls as the level grows. Its lamports exceed neither cap nor `lamports_left`, half
        of which stays for sends that are late: a node may make up what others pay.
        """
        if self.kind is PriorityKind.NONE:
            return 0
        if level == 0 and self.kind is PriorityKind.PERCENTILE:
            lamports_left -= self.epoch_cap_lamports // 2
        allowed = min(self.cap_lamports, lamports_left)
        most = min(max(0, allowed) * MICRO // max(1, units), MAX_PRICE)
        if level >= LAST_LEVEL:
            return most
        wanted = base if level == 0 else max(base, FLOOR) * RAISE**level
        return min(wanted, most)


def level_of(left: int | None, *, is_tried: bool) -> int:
    """Return how urgent a send is, 0 to 3.

    left: thousandths of its window, None for a send without one. is_tried: bytes of this send were
    handed over and did not land; only then the caps are used up.
    """
    if left is None or 2 * left > FULL_WINDOW:
        return 0
    if 4 * left > FULL_WINDOW:
        return 1
    return LAST_LEVEL if is_tried and 8 * left <= FULL_WINDOW else LAST_LEVEL - 1


def percentile(prices: Sequence[int], percent: int) -> int:
    """Return the least price that is at least as high as `percent` of 100 of them; 0 of none."""
    ordered = sorted(prices)
    rank = -(-percent * len(ordered) // 100)
    return ordered[rank - 1] if ordered else 0


def lamports_of(price: int, units: int) -> int:
    """Return the lamports that `units` compute units cost at a price, as the network rounds."""
    return -(-price * units // MICRO)


def least_epoch_seconds(params: ParamsView) -> float:
    """Return how long the cap of an epoch lasts at least: a quarter of the windows of its rounds.

    Phases end early where all are in time, so an epoch may be shorter than its windows. Ten minutes
    where a quarter is less: a node may make up parameters as well.
    """
    slots = params.rounds_per_epoch * (params.commit_slots + params.attest_slots) // 4
    return max(LEAST_EPOCH_SECONDS, slots * SLOT_SECONDS)


def _forget(_epoch: EpochLamports) -> None:
    return


@dataclass(slots=True)
class EpochLamports:
    """The lamports for priority of one epoch: what was paid, and what sends under way may cost.

    begun_at: when the count began, in seconds of a clock of ours. on_paid: told whenever something
    was paid.
    """

    cap: int
    epoch: int = -1
    begun_at: float = 0.0
    spent: int = 0
    held: int = 0
    on_paid: Callable[[EpochLamports], None] = _forget

    @property
    def left(self) -> int:
        """Lamports that may still be offered."""
        return max(0, self.cap - self.spent - self.held)

    def begin(self, epoch: int, now: float, least_seconds: float) -> None:
        """Count anew if the run is in a later epoch, and the one that is counted can be over.

        A node may make epochs up. So no count is shorter than `least_seconds`, and an earlier epoch
        corrects the number alone.
        """
        if self.epoch < 0:
            self.epoch, self.begun_at = epoch, now
        elif epoch < self.epoch:
            self.epoch = epoch
        elif epoch > self.epoch and now - self.begun_at >= least_seconds:
            self.epoch, self.begun_at, self.spent = epoch, now, 0

    def hold(self, lamports: int) -> None:
        """Set lamports aside for bytes that are handed over."""
        self.held += lamports

    def settle(self, held: int, paid: int) -> None:
        """Release what was set aside, and count what was paid of it."""
        self.held -= held
        self.spent += paid
        if paid:
            self.on_paid(self)
