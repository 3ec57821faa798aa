//! `settle_case`: ends a case once its jury has voted.

use anchor_lang::prelude::*;

use super::shared::Settlement;
use crate::audit::AuditContext;
use crate::case::settle::Payout;
use crate::events::Journal;
use crate::pda;
use crate::round::open::require_ring_account;

/// Ends the case: fees, penalties, slash into escrow, bond.
pub fn handle<'info>(ctx: Context<'info, Settlement<'info>>, journal: &mut Journal) -> Result<()> {
    let accounts = &ctx.accounts;
    let slot = Clock::get()?.slot;
    let (mut run, mut audit) = (accounts.run.load_mut()?, accounts.audit.load_mut()?);
    let mut round = accounts.round.load_mut()?;
    require_ring_account(&run, &round, audit.round)?;
    let clock = run.clock(slot);
    audit.advance_case(&run.params, clock)?;
    let mut context = AuditContext {
        key: accounts.run.key(),
        slot,
        clock,
        run: &mut run,
        roster: &mut *accounts.roster.load_mut()?,
        audit: &mut audit,
        participants: ctx.remaining_accounts,
        burned: 0,
        journal,
        acquittal: 0,
    };
    let payout = Payout {
        vault: &accounts.vault,
        challenger: accounts.challenger.as_ref().map(AsRef::as_ref),
    };
    context.settle_case(&mut round, &payout)?;
    pda::pay(&accounts.vault, &accounts.incinerator, context.burned)?;
    context.invariant()?;
    round.invariant()?;
    run.check_vault(&accounts.vault)
}
