"""What must hold between the chain parameters (protocol section 12, checked at creation).

Owns: the contradictions that `create_run` refuses, in the program's order.
Never: checks the width of a single field; `params.py` and the account layout do.
Next: `params.py` for the parameters themselves.
"""

from collections.abc import Iterator
from typing import Final

from troth_coordinator.rules.errors import ContradictionError
from troth_coordinator.rules.view import ParamsView

MIN_STAKE_REWARDS: Final = 60
"""The stake is worth at least this many rewards."""
BOND_WITNESS_FEES: Final = 14
BOND_REWARDS: Final = 5
SLOT_HASHES_LISTED: Final = 512
"""Slots that the chain remembers the hash of; a seed can be frozen no later."""
PPM: Final = 1_000_000

Contradiction = tuple[bool, str, str, object, str]
"""(holds, subject, expected, found, next step)."""


def longest_settlement_slots(params: ParamsView) -> int:
    """Return the slots from a round's close until nothing can touch its stakes and rewards.

    A seed takes its delay and 512 slots, twice (retarget). An audit then has openings, verdicts
    and one extension; a case may come until `case_slots`. The later of both can still go to the
    second committee, under a seed of its own, then to appeal and breaker.
    """
    seed = 2 * (params.seed_delay_slots + SLOT_HASHES_LISTED)
    verdicts = 2 * (params.verdict_commit_slots + params.verdict_reveal_slots)
    accused = max(seed + params.openings_slots + verdicts, params.case_slots)
    committee = params.committee_commit_slots + params.committee_reveal_slots
    return accused + seed + committee + params.appeal_slots + params.breaker_slots


def check_params(params: ParamsView) -> None:
    """Raise ContradictionError for the first pair of parameters that cannot both hold."""
    for checks in (_sizes(params), _money(params), _windows(params), _audits(params)):
        for holds, subject, expected, found, next_step in checks:
            if not holds:
                raise ContradictionError(subject, expected, found, next_step)


def _sizes(p: ParamsView) -> Iterator[Contradiction]:
    yield (
        p.min_members <= p.capacity,
        "chain.min_members",
        f"at most capacity = {p.capacity}",
        p.min_members,
        "lower min_members or raise capacity",
    )
    yield (
        p.ring > p.keep_rounds,
        "chain.ring",
        f"more than keep_rounds = {p.keep_rounds}",
        p.ring,
        "raise ring: a round must stay readable until its seed is settled",
    )
    yield (
        p.max_witness_only <= p.capacity,
        "chain.max_witness_only",
        f"at most capacity = {p.capacity}",
        p.max_witness_only,
        "lower max_witness_only",
    )
    yield (
        p.join_until_round <= p.max_rounds,
        "chain.join_until_round",
        f"at most max_rounds = {p.max_rounds}",
        p.join_until_round,
        "lower join_until_round: nobody can join a finished run",
    )


def _money(p: ParamsView) -> Iterator[Contradiction]:
    least_stake = MIN_STAKE_REWARDS * p.reward_per_payload
    yield (
        p.stake_lamports >= max(1, least_stake),
        "chain.stake_lamports",
        f"at least {MIN_STAKE_REWARDS} rewards = {least_stake}, and not 0",
        p.stake_lamports,
        "raise stake_lamports or lower reward_per_payload",
    )
    yield (
        p.absence_fee <= p.stake_lamports,
        "chain.absence_fee",
        f"at most stake_lamports = {p.stake_lamports}",
        p.absence_fee,
        "lower absence_fee",
    )
    least_bond = max(BOND_WITNESS_FEES * p.witness_fee, BOND_REWARDS * p.reward_per_payload)
    yield (
        p.bond_lamports >= least_bond,
        "chain.bond_lamports",
        f"at least max(14 witness fees, 5 rewards) = {least_bond}",
        p.bond_lamports,
        "raise bond_lamports: it pays the committee first",
    )


def _windows(p: ParamsView) -> Iterator[Contradiction]:
    longest = longest_settlement_slots(p)
    for name, found in (("vesting_slots", p.vesting_slots), ("unbond_slots", p.unbond_slots)):
        yield (
            found > longest,
            f"chain.{name}",
            f"more than the longest path of audit, case and appeal = {longest} slots",
            found,
            f"raise {name} or shorten the audit windows",
        )


def _audits(p: ParamsView) -> Iterator[Contradiction]:
    yield (
        p.p_base_ppm <= p.p_new_ppm,
        "chain.p_new_ppm",
        f"at least p_base_ppm = {p.p_base_ppm}",
        p.p_new_ppm,
        "sample new participants at least as often as old ones",
    )
    least_cap = -(-p.p_base_ppm * p.capacity // PPM)
    yield (
        least_cap <= p.audit_cap <= p.capacity,
        "chain.audit_cap",
        f"{least_cap} (p_base of capacity, rounded up) to capacity = {p.capacity}",
        p.audit_cap,
        "change audit_cap or p_base_ppm",
    )
