//! `settle_audit`: ends an audit once its seats were heard, or once the openings are overdue.

use anchor_lang::prelude::*;

use crate::audit::Scene;
use crate::constants::INCINERATOR;
use crate::errors::{refuse, CoordinatorError};
use crate::pda;
use crate::round::open::require_ring_account;
use crate::state::{Audit, Roster, Round, Run};

/// Accounts of `settle_audit`; beside them, the writable Participants of those who are penalised.
#[derive(Accounts)]
pub struct SettleAudit<'info> {
    /// Whoever sends the transaction.
    pub cranker: Signer<'info>,
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
    /// The ring account at the position of the audit's round, whatever round it holds now.
    #[account(
        mut,
        constraint = round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub round: AccountLoader<'info, Round>,
    /// The audit.
    #[account(
        mut,
        constraint = audit.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub audit: AccountLoader<'info, Audit>,
    /// The vault of the run.
    /// CHECK: `run.vault`; lamports leave it here.
    #[account(mut)]
    pub vault: UncheckedAccount<'info>,
    /// Where lamports are burned.
    /// CHECK: the address is checked; only lamports enter.
    #[account(mut, address = INCINERATOR @ refuse(CoordinatorError::WrongIncinerator))]
    pub incinerator: UncheckedAccount<'info>,
    /// Who paid fees in advance, while some of them are left.
    /// CHECK: `audit.challenger`; only lamports enter.
    #[account(mut)]
    pub challenger: Option<UncheckedAccount<'info>>,
}

impl<'info> SettleAudit<'info> {
    /// Ends the audit: outcome, penalties, fees, refund.
    pub fn handle(ctx: Context<'info, SettleAudit<'info>>) -> Result<()> {
        let accounts = &ctx.accounts;
        let slot = Clock::get()?.slot;
        let (mut run, mut audit) = (accounts.run.load_mut()?, accounts.audit.load_mut()?);
        let mut round = accounts.round.load_mut()?;
        require_ring_account(&run, &round, audit.round)?;
        let clock = run.clock(slot);
        audit.advance(&run.params, clock)?;
        let mut scene = Scene {
            key: accounts.run.key(),
            slot,
            clock,
            run: &mut run,
            roster: &mut *accounts.roster.load_mut()?,
            audit: &mut audit,
            people: ctx.remaining_accounts,
            burned: 0,
        };
        let found = scene.find(&round)?;
        scene.settle(&mut round, &found)?;
        let challenger = accounts.challenger.as_ref().map(AsRef::as_ref);
        scene.refund_prepaid(&accounts.vault, challenger)?;
        pda::pay(&accounts.vault, &accounts.incinerator, scene.burned)?;
        scene.invariant()?;
        round.invariant()?;
        run.check_vault(&accounts.vault)
    }
}
