//! `open_case`: posts a bond, so that a second committee judges.

use anchor_lang::prelude::*;

use crate::audit::open::{AuditId, Docket};
use crate::case::open::Claim;
use crate::errors::{refuse, CoordinatorError};
use crate::pda;
use crate::state::{AuditKind, Roster, Round, Run};

/// Arguments of `open_case`.
#[derive(Clone, Copy)]
pub struct OpenCaseArgs {
    /// Round.
    pub round: u64,
    /// Index of the one who is to be judged.
    pub target: u16,
    /// See `AuditKind`.
    pub kind: u8,
    /// Possession: index of the payload in question; else 65535.
    pub subject: u16,
}

/// Accounts of `open_case`.
#[derive(Accounts)]
pub struct OpenCase<'info> {
    /// Posts the bond; pays the rent of a case that is not about an audit.
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
    /// The ring account of the round.
    #[account(
        mut,
        constraint = round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub round: AccountLoader<'info, Round>,
    /// The audit: of the sample for work, created here for the exact faults.
    /// CHECK: created by `pda::create` at its derived address, or opened with its kind checked.
    #[account(mut)]
    pub audit: UncheckedAccount<'info>,
    /// The vault of the run.
    /// CHECK: `run.vault`; only lamports enter.
    #[account(mut)]
    pub vault: UncheckedAccount<'info>,
    /// The system program.
    pub system_program: Program<'info, System>,
}

impl OpenCase<'_> {
    /// Posts the bond and accuses the target.
    pub fn handle(ctx: Context<OpenCase>, args: &OpenCaseArgs) -> Result<()> {
        let accounts = &ctx.accounts;
        let claim = Claim {
            id: AuditId {
                round: args.round,
                target: args.target,
                kind: AuditKind::from_number(args.kind)?,
            },
            subject: args.subject,
        };
        let mut docket = Docket {
            payer: &accounts.challenger,
            account: &accounts.audit,
            key: accounts.run.key(),
            slot: Clock::get()?.slot,
            run: &mut *accounts.run.load_mut()?,
            roster: &mut *accounts.roster.load_mut()?,
            round: &mut *accounts.round.load_mut()?,
        };
        let bond = docket.open_case(&claim)?;
        pda::transfer(&accounts.challenger, &accounts.vault, bond)?;
        docket.run.invariant()?;
        docket.run.check_vault(&accounts.vault)
    }
}
