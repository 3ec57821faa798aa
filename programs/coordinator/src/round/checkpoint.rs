//! Stores canonical roots: in the run, and in a Checkpoint account of its own.
//!
//! Owns when the next checkpoint is due. Never judges a root. Next: `crate::pda` for the account.

use anchor_lang::prelude::*;

use super::RoundContext;
use crate::constants::VERSION;
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, CheckpointStored};
use crate::math::{add, div, mul, sub};
use crate::pda;
use crate::pda::SEED_CHECKPOINT;
use crate::state::{Checkpoint, Run};

/// Where a checkpoint would be stored, and who pays for it.
pub struct Place<'a, 'info> {
    /// Pays the rent.
    pub payer: &'a AccountInfo<'info>,
    /// The Checkpoint account, if the caller passed one.
    pub account: Option<&'a AccountInfo<'info>>,
}

impl RoundContext<'_> {
    /// Stores the canonical root of `self.round`; `CheckpointAccountMissing` without its account.
    ///
    /// Creates the account unless this round has one already (from a Cooldown before it).
    #[inline(never)]
    pub fn store_checkpoint(&mut self, place: &Place<'_, '_>) -> Result<()> {
        let account = place
            .account
            .ok_or_else(|| refuse(CoordinatorError::CheckpointAccountMissing))?;
        let number = self.round.round.to_le_bytes();
        let key = self.key;
        let seeds = [SEED_CHECKPOINT, key.as_ref(), &number];
        let (address, bump) = Pubkey::find_program_address(&seeds, &crate::ID);
        ensure!(address == *account.key, CoordinatorError::WrongAddress);
        let is_new = account.owner != &crate::ID;
        if is_new {
            let signer = [SEED_CHECKPOINT, key.as_ref(), &number, &[bump]];
            pda::create(place.payer, account, &signer, Checkpoint::SIZE)?;
            let checkpoint = self.checkpoint(bump, *place.payer.key);
            checkpoint.try_serialize(&mut account.try_borrow_mut_data()?.as_mut())?;
            self.run.num_checkpoints = add(self.run.num_checkpoints, 1)?;
        }
        self.adopt_root()?;
        let event = CheckpointStored {
            run: key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            round: self.round.round,
            cursor: self.round.cursor,
            epoch: self.round.epoch,
            root: self.round.canonical_root,
            created: is_new,
        };
        record(self.run, self.journal, &event)
    }

    fn checkpoint(&self, bump: u8, payer: Pubkey) -> Checkpoint {
        Checkpoint {
            version: VERSION,
            bump,
            run: self.key,
            payer,
            round: self.round.round,
            cursor: self.round.cursor,
            epoch: self.round.epoch,
            root: self.round.canonical_root,
            slot: self.slot,
        }
    }

    /// Makes the root of `self.round` the one that Warmup and `Finished` refer to.
    fn adopt_root(&mut self) -> Result<()> {
        self.run.root = self.round.canonical_root;
        self.run.root_round = self.round.round;
        self.run.root_cursor = self.round.cursor;
        skip_to(self.run, self.round.round)
    }
}

/// Moves `next_checkpoint_round` in whole steps past `round`.
fn skip_to(run: &mut Run, round: u64) -> Result<()> {
    if round < run.next_checkpoint_round {
        return Ok(());
    }
    let every = u64::from(run.params.checkpoint_every);
    let steps = add(div(sub(round, run.next_checkpoint_round)?, every)?, 1)?;
    run.next_checkpoint_round = add(run.next_checkpoint_round, mul(steps, every)?)?;
    Ok(())
}
