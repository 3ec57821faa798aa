//! Settles a closed round with each member: reward, service, misses, strike.
//!
//! Owns the loop over the roster; the arithmetic is in `crate::rules` and `crate::state::money`.
//! One event reports everything, with a bitmap per kind of change. Next: `penalties`.

use anchor_lang::prelude::*;

use super::penalties::{make_inactive, strike};
use super::RoundContext;
use crate::constants::*;
use crate::events::{record, RewardsScaled, RoundSettled};
use crate::math::add;
use crate::rules::bitmap::{count, with_bits};
use crate::rules::eligibility::can_be_audited;
use crate::rules::reward::scaled_reward;
use crate::rules::standing::{Duty, Misses};
use crate::state::{Entry, Round, Run, Status};

/// Consequences of a close for its members.
#[derive(Clone, Copy)]
pub struct Terms {
    /// Trainers that take the strike P4.
    pub strikes: u64,
    /// Whether misses count: not where a missing payload forced the round void.
    pub counts_misses: bool,
}

/// Sums over the roster.
#[derive(Default)]
struct Sum {
    vested: u64,
    fees: u64,
    inactivated: u64,
    jailed: u64,
    withheld: u64,
    probation: u64,
    unpaid: u64,
}

impl RoundContext<'_> {
    /// Settles `self.round`, whose sets, inclusion and flags are final.
    #[inline(never)]
    pub fn settle(&mut self, terms: Terms) -> Result<()> {
        self.price_payloads()?;
        let mut sum = Sum::default();
        for (bit, entry) in with_bits(&mut self.roster.entries) {
            if self.round.members & bit != 0 {
                settle_member(self.run, entry, self.round, bit, terms, &mut sum)?;
            }
        }
        self.round.withheld = sum.withheld;
        self.round.probation = sum.probation;
        self.round.unpaid = sum.unpaid;
        let missed = |must: u64, acted: u64| {
            if terms.counts_misses {
                must & !acted
            } else {
                0
            }
        };
        let round = &*self.round;
        let event = RoundSettled {
            run: self.key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            round: round.round,
            reward_paid: round.reward_paid,
            reward_window: round.reward_window,
            vested: sum.vested,
            missed_commit: missed(round.trainers, round.committed),
            missed_attest: missed(round.members, round.attested),
            inactivated: sum.inactivated,
            fees: sum.fees,
            struck: terms.strikes,
            jailed: sum.jailed,
            withheld: sum.withheld,
            probation: sum.probation,
        };
        record(self.run, self.journal, &event)
    }

    /// Fixes what each included payload earns, and says so where the pool falls short.
    fn price_payloads(&mut self) -> Result<()> {
        let (run, round) = (&mut *self.run, &mut *self.round);
        let full = round.reward_price;
        let included = count(round.included);
        round.reward_paid = scaled_reward(full, run.reward_pool, included);
        round.reward_window = run.reward_window(self.slot);
        if included == 0 || round.reward_paid == full {
            return Ok(());
        }
        let event = RewardsScaled {
            run: self.key,
            sequence: run.event_sequence,
            slot: self.slot,
            round: round.round,
            reward_per_payload: full,
            reward_paid: round.reward_paid,
        };
        record(run, self.journal, &event)
    }
}

/// Pays, counts and punishes one member, in this order.
fn settle_member(
    run: &mut Run,
    entry: &mut Entry,
    round: &Round,
    bit: u64,
    terms: Terms,
    sum: &mut Sum,
) -> Result<()> {
    if round.included & bit != 0 {
        reward_member(run, entry, round, bit, sum)?;
    }
    if (round.included | round.attested) & bit != 0 {
        entry.rounds_served = add(entry.rounds_served, 1)?;
    }
    if terms.strikes & bit != 0 && strike(run, entry, round.round)? {
        sum.jailed |= bit;
    }
    if !terms.counts_misses {
        return Ok(());
    }
    let misses = count_misses(entry, round, bit);
    if misses.is_inactive() && entry.is(Status::Active) && !entry.is_leaving() {
        let fee = make_inactive(run, entry, round.round, misses.is_fined())?;
        sum.fees = add(sum.fees, fee)?;
        sum.inactivated |= bit;
    }
    Ok(())
}

/// Pays one included payload, or lets its reward wait for the end of a probation.
fn reward_member(
    run: &mut Run,
    entry: &mut Entry,
    round: &Round,
    bit: u64,
    sum: &mut Sum,
) -> Result<()> {
    let can_be_audited = can_be_audited(round.eligible, bit);
    if !can_be_audited || !entry.is_on_probation() {
        let vested = run.credit_reward(entry, round.reward_window, round.reward_paid)?;
        sum.vested = add(sum.vested, vested)?;
    } else if entry.is_gone() {
        // The pool got what waited when the membership ended: nothing would return this one.
        sum.unpaid |= bit;
    } else {
        run.withhold_reward(entry, round.reward_paid)?;
        sum.withheld |= bit;
        if entry.choose_probation(round.round, run.params.ring) {
            sum.probation |= bit;
        }
    }
    entry.last_included = round.round;
    entry.included_total = add(entry.included_total, 1)?;
    if can_be_audited {
        entry.included_since_strike = add(entry.included_since_strike, 1)?;
    }
    Ok(())
}

/// Counts the misses of one member. Returns those in a row now.
fn count_misses(entry: &mut Entry, round: &Round, bit: u64) -> Misses {
    let commit = Duty {
        has_acted: round.committed & bit != 0,
        ran_to_deadline: round.has_flag(ROUND_COMMIT_RAN_TO_DEADLINE),
    };
    let attest = Duty {
        has_acted: round.attested & bit != 0,
        ran_to_deadline: round.has_flag(ROUND_ATTEST_RAN_TO_DEADLINE),
    };
    let before = Misses {
        in_row: entry.misses_in_row,
        deadline_in_row: entry.deadline_misses_in_row,
    };
    let misses = if round.trainers & bit != 0 {
        before.after_round(&[commit, attest])
    } else {
        before.after_round(&[attest])
    };
    entry.misses_in_row = misses.in_row;
    entry.deadline_misses_in_row = misses.deadline_in_row;
    misses
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    const REWARD: u64 = 70;

    /// A run and a closed round in which five members were seated, and the first was included.
    fn closing() -> (Box<Run>, Box<Round>) {
        let (mut run, mut round) = (Box::new(Run::zeroed()), Box::new(Round::zeroed()));
        run.params.vesting_slots = 100;
        run.params.ring = 16;
        run.reward_pool = 1_000;
        round.round = 8;
        (round.eligible, round.included) = (0b11111, 1);
        round.reward_paid = REWARD;
        (run, round)
    }

    fn on_probation(status: Status) -> Box<Entry> {
        let mut entry = Box::new(Entry::zeroed());
        entry.status = status as u8;
        entry.openings_fault_round = 7;
        entry.begin_probation();
        entry
    }

    /// Rewards one payload; returns the lamports that wait then, the pool, and the sums.
    fn rewarded(status: Status) -> (u64, u64, Sum) {
        let (mut run, round) = closing();
        let (mut entry, mut sum) = (on_probation(status), Sum::default());
        reward_member(&mut run, &mut entry, &round, 1, &mut sum).unwrap();
        assert_eq!(run.liabilities().unwrap(), 1_000);
        (entry.withheld, run.reward_pool, sum)
    }

    #[test]
    fn the_reward_of_a_member_on_probation_waits() {
        for status in [Status::Active, Status::Jailed] {
            let (withheld, pool, sum) = rewarded(status);
            assert_eq!((withheld, pool), (REWARD, 930));
            assert_eq!((sum.withheld, sum.probation, sum.unpaid), (1, 1, 0));
        }
    }

    #[test]
    fn the_reward_of_one_on_probation_that_is_gone_stays_in_the_pool() {
        for status in [Status::Left, Status::Barred] {
            let (withheld, pool, sum) = rewarded(status);
            assert_eq!((withheld, pool), (0, 1_000));
            assert_eq!((sum.withheld, sum.probation, sum.unpaid), (0, 0, 1));
        }
    }
}
