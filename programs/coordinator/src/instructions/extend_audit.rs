//! `extend_audit`: seats two more witnesses where the seats so far decide nothing.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, AuditExtended, Journal};
use crate::state::{Audit, Run};

/// Accounts of `extend_audit`.
#[derive(Accounts)]
pub struct ExtendAudit<'info> {
    /// Sender of the transaction, open to anyone.
    pub cranker: Signer<'info>,
    /// The run.
    #[account(mut)]
    pub run: AccountLoader<'info, Run>,
    /// The audit.
    #[account(
        mut,
        constraint = audit.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub audit: AccountLoader<'info, Audit>,
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

impl ExtendAudit<'_> {
    /// Seats two more witnesses, at most twice, with windows of their own.
    pub fn handle(ctx: Context<ExtendAudit>, journal: &mut Journal) -> Result<()> {
        let accounts = &ctx.accounts;
        let slot = Clock::get()?.slot;
        let (mut run, mut audit) = (accounts.run.load_mut()?, accounts.audit.load_mut()?);
        let clock = run.clock(slot);
        audit.advance(&run.params, clock)?;
        audit.extend(&run.params, clock)?;
        audit.invariant()?;
        let event = AuditExtended {
            run: accounts.run.key(),
            sequence: run.event_sequence,
            slot,
            round: audit.round,
            target: audit.target,
            num_seats: audit.num_seats,
            stage_end: audit.stage_end,
        };
        record(&mut run, journal, &event)
    }
}
