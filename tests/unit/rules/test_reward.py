"""Rewards vest and fees are taken; no lamport appears or disappears."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth_coordinator.rules import reward
from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.reward import Buckets

AMOUNTS = st.integers(0, 10**12)
VESTING = st.integers(1, 5_000)


@st.composite
def buckets(draw):
    first = draw(st.integers(0, 50))
    by_position = {w % 3: w for w in range(first, first + 3)}
    windows = (by_position[0], by_position[1], by_position[2])
    return Buckets(windows, (draw(AMOUNTS), draw(AMOUNTS), draw(AMOUNTS)))


@given(VESTING, st.lists(st.tuples(st.integers(0, 6_000), AMOUNTS), max_size=30))
def test_rewards_are_conserved_and_never_vest_early(vesting, earnings):
    held = Buckets((0, 0, 0), (0, 0, 0))
    slot = paid = earned = 0
    due = []
    for wait, lamports in earnings:
        slot += wait
        window = reward.window_of(slot, vesting)
        held, evicted = reward.credit(held, window, lamports)
        held, released = reward.release(held, slot, vesting)
        earned += lamports
        paid += evicted + released
        due.append((reward.claimable_from(window, vesting), lamports))
        assert paid + held.unvested == earned
        assert paid <= sum(amount for first, amount in due if first <= slot)
    held, rest = reward.release(held, slot + 3 * vesting + 3, vesting)
    assert held.unvested == 0
    assert paid + rest == earned


@given(st.integers(0, 10**9), VESTING)
def test_a_reward_waits_at_least_vesting_slots(slot, vesting):
    first = reward.claimable_from(reward.window_of(slot, vesting), vesting)
    assert slot + vesting < first <= slot + vesting + reward.window_slots(vesting)


@given(buckets(), AMOUNTS, AMOUNTS, AMOUNTS)
def test_a_fee_is_taken_from_claimable_then_unvested_then_stake(held, claimable, stake, fee):
    parts = reward.take_fee(claimable, held, stake, fee)
    assert parts.total == min(fee, claimable + held.unvested + stake)
    assert parts.buckets.unvested == held.unvested - parts.unvested
    if parts.unvested:
        assert parts.claimable == claimable
    if parts.stake:
        assert parts.unvested == held.unvested


@given(buckets(), st.integers(0, 60), AMOUNTS)
def test_taking_back_touches_one_window_only(held, window, lamports):
    after, part = reward.remove(held, window, lamports)
    assert held.unvested - after.unvested == part <= lamports
    changed = [at for at in range(3) if held.amounts[at] != after.amounts[at]]
    assert changed in ([], [window % 3])
    if window not in held.windows:
        assert part == 0


def test_a_bucket_never_exceeds_a_u64():
    with pytest.raises(RangeError, match="bucket"):
        reward.credit(Buckets((3, 1, 2), (2**64 - 1, 0, 0)), 3, 1)


@given(AMOUNTS, AMOUNTS, st.integers(0, 64))
def test_a_round_never_pays_more_than_the_pool(per_payload, pool, num_included):
    each = reward.scaled_reward(per_payload, pool, num_included)
    assert each <= per_payload
    assert each * num_included <= pool
    if num_included and per_payload * num_included <= pool:
        assert each == per_payload
