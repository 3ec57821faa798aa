//! `appeal_case`: the convicted owner asks the council.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, CaseAppealed, Journal};
use crate::state::{Audit, Run};

/// Accounts of `appeal_case`.
#[derive(Accounts)]
pub struct AppealCase<'info> {
    /// Owner of the convicted participant.
    pub owner: Signer<'info>,
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

impl AppealCase<'_> {
    /// Appeals: the escrow waits as long again, so that the council can act.
    pub fn handle(ctx: Context<AppealCase>, journal: &mut Journal) -> Result<()> {
        let accounts = &ctx.accounts;
        let slot = Clock::get()?.slot;
        let (mut run, mut audit) = (accounts.run.load_mut()?, accounts.audit.load_mut()?);
        let clock = run.clock(slot);
        audit.appeal(accounts.owner.key, clock, run.params.appeal_slots)?;
        let event = CaseAppealed {
            run: accounts.run.key(),
            sequence: run.event_sequence,
            slot,
            round: audit.round,
            target: audit.target,
            audit_kind: audit.kind,
            stage_end: audit.stage_end,
        };
        record(&mut run, journal, &event)
    }
}
