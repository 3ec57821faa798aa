//! `freeze_seed`: fixes the seed of the audits of a closed round.

use anchor_lang::prelude::*;

use crate::constants::ROUND_DOUBLED;
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, SeedFrozen};
use crate::round::open::seed_bit;
use crate::rules::hash::sigma;
use crate::rules::slot_hashes::{first_at_or_after, Lookup};
use crate::state::{Round, Run, SeedStatus};

/// Accounts of `freeze_seed`.
#[derive(Accounts)]
pub struct FreezeSeed<'info> {
    /// Whoever sends the transaction.
    pub cranker: Signer<'info>,
    /// The run.
    #[account(mut)]
    pub run: AccountLoader<'info, Run>,
    /// The round.
    #[account(
        mut,
        constraint = round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub round: AccountLoader<'info, Round>,
    /// The `SlotHashes` sysvar.
    /// CHECK: the address is checked, the bytes are read by offset.
    #[account(address = crate::constants::SLOT_HASHES @ refuse(CoordinatorError::WrongSysvar))]
    pub slot_hashes: UncheckedAccount<'info>,
}

impl FreezeSeed<'_> {
    /// Fixes the seed: the first slot hash at or after the round's seed slot.
    pub fn handle(ctx: Context<FreezeSeed>, number: u64) -> Result<()> {
        let (mut run, mut round) = (ctx.accounts.run.load_mut()?, ctx.accounts.round.load_mut()?);
        require_seed_pending(&run, &round, number)?;
        let lookup = first_at_or_after(
            &ctx.accounts.slot_hashes.try_borrow_data()?,
            round.seed_slot,
        );
        let (found_slot, slot_hash) = match lookup {
            Lookup::Found(slot, hash) => (slot, hash),
            Lookup::TooEarly => return Err(refuse(CoordinatorError::SeedTooEarly)),
            Lookup::Lost => return Err(refuse(CoordinatorError::SeedSlotLost)),
            Lookup::Malformed => return Err(refuse(CoordinatorError::MalformedSlotHashes)),
        };
        let key = ctx.accounts.run.key();
        let slot = Clock::get()?.slot;
        round.freeze_clock = run.clock(slot);
        if number > 0 && run.lost_seeds & seed_bit(number.saturating_sub(1)) != 0 {
            round.flags |= ROUND_DOUBLED;
        }
        round.slot_hash = slot_hash;
        round.seed = sigma(&slot_hash, &key.to_bytes(), number);
        round.seed_status = SeedStatus::Frozen as u8;
        run.seeds_pending &= !seed_bit(number);
        let event = SeedFrozen {
            run: key,
            sequence: run.event_sequence,
            slot,
            round: number,
            seed_slot: round.seed_slot,
            found_slot,
            slot_hash,
            seed: round.seed,
        };
        record(&mut run, &event)?;
        round.invariant()?;
        run.invariant()
    }
}

/// Refuses a round account that does not hold round `number`, or that waits for no seed.
pub fn require_seed_pending(run: &Run, round: &Round, number: u64) -> Result<()> {
    ensure!(round.round == number, CoordinatorError::WrongRoundAccount);
    let waits = [SeedStatus::Pending, SeedStatus::Retargeted]
        .iter()
        .any(|&status| round.seed_status == status as u8);
    let is_pending = waits && run.seeds_pending & seed_bit(number) != 0;
    ensure!(is_pending, CoordinatorError::SeedNotPending);
    Ok(())
}
