//! `request_audit`: pays for one more audit of the round under way, before anybody knows its seed.

use anchor_lang::prelude::*;

use crate::audit::open::Docket;
use crate::errors::{refuse, CoordinatorError};
use crate::pda;
use crate::state::{Roster, Round, Run};

/// Accounts of `request_audit`.
#[derive(Accounts)]
pub struct RequestAudit<'info> {
    /// Pays the rent and five witness fees; gets back what is not used.
    #[account(mut)]
    pub challenger: Signer<'info>,
    /// The run.
    #[account(
        mut,
        has_one = roster @ refuse(CoordinatorError::WrongRoster),
        has_one = vault @ refuse(CoordinatorError::WrongVault),
    )]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    #[account(mut)]
    pub roster: AccountLoader<'info, Roster>,
    /// The open round.
    #[account(
        mut,
        constraint = round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub round: AccountLoader<'info, Round>,
    /// The audit.
    /// CHECK: created here by `pda::create` at the address derived from the seeds.
    #[account(mut)]
    pub audit: UncheckedAccount<'info>,
    /// The vault of the run.
    /// CHECK: `run.vault`; only lamports enter.
    #[account(mut)]
    pub vault: UncheckedAccount<'info>,
    /// The system program.
    pub system_program: Program<'info, System>,
}

impl RequestAudit<'_> {
    /// Pays for one more audit of the round under way.
    pub fn handle(ctx: Context<RequestAudit>, number: u64, target: u16) -> Result<()> {
        let accounts = &ctx.accounts;
        let mut docket = Docket {
            payer: &accounts.challenger,
            account: &accounts.audit,
            key: accounts.run.key(),
            slot: Clock::get()?.slot,
            run: &mut *accounts.run.load_mut()?,
            roster: &mut *accounts.roster.load_mut()?,
            round: &mut *accounts.round.load_mut()?,
        };
        let prepaid = docket.request(number, target)?;
        pda::transfer(&accounts.challenger, &accounts.vault, prepaid)?;
        docket.run.invariant()?;
        docket.run.check_vault(&accounts.vault)
    }
}
