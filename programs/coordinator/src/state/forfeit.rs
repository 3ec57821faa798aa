//! Lamports that a slash takes, and where lamports of audits and cases wait and go.
//!
//! Owns conservation: `take` lowers the totals by what it finds, and the caller places exactly as
//! much with `place_*`, or burns it. Never decides how much: `crate::rules::slashing` does.
//! Next: `crate::audit::penalties`, which slashes.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::math::{add, sub};
use crate::rules::reward;
use crate::rules::slashing::{Funds, Prices, SlashIntent, Taken};
use crate::state::{Entry, Participant, Run};

impl Entry {
    /// Lamports of the participant that can be slashed.
    pub fn funds(&self) -> Result<Funds> {
        Ok(Funds {
            claimable: self.claimable,
            unvested: self.unvested()?,
            stake: self.stake,
            unbonding: self.unbonding,
        })
    }
}

impl Run {
    /// The prices that penalties are computed from, of a round that opened with this reward. Fees
    /// and the cost of a recomputation are fixed at the creation.
    #[must_use]
    pub fn prices(&self, reward_per_payload: u64) -> Prices {
        Prices {
            reward_per_payload,
            witness_fee: self.params.witness_fee,
            recompute_cost: self.params.recompute_cost,
        }
    }

    /// Takes what `intent` finds: the totals no longer hold it, the vault still does.
    ///
    /// `tickets` is the participant behind `entry`; `ParticipantMissing` where the stake does not
    /// suffice, tickets do, and it was not passed.
    pub fn take(
        &mut self,
        entry: &mut Entry,
        tickets: Option<&mut Participant>,
        intent: &SlashIntent,
    ) -> Result<Taken> {
        let taken = intent.take(&entry.funds()?);
        if taken.unbonding > 0 {
            let tickets = tickets.ok_or_else(|| refuse(CoordinatorError::ParticipantMissing))?;
            ensure!(tickets.owner == entry.owner, CoordinatorError::WrongOwner);
            tickets.cut_tickets(taken.unbonding)?;
        }
        let windows = entry.bucket_window;
        reward::take(&windows, &mut entry.bucket_amount, taken.unvested);
        entry.claimable = sub(entry.claimable, taken.claimable)?;
        entry.stake = sub(entry.stake, taken.stake)?;
        entry.unbonding = sub(entry.unbonding, taken.unbonding)?;
        self.total_claimable = sub(self.total_claimable, taken.claimable)?;
        self.total_stake = sub(self.total_stake, taken.stake)?;
        self.total_unbonding = sub(self.total_unbonding, taken.unbonding)?;
        self.total_unvested = sub(self.total_unvested, taken.unvested)?;
        Ok(taken)
    }

    /// Lamports go to the reward pool.
    pub fn place_pool(&mut self, lamports: u64) -> Result<()> {
        self.reward_pool = add(self.reward_pool, lamports)?;
        Ok(())
    }

    /// Lamports become claimable by the owner of `entry`.
    pub fn place_claimable(&mut self, entry: &mut Entry, lamports: u64) -> Result<()> {
        entry.claimable = add(entry.claimable, lamports)?;
        self.total_claimable = add(self.total_claimable, lamports)?;
        Ok(())
    }

    /// Lamports wait in escrow.
    pub fn place_escrow(&mut self, lamports: u64) -> Result<()> {
        self.total_escrow = add(self.total_escrow, lamports)?;
        Ok(())
    }

    /// Lamports leave the escrow; the caller places them.
    pub fn release_escrow(&mut self, lamports: u64) -> Result<()> {
        self.total_escrow = sub(self.total_escrow, lamports)?;
        Ok(())
    }

    /// Lamports that came into the vault as a bond, or as fees in advance.
    pub fn deposit_bond(&mut self, lamports: u64) -> Result<()> {
        self.total_bonds = add(self.total_bonds, lamports)?;
        Ok(())
    }

    /// Lamports stop being a bond; the caller places or pays them.
    pub fn release_bond(&mut self, lamports: u64) -> Result<()> {
        self.total_bonds = sub(self.total_bonds, lamports)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::quorum::SeatFault;
    use crate::rules::slashing::{seat, work};
    use crate::state::Ticket;
    use bytemuck::Zeroable;

    /// Somebody with 600 at stake, 200 in two tickets and 70 unvested, in a run with a pool.
    fn member() -> (Box<Run>, Box<Entry>, Participant) {
        let (mut run, mut entry) = (Box::new(Run::zeroed()), Box::new(Entry::zeroed()));
        let mut owner =
            Participant::new(Pubkey::default(), Pubkey::default(), Pubkey::default(), 0);
        run.params.vesting_slots = 100;
        run.params.recompute_cost = 70;
        run.reward_pool = 130;
        run.deposit_stake(&mut entry, 800).unwrap();
        for (lamports, matures_clock) in [(150, 9), (50, 7)] {
            let ticket = Ticket {
                lamports,
                matures_clock,
            };
            owner.open_ticket(ticket, 3).unwrap();
            run.unbond_stake(&mut entry, lamports).unwrap();
        }
        run.credit_reward(&mut entry, 4, 30).unwrap();
        run.credit_reward(&mut entry, 3, 40).unwrap();
        (run, entry, owner)
    }

    fn sums(run: &Run, entry: &Entry, owner: &Participant) {
        let funds = entry.funds().unwrap();
        assert_eq!(run.total_stake, funds.stake);
        assert_eq!(run.total_unbonding, funds.unbonding);
        assert_eq!(run.total_unvested, funds.unvested);
        assert_eq!(
            owner.tickets.iter().map(|t| t.lamports).sum::<u64>(),
            funds.unbonding
        );
    }

    #[test]
    fn a_slash_takes_from_each_source_and_leaves_the_rest_in_the_totals() {
        let (mut run, mut entry, mut owner) = member();
        let intent = work(&entry.funds().unwrap(), false);
        let taken = run.take(&mut entry, Some(&mut owner), &intent).unwrap();
        assert_eq!((taken.stake, taken.unbonding, taken.unvested), (400, 0, 70));
        sums(&run, &entry, &owner);
        assert_eq!(run.liabilities().unwrap(), 930 - 470);
        run.place_escrow(470).unwrap();
        run.release_escrow(470).unwrap();
        run.place_pool(400).unwrap();
        run.place_claimable(&mut entry, 70).unwrap();
        assert_eq!(run.liabilities().unwrap(), 930);
        assert_eq!(
            (run.total_claimable, entry.claimable, run.reward_pool),
            (70, 70, 460)
        );
    }

    #[test]
    fn a_small_penalty_takes_vested_rewards_first() {
        let (mut run, mut entry, owner) = member();
        run.paused_at_slot = crate::constants::NONE;
        run.release_vested(&mut entry, 350).unwrap();
        assert_eq!((entry.claimable, run.total_claimable), (40 + 30, 40 + 30));
        let prices = Prices {
            recompute_cost: 1,
            ..run.prices(0)
        };
        let intent = seat(SeatFault::NoReveal, true, &entry.funds().unwrap(), &prices);
        let taken = run.take(&mut entry, None, &intent).unwrap();
        assert_eq!((taken.claimable, taken.stake), (70, 10));
        assert_eq!((entry.claimable, run.total_claimable), (0, 0));
        sums(&run, &entry, &owner);
    }

    #[test]
    fn tickets_are_cut_from_the_one_that_matures_first() {
        let (mut run, mut entry, mut owner) = member();
        let intent = seat(
            SeatFault::WrongOk,
            false,
            &entry.funds().unwrap(),
            &run.prices(0),
        );
        let taken = run.take(&mut entry, Some(&mut owner), &intent).unwrap();
        assert_eq!(
            (taken.unvested, taken.stake, taken.unbonding),
            (70, 600, 30)
        );
        assert_eq!(
            [owner.tickets[0].lamports, owner.tickets[1].lamports],
            [150, 20]
        );
        sums(&run, &entry, &owner);
    }

    #[test]
    fn tickets_are_needed_only_where_the_stake_does_not_suffice() {
        let (mut run, mut entry, mut owner) = member();
        let intent = work(&entry.funds().unwrap(), true);
        assert!(run.take(&mut entry, None, &intent).is_err());
        owner.owner = Pubkey::new_from_array([1; 32]);
        assert!(run.take(&mut entry, Some(&mut owner), &intent).is_err());
        let small = seat(
            SeatFault::NoReveal,
            true,
            &entry.funds().unwrap(),
            &Prices {
                recompute_cost: 1,
                ..run.prices(0)
            },
        );
        let taken = run.take(&mut entry, None, &small).unwrap();
        assert_eq!((taken.unvested, taken.stake), (70, 10));
    }

    #[test]
    fn a_bond_is_held_until_it_is_released() {
        let (mut run, ..) = member();
        run.deposit_bond(90).unwrap();
        assert_eq!(run.liabilities().unwrap(), 1_020);
        assert!(run.release_bond(91).is_err());
        run.release_bond(90).unwrap();
        run.place_pool(90).unwrap();
        assert_eq!(run.reward_pool, 150);
    }
}
