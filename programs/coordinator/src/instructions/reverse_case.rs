//! `reverse_case`: the council reverses a conviction. It can do nothing else.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, CaseReversed, Journal};
use crate::state::{Audit, Run};

/// Accounts of `reverse_case`.
#[derive(Accounts)]
pub struct ReverseCase<'info> {
    /// The council of the run.
    pub council: Signer<'info>,
    /// The run.
    #[account(mut, has_one = council @ refuse(CoordinatorError::WrongCouncil))]
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

impl ReverseCase<'_> {
    /// Reverses a conviction that was appealed or fell under the breaker.
    pub fn handle(ctx: Context<ReverseCase>, journal: &mut Journal) -> Result<()> {
        let accounts = &ctx.accounts;
        let slot = Clock::get()?.slot;
        let (mut run, mut audit) = (accounts.run.load_mut()?, accounts.audit.load_mut()?);
        audit.reverse(run.clock(slot))?;
        let event = CaseReversed {
            run: accounts.run.key(),
            sequence: run.event_sequence,
            slot,
            round: audit.round,
            target: audit.target,
            audit_kind: audit.kind,
        };
        record(&mut run, journal, &event)
    }
}
