"""The cost of a fault: its sources and its destinations (protocol section 8).

Owns: the penalty of each fault, the two orders of their sources, the shortfall, the split. A small
penalty (P5, P6, P7) takes from claimable, unvested, stake, unbonding; a conviction from stake,
unbonding, unvested.
Never: refuses for want of funds, or sees an account. Rounding remainders are always burned.
Next: `panel.py` for the decision about a fault. Amounts are lamports, arithmetic is integer.

Percentages are of stake plus unbonding, so unbonding does not lower a penalty.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from troth_attestation.quorum import SeatFault
from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.ids import NONE, Lamports

BOUNTY_PERCENT = 5
MISSING_OPENINGS_PERCENT = 50
"""Missing openings cost at most so much of stake and unbonding."""
ABSENT_SEAT_FEES = 2
WRONG_SEAT_RECOMPUTES = 10
FALSE_MISMATCH_PERCENT = 10
ACQUITTED_REWARDS = 10
SMALL_ORDER = ("claimable", "unvested", "stake", "unbonding")
CONVICTION_ORDER = ("stake", "unbonding", "unvested")


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


CONVICTED_FAULTS: Final[Mapping[AuditKind, Fault]] = {
    AuditKind.WORK: Fault.WORK,
    AuditKind.PAYLOAD: Fault.MALFORMED,
    AuditKind.ROOT: Fault.FALSE_ROOT,
    AuditKind.POSSESSION: Fault.FALSE_POSSESSION,
}
"""The fault that a conviction of each kind proves."""


@dataclass(frozen=True, slots=True)
class Funds:
    """The lamports of a participant that can be taken; only small penalties take `claimable`."""

    claimable: int
    unvested: int
    stake: int
    unbonding: int

    def __post_init__(self) -> None:
        for name in ("claimable", "unvested", "stake", "unbonding"):
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

    `principal` lamports come from stake, then unbonding, then the rest of unvested; if `is_small`,
    from claimable and unvested first. With `takes_unvested` all unvested rewards come on top.
    """

    fault: Fault
    principal: Lamports
    is_small: bool = False
    takes_unvested: bool = False
    is_strike: bool = False
    is_barred: bool = False
    pays_acquitted: bool = False


@dataclass(frozen=True, slots=True)
class Taken:
    """The lamports found, by source, and the shortfall, which is recorded instead of refused."""

    claimable: Lamports
    unvested: Lamports
    stake: Lamports
    unbonding: Lamports
    shortfall: Lamports

    @property
    def total(self) -> Lamports:
        """Lamports taken."""
        return Lamports(self.claimable + self.unvested + self.stake + self.unbonding)


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


def no_openings(funds: Funds, price: int, doublings: int) -> SlashIntent:
    """Return the slash for missing openings: the price, doubled so often; half at most.

    `rules/refusal.py` knows the price of a round's audits and how often it is doubled.
    """
    amount = Lamports(min(price << doublings, _percent(funds, MISSING_OPENINGS_PERCENT)))
    return SlashIntent(Fault.NO_OPENINGS, amount, is_small=True)


def seat(fault: SeatFault, funds: Funds, prices: Prices, *, is_second: bool = False) -> SlashIntent:
    """Return the slash for a seat.

    A missing commit or reveal costs two fees, and so does an outvoted sketch: it may be honest
    noise. The second missing reveal (`outage.hidden_verdict`) costs as much as the worst wrong
    verdict. A wrong ok costs ten recomputations. A false mismatch costs a tenth of the stake, of
    which the acquitted participant receives a part (`fine`).
    """
    wrong = Lamports(WRONG_SEAT_RECOMPUTES * prices.recompute_cost)
    false_mismatch = _percent(funds, FALSE_MISMATCH_PERCENT)
    silence = Lamports(ABSENT_SEAT_FEES * prices.witness_fee)
    if fault == SeatFault.NO_REVEAL and is_second:
        return _small(Fault.ABSENT_SEAT, max(wrong, false_mismatch))
    if fault in (SeatFault.NO_COMMIT, SeatFault.NO_REVEAL):
        return _small(Fault.ABSENT_SEAT, silence)
    if fault == SeatFault.OUTVOTED_SKETCH:
        return _small(Fault.WRONG_SEAT, silence)
    if fault == SeatFault.FALSE_MISMATCH:
        return replace(_small(Fault.WRONG_SEAT, false_mismatch), pays_acquitted=True)
    return _small(Fault.WRONG_SEAT, wrong)


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
    left = {
        "claimable": funds.claimable if intent.is_small else 0,
        "unvested": funds.unvested - forfeited,
        "stake": funds.stake,
        "unbonding": funds.unbonding,
    }
    missing, found = intent.principal, {"unvested": forfeited}
    for source in SMALL_ORDER if intent.is_small else CONVICTION_ORDER:
        part = min(missing, left[source])
        found[source] = found.get(source, 0) + part
        missing = Lamports(missing - part)
    return Taken(
        claimable=Lamports(found.get("claimable", 0)),
        unvested=Lamports(found["unvested"]),
        stake=Lamports(found["stake"]),
        unbonding=Lamports(found["unbonding"]),
        shortfall=Lamports(min(missing, NONE)),
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


def _small(fault: Fault, principal: Lamports) -> SlashIntent:
    return SlashIntent(fault, principal, is_small=True)


def _percent(funds: Funds, percent: int) -> Lamports:
    return Lamports(funds.principal * percent // 100)
