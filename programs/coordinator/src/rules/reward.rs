//! Rewards, and the three buckets in which they vest (protocol §8).
//!
//! Owns the arithmetic of one participant's buckets. The bucket of slot s is window s / w with
//! w = half of the vesting time, rounded up. Window W sits at position W mod 3, and its amount is
//! claimable `vesting_slots` after the window ended. Three windows later that time has passed,
//! so an occupant found by a newer window is vested. Never moves lamports between accounts.
//! Next: `crate::round::settle`, which credits, and the claim instruction, which releases.

/// Number of buckets of a participant.
pub const BUCKETS: usize = 3;

/// The window that a reward earned in `slot` vests with; `None` only on overflow.
#[must_use]
pub fn window_of(slot: u64, vesting_slots: u64) -> Option<u64> {
    slot.checked_div(window_slots(vesting_slots))
}

/// Adds `lamports` to the bucket of `window` and returns what vested by making room for it.
///
/// `None` on overflow; nothing has changed then.
pub fn credit(
    windows: &mut [u64; BUCKETS],
    amounts: &mut [u64; BUCKETS],
    window: u64,
    lamports: u64,
) -> Option<u64> {
    let (held, amount) = cell(windows, amounts, window)?;
    if *held == window {
        *amount = amount.checked_add(lamports)?;
        return Some(0);
    }
    *held = window;
    Some(std::mem::replace(amount, lamports))
}

/// Empties every bucket that is claimable in `slot` and returns the sum; `None` on overflow.
pub fn release(
    windows: &[u64; BUCKETS],
    amounts: &mut [u64; BUCKETS],
    slot: u64,
    vesting_slots: u64,
) -> Option<u64> {
    let mut released = 0_u64;
    for (window, amount) in windows.iter().zip(amounts) {
        if *amount > 0 && claimable_from(*window, vesting_slots)? <= slot {
            released = released.checked_add(std::mem::take(amount))?;
        }
    }
    Some(released)
}

/// Takes back at most `lamports` from the bucket of `window` and returns what was there.
pub fn remove(
    windows: &mut [u64; BUCKETS],
    amounts: &mut [u64; BUCKETS],
    window: u64,
    lamports: u64,
) -> u64 {
    match cell(windows, amounts, window) {
        Some((held, amount)) if *held == window => take_from(amount, lamports),
        _ => 0,
    }
}

/// Takes at most `lamports` from the buckets, oldest window first, and returns what was there.
pub fn take(windows: &[u64; BUCKETS], amounts: &mut [u64; BUCKETS], lamports: u64) -> u64 {
    let mut order = [0, 1, 2];
    order.sort_unstable_by_key(|&position: &usize| windows.get(position));
    let mut taken = 0_u64;
    for position in order {
        if let Some(amount) = amounts.get_mut(position) {
            let part = take_from(amount, lamports.saturating_sub(taken));
            taken = taken.saturating_add(part);
        }
    }
    taken
}

/// Takes at most `lamports` from `balance` and returns what was there.
pub fn take_from(balance: &mut u64, lamports: u64) -> u64 {
    let part = lamports.min(*balance);
    *balance = balance.saturating_sub(part);
    part
}

/// The reward of each of `num_included` payloads when `pool` may not suffice; rounded down.
#[must_use]
pub fn scaled_reward(reward_per_payload: u64, pool: u64, num_included: u64) -> u64 {
    pool.checked_div(num_included)
        .map_or(0, |share| share.min(reward_per_payload))
}

/// Length of a window in slots, at least one.
fn window_slots(vesting_slots: u64) -> u64 {
    vesting_slots.div_ceil(2).max(1)
}

/// First slot in which the amount of `window` is claimable.
fn claimable_from(window: u64, vesting_slots: u64) -> Option<u64> {
    let end = window
        .checked_add(1)?
        .checked_mul(window_slots(vesting_slots))?;
    end.checked_add(vesting_slots)
}

/// The window and amount at the position of `window`.
fn cell<'a>(
    windows: &'a mut [u64; BUCKETS],
    amounts: &'a mut [u64; BUCKETS],
    window: u64,
) -> Option<(&'a mut u64, &'a mut u64)> {
    let position = usize::try_from(window % 3).ok()?;
    Some((windows.get_mut(position)?, amounts.get_mut(position)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reward_stays_locked_until_vesting_slots_after_its_window() {
        let (mut windows, mut amounts) = ([0; 3], [0; 3]);
        let window = window_of(149, 100).unwrap();
        assert_eq!(window, 2);
        assert_eq!(credit(&mut windows, &mut amounts, window, 10), Some(0));
        assert_eq!(credit(&mut windows, &mut amounts, window, 5), Some(0));
        assert_eq!(release(&windows, &mut amounts, 249, 100), Some(0));
        assert_eq!(release(&windows, &mut amounts, 250, 100), Some(15));
        assert_eq!(amounts, [0; 3]);
    }

    #[test]
    fn an_evicted_occupant_has_vested() {
        for vesting in [1, 2, 3, 7, 100, 101] {
            for window in 3..9 {
                let earliest = window * window_slots(vesting);
                assert!(
                    claimable_from(window - 3, vesting).unwrap() <= earliest,
                    "{vesting}"
                );
            }
        }
    }

    #[test]
    fn eviction_returns_the_vested_amount() {
        let (mut windows, mut amounts) = ([3, 1, 2], [7, 8, 9]);
        assert_eq!(credit(&mut windows, &mut amounts, 6, 5), Some(7));
        assert_eq!((windows, amounts), ([6, 1, 2], [5, 8, 9]));
    }

    #[test]
    fn overflow_changes_nothing() {
        let (mut windows, mut amounts) = ([3, 1, 2], [u64::MAX, 8, 9]);
        assert_eq!(credit(&mut windows, &mut amounts, 3, 1), None);
        assert_eq!(amounts, [u64::MAX, 8, 9]);
    }

    #[test]
    fn remove_touches_only_its_own_window_and_clamps() {
        let (mut windows, mut amounts) = ([3, 1, 2], [7, 8, 9]);
        assert_eq!(remove(&mut windows, &mut amounts, 3, 5), 5);
        assert_eq!(remove(&mut windows, &mut amounts, 3, 5), 2);
        assert_eq!(remove(&mut windows, &mut amounts, 4, 5), 0);
        assert_eq!(amounts, [0, 8, 9]);
    }

    #[test]
    fn take_starts_with_the_oldest_window() {
        let (windows, mut amounts) = ([3, 1, 2], [7, 8, 9]);
        assert_eq!(take(&windows, &mut amounts, 12), 12);
        assert_eq!(amounts, [7, 0, 5]);
        assert_eq!(take(&windows, &mut amounts, 100), 12);
    }

    #[test]
    fn a_small_pool_scales_the_reward_down() {
        assert_eq!(scaled_reward(100, 1_000, 4), 100);
        assert_eq!(scaled_reward(100, 399, 4), 99);
        assert_eq!(scaled_reward(100, 1_000, 0), 0);
    }
}
