//! `retarget_seed`: names another seed slot where the first one is gone.

use anchor_lang::prelude::*;

use super::freeze_seed::require_seed_pending;
use super::shared::SeedOfRound;
use crate::errors::CoordinatorError;
use crate::events::{record, Journal, SeedLost, SeedRetargeted};
use crate::round::open::seed_bit;
use crate::rules::bitmap::with_bits;
use crate::rules::seeds::{first_at_or_after, Lookup};
use crate::state::SeedStatus;

/// Names a later seed slot the first time, and gives the seed up the second time.
pub fn handle(ctx: Context<SeedOfRound>, journal: &mut Journal, number: u64) -> Result<()> {
    let (mut run, mut round) = (ctx.accounts.run.load_mut()?, ctx.accounts.round.load_mut()?);
    require_seed_pending(&run, &round, number)?;
    let lookup = first_at_or_after(
        &ctx.accounts.slot_hashes.try_borrow_data()?,
        round.seed_slot,
    );
    ensure!(lookup == Lookup::Lost, CoordinatorError::SeedNotLost);
    let slot = Clock::get()?.slot;
    let key = ctx.accounts.run.key();
    if round.seed_status == SeedStatus::Pending as u8 {
        round.seed_slot = run.params.round_seed_slot(slot)?;
        round.seed_status = SeedStatus::Retargeted as u8;
        let (sequence, seed_slot) = (run.event_sequence, round.seed_slot);
        let event = SeedRetargeted {
            run: key,
            sequence,
            slot,
            round: number,
            seed_slot,
        };
        record(&mut run, journal, &event)?;
    } else {
        round.seed_status = SeedStatus::Lost as u8;
        run.seeds_pending &= !seed_bit(number);
        run.lost_seeds |= seed_bit(number);
        for (bit, entry) in with_bits(&mut ctx.accounts.roster.load_mut()?.entries) {
            if round.probation & bit != 0 {
                entry.redraw_probation(number);
            }
        }
        let event = SeedLost {
            run: key,
            sequence: run.event_sequence,
            slot,
            round: number,
        };
        record(&mut run, journal, &event)?;
    }
    round.invariant()?;
    run.invariant()
}
