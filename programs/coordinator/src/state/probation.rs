//! Probation after a refusal of openings (protocol §8): rewards wait until an audit has cleared.
//!
//! Owns the rewards that wait, and which payload is drawn next. Never decides an audit.
//! Next: `crate::audit::probation`, which tells how one ended.

use anchor_lang::prelude::*;

use crate::constants::{ENTRY_PROBATION, NONE};
use crate::math::{add, sub};
use crate::state::{Entry, Run};

impl Entry {
    /// Whether rewards of the participant wait for an audit.
    #[must_use]
    pub fn is_on_probation(&self) -> bool {
        self.flags & ENTRY_PROBATION != 0
    }

    /// Starts a probation, or starts it anew: the next payload is drawn.
    pub fn begin_probation(&mut self) {
        self.flags |= ENTRY_PROBATION;
        self.probation_round = NONE;
    }

    /// Ends the probation.
    pub fn end_probation(&mut self) {
        self.flags &= !ENTRY_PROBATION;
        self.probation_round = NONE;
    }

    /// Chooses the included payload of `number` for the audit that decides, unless one is chosen.
    /// Rounds opened before the refusal was decided decide nothing. An audit that nobody has opened
    /// until its round left the ring of `ring` rounds is given up. Returns whether it is chosen.
    pub fn choose_probation(&mut self, number: u64, ring: u16) -> bool {
        let past = self.probation_round.saturating_add(u64::from(ring));
        let is_given_up = past <= number && self.targets == 0;
        let is_open = self.probation_round == NONE || is_given_up;
        let is_due = self.is_on_probation() && is_open && number > self.openings_fault_round;
        if is_due {
            self.probation_round = number;
        }
        is_due
    }

    /// Whether the audit of the payload of `number` decides.
    #[must_use]
    pub fn is_tested_in(&self, number: u64) -> bool {
        self.is_on_probation() && self.probation_round == number && self.joined_round <= number
    }

    /// The payload of `number` is not audited after all: the next one is drawn.
    pub fn redraw_probation(&mut self, number: u64) {
        if self.is_tested_in(number) {
            self.probation_round = NONE;
        }
    }
}

impl Run {
    /// A reward leaves the pool, and waits.
    pub fn withhold_reward(&mut self, entry: &mut Entry, lamports: u64) -> Result<()> {
        self.reward_pool = sub(self.reward_pool, lamports)?;
        self.total_withheld = add(self.total_withheld, lamports)?;
        entry.withheld = add(entry.withheld, lamports)?;
        Ok(())
    }

    /// All that waits goes back to the pool: an audit that follows takes none of it again. Returns
    /// it.
    pub fn return_withheld(&mut self, entry: &mut Entry) -> Result<u64> {
        if entry.withheld > 0 {
            entry.withheld_from = self.round;
        }
        self.take_withheld(entry, u64::MAX)
    }

    /// At most `lamports` that wait go to the pool. Returns what was there.
    fn take_withheld(&mut self, entry: &mut Entry, lamports: u64) -> Result<u64> {
        let part = lamports.min(entry.withheld);
        entry.withheld = sub(entry.withheld, part)?;
        self.total_withheld = sub(self.total_withheld, part)?;
        self.reward_pool = add(self.reward_pool, part)?;
        Ok(part)
    }

    /// All that waits is earned in the bucket of `window`. Returns it, and what vested by it.
    pub fn credit_withheld(&mut self, entry: &mut Entry, window: u64) -> Result<(u64, u64)> {
        let lamports = self.take_withheld(entry, u64::MAX)?;
        Ok((lamports, self.credit_reward(entry, window, lamports)?))
    }

    /// Takes back the reward of round `number`, in which it was withheld: from what waits, and as
    /// any other what was credited since. Nothing where it went back with all that waited. Returns
    /// what was there.
    pub fn undo_withheld(
        &mut self,
        entry: &mut Entry,
        number: u64,
        window: u64,
        lamports: u64,
    ) -> Result<u64> {
        if number < entry.withheld_from {
            return Ok(0);
        }
        let part = self.take_withheld(entry, lamports)?;
        add(part, self.undo_reward(entry, window, sub(lamports, part)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    fn on_probation() -> (Box<Run>, Box<Entry>) {
        let (mut run, mut entry) = (Box::new(Run::zeroed()), Box::new(Entry::zeroed()));
        run.params.vesting_slots = 100;
        run.reward_pool = 1_000;
        run.deposit_stake(&mut entry, 500).unwrap();
        entry.openings_fault_round = 7;
        entry.begin_probation();
        (run, entry)
    }

    #[test]
    fn rewards_wait_and_are_credited_together() {
        let (mut run, mut entry) = on_probation();
        run.withhold_reward(&mut entry, 70).unwrap();
        run.withhold_reward(&mut entry, 30).unwrap();
        assert_eq!(
            (run.reward_pool, run.total_withheld, entry.withheld),
            (900, 100, 100)
        );
        assert_eq!(run.liabilities().unwrap(), 1_500);
        assert_eq!(run.undo_withheld(&mut entry, 8, 0, 30).unwrap(), 30);
        assert_eq!(run.credit_withheld(&mut entry, 4).unwrap(), (70, 0));
        assert_eq!((entry.unvested().unwrap(), run.total_withheld), (70, 0));
        assert_eq!(run.liabilities().unwrap(), 1_500);
    }

    #[test]
    fn a_reward_that_was_credited_since_is_taken_back_as_any_other() {
        let (mut run, mut entry) = on_probation();
        run.withhold_reward(&mut entry, 70).unwrap();
        run.credit_withheld(&mut entry, 4).unwrap();
        run.round = 9;
        assert_eq!(run.return_withheld(&mut entry).unwrap(), 0, "nothing waits");
        assert_eq!(run.undo_withheld(&mut entry, 8, 3, 30).unwrap(), 30);
        assert_eq!((entry.unvested().unwrap(), run.reward_pool), (40, 960));
        entry.end_probation();
        assert_eq!(run.undo_withheld(&mut entry, 9, 3, 30).unwrap(), 30);
        assert_eq!((entry.unvested().unwrap(), run.reward_pool), (10, 990));
    }

    #[test]
    fn a_reward_that_went_back_is_not_taken_out_of_that_of_a_later_round() {
        let (mut run, mut entry) = on_probation();
        run.withhold_reward(&mut entry, 70).unwrap();
        run.round = 9;
        assert_eq!(run.return_withheld(&mut entry).unwrap(), 70);
        run.withhold_reward(&mut entry, 60).unwrap();
        assert_eq!(run.undo_withheld(&mut entry, 8, 3, 70).unwrap(), 0);
        assert_eq!((entry.withheld, run.reward_pool), (60, 940));
        assert_eq!(run.undo_withheld(&mut entry, 9, 3, 60).unwrap(), 60);
        assert_eq!((entry.withheld, run.reward_pool), (0, 1_000));
    }

    #[test]
    fn a_reward_that_went_back_is_not_taken_out_of_stake_after_the_probation() {
        let (mut run, mut entry) = on_probation();
        run.withhold_reward(&mut entry, 70).unwrap();
        run.round = 9;
        run.return_withheld(&mut entry).unwrap();
        entry.end_probation();
        run.credit_withheld(&mut entry, 4).unwrap();
        assert_eq!(run.undo_withheld(&mut entry, 8, 3, 70).unwrap(), 0);
        assert_eq!((entry.stake, run.reward_pool), (500, 1_000));
    }

    #[test]
    fn one_payload_at_a_time_decides_and_only_of_a_later_round() {
        let (_, mut entry) = on_probation();
        assert!(!entry.choose_probation(7, 16) && entry.choose_probation(8, 16));
        assert!(!entry.choose_probation(9, 16) && entry.is_tested_in(8));
        entry.redraw_probation(7);
        assert!(entry.is_tested_in(8));
        entry.redraw_probation(8);
        assert!(entry.choose_probation(10, 16) && entry.is_tested_in(10));
    }

    #[test]
    fn an_audit_that_nobody_opened_is_given_up_with_its_round() {
        let (_, mut entry) = on_probation();
        assert!(entry.choose_probation(8, 16));
        entry.targets = 1;
        assert!(!entry.choose_probation(24, 16), "it is under way");
        entry.targets = 0;
        assert!(!entry.choose_probation(23, 16) && entry.choose_probation(24, 16));
    }
}
