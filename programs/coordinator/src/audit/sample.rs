//! The sample of a round, drawn once when its seed freezes.
//!
//! Owns who is audited, what a refusal of openings will cost, and the payloads that nobody can
//! judge: those are not paid. Never opens an audit. Next: `open`.

use anchor_lang::prelude::*;

use super::breaker;
use crate::constants::ROUND_DOUBLED;
use crate::math::add;
use crate::rules::bitmap::{contains, count, with_bits};
use crate::rules::eligibility::can_be_audited;
use crate::rules::refusal::openings_price;
use crate::rules::sampling::{limit, sampled_targets, Payloads, Rates};
use crate::state::{Roster, Round, Run};

/// Draws the targets of the audits: later corrections change no sample. Returns the rewards of
/// unseated payloads that went back to the pool.
#[inline(never)]
pub fn draw_sample(run: &mut Run, roster: &mut Roster, round: &mut Round) -> Result<u64> {
    let (trainers, eligible) = (round.trainers, round.eligible);
    let (cap, load) = (run.params.audit_cap, run.params.seat_load);
    let rates = Rates {
        base_ppm: run.params.p_base_ppm,
        new_ppm: run.params.p_new_ppm,
        limit: limit(cap, load, trainers, round.is_new, eligible),
        is_doubled: round.has_flag(ROUND_DOUBLED),
    };
    let seated = seated(round);
    let payloads = Payloads {
        included: round.included,
        is_new: round.is_new & seated,
        on_probation: round.probation,
    };
    round.sampled = sampled_targets(&round.seed, &payloads, &rates);
    price_refusals(round, &payloads, &rates);
    breaker::note_sampled(run, round.sampled & seated);
    let (mut undone, left_over) = (0, round.probation & !round.sampled);
    for (one, entry) in with_bits(&mut roster.entries) {
        if left_over & one != 0 {
            entry.redraw_probation(round.round);
        }
        if round.sampled & !seated & !round.withheld & one != 0 {
            let paid = round.reward_paid;
            undone = add(undone, run.undo_reward(entry, round.reward_window, paid)?)?;
            round.unpaid |= one;
            entry.invariant()?;
        }
    }
    Ok(undone)
}

/// The participants that have three witnesses to judge them, themselves excepted.
#[must_use]
pub fn seated(round: &Round) -> u64 {
    with_bits(0..64_u8)
        .filter(|(one, _)| can_be_audited(round.eligible, *one))
        .fold(0, |all, (one, _)| all | one)
}

/// Fixes what a refusal costs in each class, by the rates that the round would have by itself.
fn price_refusals(round: &mut Round, payloads: &Payloads, rates: &Rates) {
    let num_new = count(payloads.included & payloads.is_new);
    let num_base = count(payloads.included).saturating_sub(num_new);
    let sum = u64::from(rates.new_ppm)
        .saturating_mul(num_new)
        .saturating_add(u64::from(rates.base_ppm).saturating_mul(num_base));
    let price = |p_ppm| openings_price(round.reward_price, p_ppm, sum, rates.limit);
    let (base, new) = (price(rates.base_ppm), price(rates.new_ppm));
    round.price_base = base;
    round.price_new = new;
}

impl Round {
    /// The price of a refusal of openings by `target` in this round.
    #[must_use]
    pub fn openings_price(&self, target: u16) -> u64 {
        let is_new = contains(self.is_new & seated(self), usize::from(target));
        if is_new {
            self.price_new
        } else {
            self.price_base
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    /// Four trainers with included payloads of 1000 each, all sampled for sure.
    fn drawn(eligible: u64) -> (Box<Run>, Box<Roster>, Box<Round>, u64) {
        let mut run = Box::new(Run::zeroed());
        let (mut roster, mut round) = (Box::new(Roster::zeroed()), Box::new(Round::zeroed()));
        run.params.p_base_ppm = 1_000_000;
        run.params.p_new_ppm = 1_000_000;
        run.params.audit_cap = 4;
        run.params.seat_load = 1;
        run.params.vesting_slots = 100;
        run.reward_pool = 10_000;
        (round.trainers, round.included, round.eligible) = (0b1111, 0b1111, eligible);
        round.reward_price = 1_000;
        round.reward_paid = 1_000;
        for entry in roster.entries.iter_mut().take(4) {
            let key = Pubkey::new_from_array([7; 32]);
            entry.join(key, key, crate::constants::ROLES, 0);
            run.credit_reward(entry, 0, 1_000).unwrap();
        }
        let undone = draw_sample(&mut run, &mut roster, &mut round).unwrap();
        (run, roster, round, undone)
    }

    #[test]
    fn a_sampled_payload_that_nobody_can_judge_is_not_paid() {
        let (run, roster, round, undone) = drawn(0b111);
        assert_eq!((count(round.sampled), seated(&round)), (1, !0b111));
        assert_eq!(round.unpaid, round.sampled & 0b111);
        assert_eq!(
            (run.reward_pool, undone),
            (6_000 + undone, count(round.unpaid) * 1_000)
        );
        let unvested = roster.entries.iter().map(|entry| entry.unvested().unwrap());
        assert_eq!(unvested.sum::<u64>(), 4_000 - undone);
    }

    #[test]
    fn with_enough_witnesses_everybody_sampled_is_judged_and_paid() {
        let (run, _, round, undone) = drawn(0xFFFF);
        assert_eq!((count(round.sampled), round.unpaid, undone), (4, 0, 0));
        assert_eq!(run.sampled, 0b1111);
        assert_eq!((round.price_base, round.price_new), (12_000, 12_000));
    }
}
