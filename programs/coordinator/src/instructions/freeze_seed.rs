//! `freeze_seed`: fixes the seed of the audits of a closed round.

use std::cmp::Ordering;

use anchor_lang::prelude::*;

use super::shared::SeedOfRound;
use crate::audit::breaker;
use crate::constants::{FIRST_SEATS, ROUND_DOUBLED};
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, SeedFrozen};
use crate::round::open::seed_bit;
use crate::rules::bitmap::count;
use crate::rules::sampling::{sampled_targets, Rates};
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
    draw_sample(&mut run, &mut round);
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
    };
    record(&mut run, journal, &event)?;
    round.invariant()?;
    run.invariant()
}

/// Draws the targets of the audits, once: later corrections change no sample.
fn draw_sample(run: &mut Run, round: &mut Round) {
    let rates = Rates {
        base_ppm: run.params.p_base_ppm,
        new_ppm: run.params.p_new_ppm,
        cap: run.params.audit_cap,
        is_doubled: round.has_flag(ROUND_DOUBLED),
    };
    round.sampled = sampled_targets(&round.seed, round.included, round.is_new, &rates);
    breaker::note_sampled(run, round.sampled & seated(round));
}

/// The targets that have three witnesses to judge them, themselves excepted.
fn seated(round: &Round) -> u64 {
    let needed = u64::try_from(FIRST_SEATS).unwrap_or(u64::MAX);
    match count(round.eligible).cmp(&needed) {
        Ordering::Less => 0,
        Ordering::Equal => !round.eligible,
        Ordering::Greater => u64::MAX,
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
