"""The cost of a fault: its sources and its destinations (protocol section 8).

Owns: the penalty of each fault, the order stake, unbonding, unvested, the shortfall, the split.
Never: refuses for want of funds, or sees an account. Rounding remainders are always burned.
Next: `quorum.py` for the decision about a fault. Amounts are lamports, arithmetic is integer.

Percentages are of stake plus unbonding, so unbonding does not lower a penalty.
"""

from dataclasses import dataclass
from enum import Enum

from troth_attestation.quorum import SeatFault
from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.ids import NONE, Lamports

REPEAT_ROUNDS = 500
"""A second missing opening within this many rounds counts as false work."""
BOUNTY_PERCENT = 5
MISSING_OPENINGS_REWARDS = 10
ABSENT_SEAT_FEES = 2
WRONG_SEAT_RECOMPUTES = 10
FALSE_MISMATCH_PERCENT = 10
ACQUITTED_REWARDS = 10


class Fault(Enum):
    """The faults that cost lamports, with their numbers in the specification.

    A root in the minority costs only the reward and a strike; the program alone decides that.
    """

    MALFORMED = "P2"
    WORK = "P3"
    NO_OPENINGS = "P5"
    ABSENT_SEAT = "P6"
    WRONG_SEAT = "P7"
    FALSE_ROOT = "P8"
    FAILED_CASE = "P9"
    FALSE_POSSESSION = "P10"


@dataclass(frozen=True, slots=True)
class Funds:
    """The lamports of a participant that can be slashed; `unvested` includes rewards in escrow."""

    stake: int
    unbonding: int
    unvested: int

    def __post_init__(self) -> None:
        for name in ("stake", "unbonding", "unvested"):
            if not 0 <= getattr(self, name) < NONE:
                raise RangeError(name, "0..2^64-2 lamports", getattr(self, name), "read the roster")

    @property
    def principal(self) -> int:
        """Stake and unbonding."""
        return self.stake + self.unbonding


@dataclass(frozen=True, slots=True)
class Prices:
    """The parameters of a run that determine penalties, in lamports."""

    reward_per_payload: int
    witness_fee: int
    recompute_cost: int


@dataclass(frozen=True, slots=True)
class SlashIntent:
    """The lamports to take, before the funds are checked.

    `principal` lamports come from stake, then unbonding, then the rest of unvested; with
    `takes_unvested` all unvested rewards come on top.
    """

    fault: Fault
    principal: Lamports
    takes_unvested: bool = False
    is_strike: bool = False
    is_barred: bool = False
    pays_acquitted: bool = False


@dataclass(frozen=True, slots=True)
class Taken:
    """The lamports found, by source, and the shortfall, which is recorded instead of refused."""

    stake: Lamports
    unbonding: Lamports
    unvested: Lamports
    shortfall: Lamports

    @property
    def total(self) -> Lamports:
        """Lamports taken."""
        return Lamports(self.stake + self.unbonding + self.unvested)


@dataclass(frozen=True, slots=True)
class Split:
    """The destinations of taken lamports; the parts add up exactly."""

    challenger: Lamports = Lamports(0)  # noqa: RUF009  a NewType call is its argument
    acquitted: Lamports = Lamports(0)  # noqa: RUF009
    burned: Lamports = Lamports(0)  # noqa: RUF009

    @property
    def total(self) -> Lamports:
        """Lamports in all parts."""
        return Lamports(self.challenger + self.acquitted + self.burned)


def malformed(funds: Funds) -> SlashIntent:
    """Return the slash for a malformed payload: 10 %; its vouchers get a strike of their own."""
    return SlashIntent(Fault.MALFORMED, _percent(funds, 10))


def vouched_for_malformed() -> SlashIntent:
    """Return the slash for vouching for a malformed payload: a strike and no lamports."""
    return SlashIntent(Fault.MALFORMED, Lamports(0), is_strike=True)


def work(funds: Funds, *, is_repeated: bool) -> SlashIntent:
    """Return the slash for false work: half and all unvested; the second time all, and barred."""
    share = _percent(funds, 100 if is_repeated else 50)
    return SlashIntent(Fault.WORK, share, takes_unvested=True, is_barred=is_repeated)


def no_openings(
    funds: Funds, prices: Prices, round_: int, last_round: int, *, is_convicted: bool
) -> SlashIntent:
    """Return the slash for missing openings: ten rewards and all unvested.

    The second time within 500 rounds it costs as much as false work.

    `last_round` is the round under way when the fault before was decided, NONE without one. Only a
    later round is a second time, so that one outage counts once. `is_convicted`: the participant
    was convicted of false work before; then the repeated refusal bars it.
    """
    if last_round != NONE and 0 < round_ - last_round <= REPEAT_ROUNDS:
        return work(funds, is_repeated=is_convicted)
    rewards = Lamports(MISSING_OPENINGS_REWARDS * prices.reward_per_payload)
    return SlashIntent(Fault.NO_OPENINGS, rewards, takes_unvested=True)


def seat(fault: SeatFault, funds: Funds, prices: Prices) -> SlashIntent:
    """Return the slash for a seat.

    A missing commit costs two fees. A missing reveal costs as much as the worst wrong verdict. A
    wrong ok or an outvoted sketch costs ten recomputations. A false mismatch costs a tenth of the
    stake, of which the acquitted participant receives a part (`fine`).
    """
    wrong = Lamports(WRONG_SEAT_RECOMPUTES * prices.recompute_cost)
    false_mismatch = _percent(funds, FALSE_MISMATCH_PERCENT)
    if fault == SeatFault.NO_COMMIT:
        return SlashIntent(Fault.ABSENT_SEAT, Lamports(ABSENT_SEAT_FEES * prices.witness_fee))
    if fault == SeatFault.NO_REVEAL:
        return SlashIntent(Fault.ABSENT_SEAT, max(wrong, false_mismatch))
    if fault == SeatFault.FALSE_MISMATCH:
        return SlashIntent(Fault.WRONG_SEAT, false_mismatch, pays_acquitted=True)
    return SlashIntent(Fault.WRONG_SEAT, wrong)


def false_root(funds: Funds) -> SlashIntent:
    """Return the slash for a false root: a quarter."""
    return SlashIntent(Fault.FALSE_ROOT, _percent(funds, 25))


def false_possession(funds: Funds) -> SlashIntent:
    """Return the slash for a false possession: 2 % and a strike."""
    return SlashIntent(Fault.FALSE_POSSESSION, _percent(funds, 2), is_strike=True)


def failed_case(bond: int) -> Split:
    """Split the bond of a failed case: half to the accused, half burned, the odd lamport too."""
    half = bond // 2
    return Split(acquitted=Lamports(half), burned=Lamports(bond - half))


def take(intent: SlashIntent, funds: Funds) -> Taken:
    """Return the lamports that a slash can take: never more than the funds, never a refusal."""
    forfeited = funds.unvested if intent.takes_unvested else 0
    stake = min(intent.principal, funds.stake)
    unbonding = min(intent.principal - stake, funds.unbonding)
    rest = intent.principal - stake - unbonding
    unvested = min(rest, funds.unvested - forfeited)
    return Taken(
        Lamports(stake),
        Lamports(unbonding),
        Lamports(forfeited + unvested),
        Lamports(rest - unvested),
    )


def split(total: int, *, has_bond: bool) -> Split:
    """Divide what a jury took: 5 % to the challenger of a bonded case, the rest burns.

    The part is rounded down: slashing oneself through a second identity always loses.
    """
    bounty = total * BOUNTY_PERCENT // 100 if has_bond else 0
    return Split(challenger=Lamports(bounty), burned=Lamports(total - bounty))


def fine(total: int, acquittal: int = 0) -> Split:
    """Divide a penalty without a jury: at most `acquittal` to the acquitted, the rest burns."""
    acquitted = min(total, acquittal)
    return Split(acquitted=Lamports(acquitted), burned=Lamports(total - acquitted))


def acquittal(prices: Prices) -> Lamports:
    """Return the most that a target gets for all false accusations of one case: ten rewards."""
    return Lamports(ACQUITTED_REWARDS * prices.reward_per_payload)


def _percent(funds: Funds, percent: int) -> Lamports:
    return Lamports(funds.principal * percent // 100)
