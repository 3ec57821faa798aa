"""Relations between the chain parameters (protocol section 12, checked at creation).

Owns: the contradictions that `create_run` refuses, in the program's order and under the program's
error names.
Never: checks the width of a single field; `params.py` and the account layout do.
Next: `params_update.py` for what may change later, `params.py` for the parameters themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from troth_coordinator.rules.errors import ContradictionError
from troth_coordinator.rules.params_view import ParamsView
from troth_coordinator.rules.seeds import SLOT_HASHES_LISTED, jury_grid, round_grid

MIN_KEEP_ROUNDS: Final = 2
MIN_STAKE_ABSENCES: Final = 10
"""The stake to stay is worth at least this many absence fees."""
MIN_STAKE_REWARDS: Final = 60
"""The stake to stay is worth at least this many rewards."""
MIN_CHANCE_REWARDS_PPM: Final = 3_600_000
"""p_base in ppm times the stake to stay is at least this many rewards: then half of that stake pays
for the first refusal of openings, 1.8 rewards by the chance."""
BOND_WITNESS_FEES: Final = 14
BOND_REWARDS: Final = 5
MIN_SKETCH_FACTOR: Final = 25
"""Sketches differ beyond a fifth of the larger norm."""
MAX_SKETCH_FACTOR: Final = 2_500
"""Sketches differ beyond a fiftieth of the larger norm."""
MAX_SEAT_LOAD: Final = 15
"""Seats of a witness in one round: it cannot recompute more in that time."""
PPM: Final = 1_000_000
MAX_FEE_REWARDS: Final = 10
"""An absence fee and the cost of a recomputation are at most so many rewards."""
MAX_WITNESS_FEE_REWARDS: Final = 2


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that must hold; `name` is the program's error where it does not."""

    name: str
    holds: bool
    field: str
    expected: str
    found: object
    next_step: str


def longest_settlement_slots(params: ParamsView) -> int:
    """Return the slots from a round's open until nothing can touch its stakes and rewards.

    A seed takes its delay, the wait for its grid and 512 slots, twice (`retarget_seed`). An audit
    then has openings, verdicts and two extensions; a case may come until `case_slots`. The later of
    both can still go to a jury, under a seed of its own, then to appeal and breaker.
    """
    round_ = params.commit_slots + params.attest_slots + params.close_grace_slots
    wait = params.seed_delay_slots - 1 + SLOT_HASHES_LISTED
    seed, jury_seed = (2 * (wait + grid) for grid in (round_grid(params), jury_grid(params)))
    verdicts = 3 * (params.verdict_commit_slots + params.verdict_reveal_slots)
    accused = max(seed + params.openings_slots + verdicts, params.case_slots)
    jury = params.jury_commit_slots + params.jury_reveal_slots
    return round_ + accused + jury_seed + jury + params.appeal_slots + params.breaker_slots


def jury_duty_slots(params: ParamsView) -> int:
    """Return the slots from a round's open until no jury judges it any more."""
    return longest_settlement_slots(params) - params.appeal_slots - params.breaker_slots


def least_keep_stake(min_stake: int, reward: int, absence_fee: int) -> int:
    """Return the least lamports that `keep_stake_lamports` may be, and that it is by default."""
    half = -(-min_stake // 2)
    return max(1, half, MIN_STAKE_REWARDS * reward, MIN_STAKE_ABSENCES * absence_fee)


def check_params(params: ParamsView) -> None:
    """Raise ContradictionError for the first pair of parameters that cannot both hold."""
    for rules in (_sizes(params), _windows(params), _money(params), _audits(params)):
        require(rules)


def require(rules: Iterator[Rule]) -> None:
    """Raise ContradictionError for the first rule that does not hold."""
    for rule in rules:
        if not rule.holds:
            raise ContradictionError(
                f"chain.{rule.field}", rule.expected, rule.found, rule.next_step, rule.name
            )


def _sizes(p: ParamsView) -> Iterator[Rule]:
    yield Rule(
        "KeepRoundsTooFew",
        p.keep_rounds >= MIN_KEEP_ROUNDS,
        "keep_rounds",
        f"at least {MIN_KEEP_ROUNDS}",
        p.keep_rounds,
        "raise keep_rounds: a round cannot wait for the seed that the close opening it names",
    )
    yield Rule(
        "RingOutOfRange",
        p.ring >= p.keep_rounds + 2,
        "ring",
        f"at least keep_rounds + 2 = {p.keep_rounds + 2}",
        p.ring,
        "raise ring: a round must stay readable until its seed is settled",
    )
    yield Rule(
        "MinMembersOutOfRange",
        p.min_members <= p.capacity,
        "min_members",
        f"at most capacity = {p.capacity}",
        p.min_members,
        "lower min_members or raise capacity",
    )
    yield Rule(
        "WitnessOnlyOutOfRange",
        p.max_witness_only <= p.capacity,
        "max_witness_only",
        f"at most capacity = {p.capacity}",
        p.max_witness_only,
        "lower max_witness_only",
    )


def _windows(p: ParamsView) -> Iterator[Rule]:
    yield Rule(
        "SeedDelayTooLong",
        p.seed_delay_slots < SLOT_HASHES_LISTED,
        "seed_delay_slots",
        f"less than the {SLOT_HASHES_LISTED} slots that the chain lists",
        p.seed_delay_slots,
        "lower seed_delay_slots",
    )
    yield Rule(
        "PauseTooLong",
        2 * p.max_pause_slots <= p.unbond_slots,
        "max_pause_slots",
        f"at most half of unbond_slots = {p.unbond_slots}",
        p.max_pause_slots,
        "lower max_pause_slots: the authority may not hold stakes back for ever",
    )
    longest = longest_settlement_slots(p)
    for name, field in (("VestingTooShort", "vesting_slots"), ("UnbondTooShort", "unbond_slots")):
        found = getattr(p, field)
        yield Rule(
            name,
            found > longest,
            field,
            f"more than the longest path of audit, case and appeal = {longest} slots",
            found,
            f"raise {field} or shorten the other windows",
        )


def _money(p: ParamsView) -> Iterator[Rule]:
    least = least_keep_stake(p.min_stake_lamports, p.reward_per_payload, 0)
    yield Rule(
        "KeepStakeOutOfRange",
        least <= p.keep_stake_lamports <= p.min_stake_lamports,
        "keep_stake_lamports",
        f"at least {MIN_STAKE_REWARDS} rewards and half of min_stake_lamports = {least}, and at "
        f"most min_stake_lamports = {p.min_stake_lamports}",
        p.keep_stake_lamports,
        "raise min_stake_lamports or lower reward_per_payload",
    )
    reward = p.reward_per_payload
    most_fee = MAX_FEE_REWARDS * reward
    yield Rule(
        "AbsenceFeeTooLarge",
        p.absence_fee <= min(p.keep_stake_lamports // MIN_STAKE_ABSENCES, most_fee),
        "absence_fee",
        f"at most a tenth of keep_stake_lamports = {p.keep_stake_lamports // MIN_STAKE_ABSENCES} "
        f"and {MAX_FEE_REWARDS} rewards = {most_fee}",
        p.absence_fee,
        "lower absence_fee",
    )
    limits = {"recompute_cost": MAX_FEE_REWARDS, "witness_fee": MAX_WITNESS_FEE_REWARDS}
    for field, factor in limits.items():
        yield Rule(
            "FeeTooLarge",
            getattr(p, field) <= factor * reward,
            field,
            f"at most {factor} rewards = {factor * reward}",
            getattr(p, field),
            f"lower {field} or raise reward_per_payload",
        )
    least_bond = max(BOND_WITNESS_FEES * p.witness_fee, BOND_REWARDS * p.reward_per_payload)
    yield Rule(
        "BondTooSmall",
        p.bond_lamports >= least_bond,
        "bond_lamports",
        f"at least max(14 witness fees, 5 rewards) = {least_bond}",
        p.bond_lamports,
        "raise bond_lamports: it pays the jurors first",
    )
    yield Rule(
        "BondTooLarge",
        p.bond_lamports <= p.min_stake_lamports,
        "bond_lamports",
        f"at most min_stake_lamports = {p.min_stake_lamports}",
        p.bond_lamports,
        "lower bond_lamports: nobody could challenge a cheat",
    )


def _audits(p: ParamsView) -> Iterator[Rule]:
    yield Rule(
        "ChanceOutOfRange",
        p.p_base_ppm <= p.p_new_ppm,
        "p_new_ppm",
        f"at least p_base_ppm = {p.p_base_ppm}",
        p.p_new_ppm,
        "sample new participants at least as often as old ones",
    )
    least_chance = -(
        -MIN_CHANCE_REWARDS_PPM * p.reward_per_payload // max(1, p.keep_stake_lamports)
    )
    yield Rule(
        "ChanceTooSmall",
        p.p_base_ppm == 0 or p.p_base_ppm >= least_chance,
        "p_base_ppm",
        f"at least {least_chance}, so that half of keep_stake_lamports pays for a refusal of "
        "openings, or 0",
        p.p_base_ppm,
        "raise p_base_ppm or min_stake_lamports",
    )
    least_cap = -(-p.p_base_ppm * p.capacity // PPM)
    yield Rule(
        "AuditCapOutOfRange",
        least_cap <= p.audit_cap <= p.capacity,
        "audit_cap",
        f"{least_cap} (p_base of capacity, rounded up) to capacity = {p.capacity}",
        p.audit_cap,
        "change audit_cap or p_base_ppm",
    )
    yield Rule(
        "SketchFactorOutOfRange",
        MIN_SKETCH_FACTOR <= p.sketch_factor <= MAX_SKETCH_FACTOR,
        "sketch_factor",
        f"{MIN_SKETCH_FACTOR} (a fifth of the larger norm) to {MAX_SKETCH_FACTOR} (a fiftieth)",
        p.sketch_factor,
        "leave it at 100 unless calibration finds another",
    )
    yield Rule(
        "SeatLoadOutOfRange",
        1 <= p.seat_load <= MAX_SEAT_LOAD,
        "seat_load",
        f"1 to {MAX_SEAT_LOAD} seats of a witness in a round",
        p.seat_load,
        "leave it at 1 unless recomputing a payload takes far less than a round",
    )
