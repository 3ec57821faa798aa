//! `freeze_seed`: fixes the seed of the audits of a closed round.

use anchor_lang::prelude::*;

use super::shared::SeedOfRound;
use crate::audit::sample::{draw_sample, seated};
use crate::constants::ROUND_DOUBLED;
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, SeedFrozen};
use crate::round::open::seed_bit;
use crate::rules::seeds::sigma;
use crate::rules::seeds::{first_at_or_after, Lookup};
use crate::state::{Round, Run, SeedStatus};

/// Fixes the seed: the first slot hash at or after the round's seed slot.
pub fn handle(ctx: Context<SeedOfRound>, journal: &mut Journal, number: u64) -> Result<()> {
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
    let mut roster = ctx.accounts.roster.load_mut()?;
    let reward_undone = draw_sample(&mut run, &mut roster, &mut round)?;
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
        sampled: round.sampled,
        unseated: round.sampled & !seated(&round),
        reward_undone,
        price_base: round.price_base,
        price_new: round.price_new,
    };
    record(&mut run, journal, &event)?;
    round.invariant()?;
    run.invariant()
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
