"""Golden vectors for `create_run` and `update_params`: what holds, and each single contradiction.

Owns: parameters like those of the two presets, typed in once more, that must be valid; one case
per refusal; updates of them. Never: imports the packages.
Next: vectors.py.
"""

from collections.abc import Iterator

from vector_stream import Stream

LOCALNET = {
    "min_stake_lamports": 100_000_000,
    "keep_stake_lamports": 60_000_000,
    "reward_per_payload": 1_000_000,
    "absence_fee": 1_000_000,
    "witness_fee": 200_000,
    "recompute_cost": 1_000_000,
    "bond_lamports": 5_000_000,
    "sequences_per_payload": 8,
    "max_rounds": 1_000,
    "join_until_round": 1_000,
    "warmup_slots": 200,
    "commit_slots": 120,
    "attest_slots": 80,
    "close_grace_slots": 40,
    "halt_slots": 50,
    "seed_delay_slots": 2,
    "vesting_slots": 4_500,
    "unbond_slots": 5_400,
    "max_pause_slots": 900,
    "param_delay_slots": 50,
    "case_slots": 600,
    "openings_slots": 150,
    "verdict_commit_slots": 150,
    "verdict_reveal_slots": 150,
    "jury_commit_slots": 150,
    "jury_reveal_slots": 150,
    "appeal_slots": 150,
    "breaker_slots": 150,
    "rounds_per_epoch": 50,
    "residual_rounds": 50,
    "checkpoint_every": 20,
    "seat_after_rounds": 0,
    "p_base_ppm": 100_000,
    "p_new_ppm": 500_000,
    "sketch_factor": 100,
    "capacity": 16,
    "ring": 16,
    "min_members": 2,
    "keep_rounds": 4,
    "audit_cap": 4,
    "max_witness_only": 4,
    "admission": 0,
    "seat_load": 3,
}
HOUR = 9_000
PUBLIC = LOCALNET | {
    "min_stake_lamports": 1_000_000_000,
    "keep_stake_lamports": 500_000_000,
    "warmup_slots": 1_500,
    "commit_slots": 150,
    "attest_slots": 125,
    "close_grace_slots": 150,
    "halt_slots": 750,
    "seed_delay_slots": 8,
    "vesting_slots": 96 * HOUR,
    "unbond_slots": 168 * HOUR,
    "max_pause_slots": 72 * HOUR,
    "param_delay_slots": 24 * HOUR,
    "case_slots": 18_000,
    "openings_slots": 750,
    "verdict_commit_slots": 1_500,
    "verdict_reveal_slots": 1_500,
    "jury_commit_slots": 1_500,
    "jury_reveal_slots": 1_500,
    "appeal_slots": 24 * HOUR,
    "breaker_slots": 24 * HOUR,
    "rounds_per_epoch": 500,
    "checkpoint_every": 100,
    "seat_after_rounds": 20,
    "capacity": 64,
    "ring": 64,
    "min_members": 4,
    "audit_cap": 15,
    "max_witness_only": 16,
    "admission": 1,
    "seat_load": 1,
}
# round 240, seeds 2 * 1028, openings 150, verdicts 900, jury 300, appeal and breaker 300
LONGEST_LOCALNET = 3_946
NO_MONEY = {
    "reward_per_payload": 0,
    "absence_fee": 0,
    "witness_fee": 0,
    "recompute_cost": 0,
    "bond_lamports": 0,
}
LARGE_STAKE = {"min_stake_lamports": 200_000_000, "keep_stake_lamports": 200_000_000}
CHANGES: tuple[tuple[dict[str, int], str], ...] = (
    ({"ring": 6}, "ok"),
    ({"ring": 5}, "RingOutOfRange"),
    ({"min_members": 16}, "ok"),
    ({"min_members": 17}, "MinMembersOutOfRange"),
    ({"max_witness_only": 16}, "ok"),
    ({"max_witness_only": 17}, "WitnessOnlyOutOfRange"),
    ({"keep_rounds": 2}, "ok"),
    ({"keep_rounds": 1}, "KeepRoundsTooFew"),
    ({"seed_delay_slots": 512, "vesting_slots": 9_000, "unbond_slots": 9_000}, "SeedDelayTooLong"),
    ({"max_pause_slots": 0}, "ok"),
    ({"max_pause_slots": 2_700}, "ok"),
    ({"max_pause_slots": 2_701}, "PauseTooLong"),
    ({"vesting_slots": LONGEST_LOCALNET + 1}, "ok"),
    ({"vesting_slots": LONGEST_LOCALNET}, "VestingTooShort"),
    ({"unbond_slots": LONGEST_LOCALNET + 1, "max_pause_slots": 1}, "ok"),
    ({"unbond_slots": LONGEST_LOCALNET, "max_pause_slots": 1}, "UnbondTooShort"),
    ({"case_slots": 2_631}, "ok"),
    ({"case_slots": 2_632}, "VestingTooShort"),
    ({"commit_slots": 673}, "ok"),
    ({"commit_slots": 674}, "VestingTooShort"),
    ({"min_stake_lamports": 60_000_000}, "ok"),
    ({"min_stake_lamports": 59_999_999}, "KeepStakeOutOfRange"),
    ({"keep_stake_lamports": 59_999_999}, "KeepStakeOutOfRange"),
    ({"keep_stake_lamports": 100_000_000}, "ok"),
    ({"keep_stake_lamports": 100_000_001}, "KeepStakeOutOfRange"),
    ({"min_stake_lamports": 120_000_000}, "ok"),
    ({"min_stake_lamports": 120_000_001}, "KeepStakeOutOfRange"),
    (NO_MONEY | {"min_stake_lamports": 1, "keep_stake_lamports": 1}, "ok"),
    (NO_MONEY | {"min_stake_lamports": 1, "keep_stake_lamports": 0}, "KeepStakeOutOfRange"),
    (NO_MONEY | {"min_stake_lamports": 0, "keep_stake_lamports": 0}, "KeepStakeOutOfRange"),
    ({"absence_fee": 6_000_000}, "ok"),
    ({"absence_fee": 6_000_001}, "AbsenceFeeTooLarge"),
    (LARGE_STAKE | {"absence_fee": 10_000_000}, "ok"),
    (LARGE_STAKE | {"absence_fee": 10_000_001}, "AbsenceFeeTooLarge"),
    ({"recompute_cost": 10_000_000}, "ok"),
    ({"recompute_cost": 10_000_001}, "FeeTooLarge"),
    ({"witness_fee": 2_000_000, "bond_lamports": 28_000_000}, "ok"),
    ({"witness_fee": 2_000_001, "bond_lamports": 29_000_000}, "FeeTooLarge"),
    ({"bond_lamports": 100_000_000}, "ok"),
    ({"bond_lamports": 100_000_001}, "BondTooLarge"),
    ({"sketch_factor": 25}, "ok"),
    ({"sketch_factor": 24}, "SketchFactorOutOfRange"),
    ({"sketch_factor": 2_500}, "ok"),
    ({"sketch_factor": 2_501}, "SketchFactorOutOfRange"),
    ({"seat_load": 15}, "ok"),
    ({"seat_load": 16}, "SeatLoadOutOfRange"),
    ({"seat_load": 0}, "SeatLoadOutOfRange"),
    ({"bond_lamports": 4_999_999}, "BondTooSmall"),
    ({"witness_fee": 357_142}, "ok"),
    ({"witness_fee": 357_143}, "BondTooSmall"),
    ({"p_new_ppm": 100_000}, "ok"),
    ({"p_new_ppm": 99_999}, "ChanceOutOfRange"),
    ({"p_base_ppm": 60_000}, "ok"),
    ({"p_base_ppm": 59_999}, "ChanceTooSmall"),
    (NO_MONEY | {"p_base_ppm": 1}, "ok"),
    ({"p_base_ppm": 0}, "ok"),
    ({"audit_cap": 2}, "ok"),
    ({"audit_cap": 1}, "AuditCapOutOfRange"),
    ({"audit_cap": 16}, "ok"),
    ({"audit_cap": 17}, "AuditCapOutOfRange"),
)


def params(s: Stream) -> Iterator[tuple[dict[str, object], object]]:
    """Both sets of defaults, then one change at a time on either side of each bound."""
    del s
    yield dict(LOCALNET), "ok"
    yield dict(PUBLIC), "ok"
    for change, out in CHANGES:
        yield {**LOCALNET, **change}, out


# Made, in force, wanted: each as changes of LOCALNET, with the outcome of the update.
RICH = LARGE_STAKE | {"bond_lamports": 10_000_000}
STEADY = {"vesting_slots": 9_000, "unbond_slots": 9_000}
Update = tuple[dict[str, int], dict[str, int], dict[str, int], str]
UPDATES: tuple[Update, ...] = (
    ({}, {}, {}, "ok"),
    ({}, {}, {"reward_per_payload": 500_000}, "ok"),
    ({}, {}, {"reward_per_payload": 499_999}, "RewardOutOfRange"),
    (RICH, RICH, {"reward_per_payload": 2_000_000}, "ok"),
    (RICH, RICH, {"reward_per_payload": 2_000_001}, "RewardOutOfRange"),
    ({}, {"reward_per_payload": 600_000}, {"reward_per_payload": 500_000}, "ok"),
    ({}, {"reward_per_payload": 600_000}, {"reward_per_payload": 400_000}, "RewardOutOfRange"),
    ({}, {}, {"reward_per_payload": 1_000_001}, "KeepStakeOutOfRange"),
    ({"min_members": 4}, {"min_members": 4}, {"min_members": 3}, "ok"),
    ({"min_members": 4}, {"min_members": 3}, {"min_members": 4}, "MinMembersGrow"),
    (STEADY, STEADY, {"commit_slots": 240}, "ok"),
    (STEADY, STEADY, {"commit_slots": 241}, "WindowTooLong"),
    (STEADY, STEADY | {"commit_slots": 200}, {"commit_slots": 199}, "WindowShrinks"),
    (STEADY, STEADY | {"commit_slots": 200}, {"commit_slots": 241}, "WindowTooLong"),
    ({}, {}, {"verdict_commit_slots": 300, "verdict_reveal_slots": 300}, "VestingTooShort"),
    ({}, {}, {"ring": 17}, "ImmutableParameter"),
    ({}, {}, {"ring": 17, "commit_slots": 1}, "ImmutableParameter"),
    ({}, {}, {"p_base_ppm": 0}, "ImmutableParameter"),
    ({}, {}, {"bond_lamports": 6_000_000}, "ImmutableParameter"),
    ({}, {}, {"witness_fee": 100_000}, "ImmutableParameter"),
    ({}, {}, {"max_pause_slots": 800}, "ImmutableParameter"),
    ({}, {}, {"join_until_round": 999}, "ImmutableParameter"),
)


def params_update(s: Stream) -> Iterator[tuple[dict[str, object], object]]:
    """Put updates next to the parameters in force and those of the creation."""
    del s
    for created, old, new, out in UPDATES:
        made, now = {**LOCALNET, **created}, {**LOCALNET, **old}
        yield {"created": made, "old": now, "new": {**now, **new}}, out
