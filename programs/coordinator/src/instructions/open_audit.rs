//! `open_audit`: opens the audit of a sampled or requested target.

use anchor_lang::prelude::*;

use crate::audit::open::AuditOpener;
use crate::errors::{refuse, CoordinatorError};
use crate::events::Journal;
use crate::state::{Roster, Round, Run};

/// Accounts of `open_audit`.
#[derive(Accounts)]
pub struct OpenAudit<'info> {
    /// Pays the rent, and gets it back when the audit is closed.
    #[account(mut)]
    pub payer: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    #[account(mut)]
    pub roster: AccountLoader<'info, Roster>,
    /// The round.
    #[account(
        mut,
        constraint = round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub round: AccountLoader<'info, Round>,
    /// The audit.
    /// CHECK: created here at the address derived from the seeds, or checked to be that audit.
    #[account(mut)]
    pub audit: UncheckedAccount<'info>,
    /// The system program.
    pub system_program: Program<'info, System>,
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

impl OpenAudit<'_> {
    /// Seats the witnesses of a target, and gives it until the end of the openings.
    pub fn handle(
        ctx: Context<OpenAudit>,
        journal: &mut Journal,
        number: u64,
        target: u16,
    ) -> Result<()> {
        let accounts = &ctx.accounts;
        let mut opener = AuditOpener {
            payer: &accounts.payer,
            account: &accounts.audit,
            key: accounts.run.key(),
            slot: Clock::get()?.slot,
            run: &mut *accounts.run.load_mut()?,
            roster: &mut *accounts.roster.load_mut()?,
            round: &mut *accounts.round.load_mut()?,
            journal,
        };
        opener.open(number, target)?;
        opener.run.invariant()
    }
}
