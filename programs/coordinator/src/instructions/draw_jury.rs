//! `draw_jury`: fixes the seed of a case and seats the jury.

use anchor_lang::prelude::*;

use crate::audit::AuditContext;
use crate::errors::{refuse, CoordinatorError};
use crate::events::Journal;
use crate::state::{Audit, Roster, Run};

/// Accounts of `draw_jury`.
#[derive(Accounts)]
pub struct DrawJury<'info> {
    /// Sender of the transaction, open to anyone.
    pub cranker: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    #[account(mut)]
    pub roster: AccountLoader<'info, Roster>,
    /// The audit.
    #[account(
        mut,
        constraint = audit.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub audit: AccountLoader<'info, Audit>,
    /// The `SlotHashes` sysvar.
    /// CHECK: the address is checked, the bytes are read by offset.
    #[account(address = crate::constants::SLOT_HASHES @ refuse(CoordinatorError::WrongSysvar))]
    pub slot_hashes: UncheckedAccount<'info>,
    /// Signs the call that shows the events.
    /// CHECK: the address is checked; it holds nothing.
    #[account(
        address = crate::events::EVENT_AUTHORITY @ refuse(CoordinatorError::WrongEventAuthority),
    )]
    pub event_authority: UncheckedAccount<'info>,
    /// This program, which that call is for.
    /// CHECK: the address is checked.
    #[account(address = crate::ID @ refuse(CoordinatorError::WrongProgram))]
    pub program: UncheckedAccount<'info>,
}

impl DrawJury<'_> {
    /// Draws the jury. Where the first seed slot is gone, names a later one; where that is gone
    /// too, gives the seed up.
    pub fn handle(ctx: Context<DrawJury>, journal: &mut Journal) -> Result<()> {
        let accounts = &ctx.accounts;
        let slot = Clock::get()?.slot;
        let mut run = accounts.run.load_mut()?;
        let mut context = AuditContext {
            key: accounts.run.key(),
            slot,
            clock: run.clock(slot),
            run: &mut run,
            roster: &mut *accounts.roster.load_mut()?,
            audit: &mut *accounts.audit.load_mut()?,
            participants: &[],
            burned: 0,
            journal,
            acquittal: 0,
        };
        context.draw(&accounts.slot_hashes.try_borrow_data()?)?;
        context.invariant()
    }
}
