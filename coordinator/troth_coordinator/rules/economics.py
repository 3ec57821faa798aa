"""Deterrence by sampling: closed formulas over the rules of protocol sections 7 and 8.

Owns: detection per round, rounds until a cheat is caught, and the stake that deters. The price of
refusing, forged tiles that are seen, the pay and risk of a witness, and captured juries, too.
Never: decides anything on chain: these are advice for the creator of a run.
Next: `params.py` for the parameters, `reward.py` for what is really paid.

Probabilities are exact fractions (parts per million where they are given), money is lamports,
rounded against the one who might cheat.
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from math import ceil, comb
from typing import Final

from troth_coordinator.rules.audits import FIRST_SEATS, JURY_SEATS, MAX_SEATS, SECOND_SEATS
from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.ids import Lamports
from troth_coordinator.rules.refusal import LAST_STEP, openings_price

PPM: Final = 10**6
_DIGITS: Final = 60
_KEPT_DIGITS: Final = Decimal(10) ** -40
"""A quotient of logarithms this close to a whole number is that number."""
CONVICTING: Final = -(-2 * JURY_SEATS // 3)
"""Jurors of a full jury that convict; all the others and one more prevent it."""
WITNESS_PENALTY_FACTOR: Final = 10
LOW_RANK_SHARE: Final = Fraction(1, 3)
"""The weight gradients are a third of the arithmetic of a payload: the most that low rank saves."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The question of `troth run economics`; probabilities in ppm, money in lamports.

    `power_ppm` is the chance that a sampled cheat of this size is judged a mismatch, `capture_ppm`
    that seats or jury fail. `lazy_ppm` is the share of witnesses that compute nothing. `gain` is
    what one skipped computation saves, `outside_gain` what else a cheat earns in a round.
    `forged_ppm` is the share of its tiles that a smuggler forges, `drawn_tiles` how many an audit
    opens. A round has `people` payloads and at most `max_audits` audits; `keep_stake` is the least
    stake of a member.
    """

    p_ppm: int
    power_ppm: int
    capture_ppm: int
    lazy_ppm: int
    seats: int
    reward: int
    cost: int
    gain: int
    outside_gain: int
    unvested: int
    fee_cost: int
    keep_stake: int
    people: int
    max_audits: int
    forged_ppm: int
    drawn_tiles: int

    def __post_init__(self) -> None:
        for name in ("p_ppm", "power_ppm", "capture_ppm", "lazy_ppm", "forged_ppm"):
            if not 0 <= getattr(self, name) <= PPM:
                raise RangeError(name, f"0..{PPM} ppm", getattr(self, name), "give a probability")
        counts = ("seats", "people", "max_audits", "drawn_tiles")
        amounts = ("reward", "cost", "gain", "outside_gain", "unvested", "fee_cost", "keep_stake")
        for name in (*amounts, *counts):
            if getattr(self, name) < (name in counts):
                raise RangeError(name, "no negative amount", getattr(self, name), "give more")


@dataclass(frozen=True, slots=True)
class Advice:
    """The answers, in the order in which they are printed.

    `rounds_to_capture` and `minimum_stake` are None where nothing is ever detected;
    `false_slash_ppb` is the highest rate of false slashes per round, in 10^-9, at which honest
    work still pays at that stake.
    """

    detection: Fraction
    rounds_to_capture: int | None
    minimum_stake: Lamports | None
    refusal_prices: tuple[Lamports, ...]
    is_refusing_deterred: bool
    forging_seen: Fraction
    rounds_to_see_forging: int | None
    low_rank_saves: Lamports
    audit_share: Fraction
    witness_pay: Lamports
    laziness_caught: Fraction
    witness_penalty: Lamports | None
    false_slash_ppb: int | None


def advise(given: Assumptions) -> Advice:
    """Return everything that follows from the assumptions."""
    found = detection(given.p_ppm, given.power_ppm, given.capture_ppm)
    gain = given.gain + given.outside_gain
    stake = minimum_stake(gain, found, given.reward, given.unvested) if found else None
    # Refusing to open is found by the deadline: no power of a test and no jury in between.
    drawn = drawn_chance(given.p_ppm, given.people, given.max_audits)
    sum_ppm = given.people * given.p_ppm
    price = openings_price(given.reward, given.p_ppm, sum_ppm, given.max_audits)
    prices = refusal_prices(price, given.keep_stake)
    seen = tiles_seen(given.forged_ppm, given.drawn_tiles)
    forging = drawn * seen * Fraction(PPM - given.capture_ppm, PPM)
    caught = laziness_caught(given.lazy_ppm, given.seats)
    return Advice(
        found,
        rounds_to_capture(found) if found else None,
        stake,
        prices,
        drawn * (prices[0] + given.reward) >= gain,
        seen,
        rounds_to_capture(forging) if forging else None,
        Lamports(int(given.cost * LOW_RANK_SHARE)),
        drawn * given.seats,
        Lamports(given.cost + given.fee_cost),
        caught,
        witness_penalty(given.cost, caught) if caught else None,
        _tolerable_false_slashes(given, stake) if stake else None,
    )


def detection(p_ppm: int, power_ppm: int, capture_ppm: int) -> Fraction:
    """Return d = p * q * (1 - mu): the chance that a round of cheating is convicted."""
    return Fraction(p_ppm * power_ppm * (PPM - capture_ppm), PPM**3)


def drawn_chance(p_ppm: int, people: int, max_audits: int) -> Fraction:
    """Return q: the chance that a payload is audited, with so many payloads at the same rate."""
    p = Fraction(p_ppm, PPM)
    return min(p, Fraction(max_audits, people))


def refusal_prices(first: int, keep_stake: int) -> tuple[Lamports, ...]:
    """Return what the first, second and third refusal within 500 included rounds cost.

    `first` is the `openings_price` of the first one. Each further one costs twice the one before.
    None takes more than half of what a member holds, at least the stake to keep; the third jails.
    """
    most = keep_stake // 2
    return tuple(Lamports(min(most, first << step)) for step in range(LAST_STEP))


def tiles_seen(forged_ppm: int, drawn_tiles: int) -> Fraction:
    """Return the chance that at least one of the drawn tiles is forged: one is a mismatch."""
    return 1 - (1 - Fraction(forged_ppm, PPM)) ** drawn_tiles


def captured(people: int, bad: int) -> Fraction:
    """Return mu: the chance that so many colluders clear one of their own, the target.

    Three of five seats prevent an accusation, three of seven jurors a conviction. Two more seats
    change nothing where everybody has spoken: five do not tie. Seats and jury
    are drawn from everybody who was eligible at the open of the round, whatever they do now.
    """
    if bad < 1 or people <= max(MAX_SEATS, JURY_SEATS):
        return Fraction(0) if bad < 1 else Fraction(1)
    accused = 1 - capture(people - 1, bad - 1, SECOND_SEATS, FIRST_SEATS)
    convicted = 1 - capture(people - 1, bad - 1, JURY_SEATS, JURY_SEATS - CONVICTING + 1)
    return 1 - accused * convicted


def rounds_to_capture(d: Fraction, confidence_ppm: int = 950_000) -> int:
    """Return the least n with 1 - (1 - d)^n >= confidence; RangeError unless both allow one."""
    if not 0 < d <= 1 or not 0 < confidence_ppm < PPM:
        raise RangeError("detection", "above 0, at most 1", d, "sample some rounds")
    if d == 1:
        return 1
    with localcontext(Context(prec=_DIGITS)):
        stay = Decimal(d.denominator - d.numerator) / d.denominator
        missed = Decimal(PPM - confidence_ppm) / PPM
        quotient = (missed.ln() / stay.ln()).quantize(_KEPT_DIGITS)
        return int(quotient.to_integral_value(rounding=ROUND_CEILING))


def minimum_stake(gain: int, d: Fraction, reward: int, unvested: int) -> Lamports:
    """Return the least S with d * (S + V + R) >= G + B, at least 0; `gain` is G + B.

    Raises RangeError unless `d`, the chance to be found, is above 0.
    """
    if d <= 0:
        raise RangeError("detection", "above 0", d, "no stake deters what is never found")
    return Lamports(max(0, ceil(Fraction(gain) / d) - reward - unvested))


def laziness_caught(lazy_ppm: int, seats: int) -> Fraction:
    """Return h = 1 - lazy^(seats - 1): one co-witness at least has computed its sketch."""
    return 1 - Fraction(lazy_ppm, PPM) ** (seats - 1)


def witness_penalty(cost: int, caught: Fraction) -> Lamports:
    """Return the penalty for laziness: ten costs, or more where h * A > C needs it."""
    return Lamports(max(WITNESS_PENALTY_FACTOR * cost, int(Fraction(cost) / caught) + 1))


def capture(num_people: int, num_bad: int, seats: int, needed: int) -> Fraction:
    """Return the chance that `needed` or more of `seats` random seats are bad (hypergeometric).

    Raises RangeError for no seat, or for more seats or more of the bad than there are people.
    """
    if not (0 <= num_bad <= num_people and 0 < seats <= num_people):
        raise RangeError(
            "committee", f"1..{num_people} seats, as many bad", (num_bad, seats), "draw fewer seats"
        )
    ways = sum(
        comb(num_bad, bad) * comb(num_people - num_bad, seats - bad)
        for bad in range(needed, seats + 1)
    )
    return Fraction(ways, comb(num_people, seats))


def _tolerable_false_slashes(given: Assumptions, stake: int) -> int:
    margin = given.reward - given.cost - given.fee_cost
    return max(0, margin * 10**9 // stake)
