//! Every movement of lamports between the totals of a run.
//!
//! Owns conservation: each function takes from one side what it gives to another, totals and
//! entry alike. Never moves lamports between accounts: `crate::pda::pay` does.
//! Next: `crate::rules::reward` for the buckets.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::math::{add, sub};
use crate::rules::reward;
use crate::state::{Entry, Run};

fn overflow() -> Error {
    refuse(CoordinatorError::MathOverflow)
}

impl Run {
    /// A deposit became stake of `entry`.
    pub fn deposit_stake(&mut self, entry: &mut Entry, lamports: u64) -> Result<()> {
        entry.stake = add(entry.stake, lamports)?;
        self.total_stake = add(self.total_stake, lamports)?;
        Ok(())
    }

    /// Stake of `entry` starts unbonding; the caller writes the ticket.
    pub fn unbond_stake(&mut self, entry: &mut Entry, lamports: u64) -> Result<()> {
        entry.stake = sub(entry.stake, lamports)?;
        self.total_stake = sub(self.total_stake, lamports)?;
        entry.unbonding = add(entry.unbonding, lamports)?;
        self.total_unbonding = add(self.total_unbonding, lamports)?;
        Ok(())
    }

    /// Credits a reward from the pool to the bucket of `window`. Returns what vested by it.
    pub fn credit_reward(&mut self, entry: &mut Entry, window: u64, lamports: u64) -> Result<u64> {
        self.reward_pool = sub(self.reward_pool, lamports)?;
        self.total_unvested = add(self.total_unvested, lamports)?;
        let Entry {
            bucket_window,
            bucket_amount,
            ..
        } = entry;
        let vested =
            reward::credit(bucket_window, bucket_amount, window, lamports).ok_or_else(overflow)?;
        self.vested(entry, vested)
    }

    /// Takes a reward back into the pool: from the bucket of `window`, and what a penalty has taken
    /// out of it since, as a fee. Returns what was there.
    pub fn undo_reward(&mut self, entry: &mut Entry, window: u64, lamports: u64) -> Result<u64> {
        let windows = entry.bucket_window;
        let mut windows = windows;
        let taken = reward::remove(&mut windows, &mut entry.bucket_amount, window, lamports);
        self.total_unvested = sub(self.total_unvested, taken)?;
        self.reward_pool = add(self.reward_pool, taken)?;
        add(taken, self.charge_fee(entry, sub(lamports, taken)?)?)
    }

    /// The vesting window of a reward earned in `slot`: on the run clock, for a pause lengthens
    /// every audit that may still take it.
    #[must_use]
    pub fn reward_window(&self, slot: u64) -> u64 {
        reward::window_of(self.clock(slot), self.params.vesting_slots).unwrap_or(0)
    }

    /// Moves what has vested by `slot` to claimable. Returns how much.
    pub fn release_vested(&mut self, entry: &mut Entry, slot: u64) -> Result<u64> {
        let (windows, clock) = (entry.bucket_window, self.clock(slot));
        let vesting_slots = self.params.vesting_slots;
        let vested = reward::release(&windows, &mut entry.bucket_amount, clock, vesting_slots)
            .ok_or_else(overflow)?;
        self.vested(entry, vested)
    }

    fn vested(&mut self, entry: &mut Entry, lamports: u64) -> Result<u64> {
        self.total_unvested = sub(self.total_unvested, lamports)?;
        self.total_claimable = add(self.total_claimable, lamports)?;
        entry.claimable = add(entry.claimable, lamports)?;
        Ok(lamports)
    }

    /// Takes a fee into the pool: from claimable, then unvested, then stake. Returns how much
    /// was there to take.
    pub fn charge_fee(&mut self, entry: &mut Entry, fee: u64) -> Result<u64> {
        let claimable = reward::take_from(&mut entry.claimable, fee);
        self.total_claimable = sub(self.total_claimable, claimable)?;
        let rest = sub(fee, claimable)?;

        let windows = entry.bucket_window;
        let unvested = reward::take(&windows, &mut entry.bucket_amount, rest);
        self.total_unvested = sub(self.total_unvested, unvested)?;
        let rest = sub(rest, unvested)?;

        let stake = reward::take_from(&mut entry.stake, rest);
        self.total_stake = sub(self.total_stake, stake)?;
        let taken = add(add(claimable, unvested)?, stake)?;
        self.reward_pool = add(self.reward_pool, taken)?;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constants::NONE;
    use bytemuck::Zeroable;

    const VESTING: u64 = 100;

    /// A run with a full pool and one member.
    fn funded() -> (Box<Run>, Box<Entry>) {
        let mut run = Box::new(Run::zeroed());
        run.params.vesting_slots = VESTING;
        run.reward_pool = 1_000;
        run.paused_at_slot = NONE;
        let mut entry = Box::new(Entry::zeroed());
        run.deposit_stake(&mut entry, 600).unwrap();
        (run, entry)
    }

    fn sums(run: &Run, entry: &Entry) {
        assert_eq!(run.liabilities().unwrap(), 1_600);
        assert_eq!(run.total_stake, entry.stake);
        assert_eq!(run.total_unvested, entry.unvested().unwrap());
        assert_eq!(run.total_claimable, entry.claimable);
    }

    #[test]
    fn a_reward_moves_from_the_pool_through_its_bucket_to_the_claimable() {
        let (mut run, mut entry) = funded();
        assert_eq!(run.credit_reward(&mut entry, 0, 70).unwrap(), 0);
        sums(&run, &entry);
        assert_eq!(run.release_vested(&mut entry, 149).unwrap(), 0);
        assert_eq!(run.release_vested(&mut entry, 150).unwrap(), 70);
        sums(&run, &entry);
        assert_eq!((run.reward_pool, entry.claimable), (930, 70));
    }

    #[test]
    fn a_newer_window_evicts_what_has_vested() {
        let (mut run, mut entry) = funded();
        run.credit_reward(&mut entry, 1, 70).unwrap();
        assert_eq!(run.credit_reward(&mut entry, 4, 5).unwrap(), 70);
        sums(&run, &entry);
        assert_eq!((entry.claimable, entry.unvested().unwrap()), (70, 5));
    }

    #[test]
    fn a_reward_taken_back_comes_from_its_bucket_and_then_as_a_fee() {
        let (mut run, mut entry) = funded();
        run.credit_reward(&mut entry, 2, 70).unwrap();
        assert_eq!(run.undo_reward(&mut entry, 2, 70).unwrap(), 70);
        assert_eq!((run.reward_pool, entry.stake), (1_000, 600));
        run.credit_reward(&mut entry, 2, 70).unwrap();
        assert_eq!(run.charge_fee(&mut entry, 50).unwrap(), 50);
        assert_eq!(run.undo_reward(&mut entry, 2, 70).unwrap(), 70);
        assert_eq!((run.reward_pool, entry.stake), (1_050, 550));
        sums(&run, &entry);
    }

    #[test]
    fn a_fee_takes_claimable_then_unvested_then_stake_and_never_more_than_there_is() {
        let (mut run, mut entry) = funded();
        run.credit_reward(&mut entry, 0, 10).unwrap();
        run.release_vested(&mut entry, 150).unwrap();
        run.credit_reward(&mut entry, 4, 20).unwrap();
        assert_eq!(run.charge_fee(&mut entry, 25).unwrap(), 25);
        assert_eq!(
            (entry.claimable, entry.unvested().unwrap(), entry.stake),
            (0, 5, 600)
        );
        assert_eq!(run.charge_fee(&mut entry, 10_000).unwrap(), 605);
        assert_eq!((entry.unvested().unwrap(), entry.stake), (0, 0));
        sums(&run, &entry);
    }

    #[test]
    fn what_is_not_there_cannot_be_moved() {
        let (mut run, mut entry) = funded();
        assert!(run.unbond_stake(&mut entry, 601).is_err());
        assert!(run.credit_reward(&mut entry, 0, 1_001).is_err());
    }
}
