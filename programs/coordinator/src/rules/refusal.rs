//! The cost of not showing openings (protocol §8, P5), and how often it was done.
//!
//! Owns the price, which depends on how likely the audit was, and the step, which doubles it. Never
//! takes lamports. Next: `slashing`, which limits the amount to half of the stake.

use super::NONE;
use crate::constants::PPM;

/// The price is at least so many rewards.
pub const LEAST_REWARDS: u64 = 12;
/// The step falls back to the first one after more than so many of the target's included rounds.
pub const REMEMBERED_ROUNDS: u64 = 500;
/// The step that jails, and the last one.
pub const LAST_STEP: u8 = 3;

/// Lamports that the first refusal of a sampled target costs, rounded up: 12 rewards, or 1.8 / q
/// where that is more.
///
/// q = p * min(1, limit / sum): `p_ppm` is the rate of the target's class, `sum_ppm` the sum of the
/// rates of all included payloads, `limit` the most audits of the round. So refusing costs more
/// than what unseen rounds earn. Rates and limit below one count as one.
#[must_use]
pub fn openings_price(reward: u64, p_ppm: u32, sum_ppm: u64, limit: u16) -> u64 {
    let limit = u128::from(limit.max(1));
    let scaled = limit
        .saturating_mul(u128::from(PPM))
        .max(u128::from(sum_ppm));
    let drawn = u128::from(p_ppm.max(1))
        .saturating_mul(limit)
        .saturating_mul(5);
    let earned = u128::from(reward).saturating_mul(9).saturating_mul(scaled);
    let least = u128::from(reward).saturating_mul(u128::from(LEAST_REWARDS));
    u64::try_from(earned.div_ceil(drawn.max(1)).max(least)).unwrap_or(u64::MAX)
}

/// Refusals of one participant that are still remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusals {
    /// How many: 0 to 3.
    pub step: u8,
    /// Included rounds of the participant, in all, when the last one was decided.
    pub mark: u64,
    /// Round under way at that moment, or `NONE`.
    pub decided_round: u64,
}

impl Refusals {
    /// Adds a refusal of `round`, decided while round `now` is under way, by a participant with
    /// `included_total` included rounds. Returns whether it is a further step.
    ///
    /// A round opened before the last refusal was decided costs the same step: so one outage is one
    /// step.
    pub fn add(&mut self, round: u64, now: u64, included_total: u64) -> bool {
        let is_known = self.step > 0 && self.decided_round != NONE;
        if is_known && round <= self.decided_round {
            return false;
        }
        let since = included_total.saturating_sub(self.mark);
        let before = if since > REMEMBERED_ROUNDS {
            0
        } else {
            self.step
        };
        self.step = before.saturating_add(1).min(LAST_STEP);
        self.mark = included_total;
        self.decided_round = now;
        true
    }

    /// How often the price is doubled at this step.
    #[must_use]
    pub fn doublings(&self) -> u8 {
        self.step.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rare_audit_makes_a_refusal_dearer() {
        assert_eq!(openings_price(1_000, 500_000, 2_000_000, 4), 12_000);
        assert_eq!(openings_price(1_000, 100_000, 2_000_000, 4), 18_000);
        // Eight expected and four drawn: q is half of p.
        assert_eq!(openings_price(1_000, 100_000, 8_000_000, 4), 36_000);
        assert_eq!(openings_price(1, 100_001, 0, 1), 18);
        assert_eq!(openings_price(1, 99_999, 0, 1), 19);
    }

    #[test]
    fn no_rate_is_zero_and_no_price_overflows() {
        assert_eq!(openings_price(1_000, 0, 0, 0), 1_800_000_000);
        assert_eq!(openings_price(u64::MAX, 0, u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn one_outage_is_one_step_and_the_last_step_stays() {
        let mut refusals = Refusals {
            step: 0,
            mark: 0,
            decided_round: NONE,
        };
        let added = [(5, 8, 4), (8, 9, 6), (9, 12, 7), (20, 21, 15), (30, 31, 25)]
            .map(|(round, now, included)| (refusals.add(round, now, included), refusals.step));
        let steps = [(true, 1), (false, 1), (true, 2), (true, 3), (true, 3)];
        assert_eq!(added, steps);
        assert_eq!((refusals.mark, refusals.decided_round), (25, 31));
    }

    #[test]
    fn five_hundred_included_rounds_forget() {
        let mut refusals = Refusals {
            step: 2,
            mark: 100,
            decided_round: 7,
        };
        let mut later = refusals;
        assert!(refusals.add(8, 9, 600) && refusals.step == 3);
        assert!(later.add(8, 9, 601) && later.step == 1);
    }
}
