//! `settle_case`: ends a case once its committee was heard.

use anchor_lang::prelude::*;

use crate::audit::Scene;
use crate::case::settle::Purse;
use crate::constants::INCINERATOR;
use crate::errors::{refuse, CoordinatorError};
use crate::pda;
use crate::round::open::require_ring_account;
use crate::state::{Audit, Roster, Round, Run};

/// Accounts of `settle_case`; beside them, the writable Participants of those who are penalised.
#[derive(Accounts)]
pub struct SettleCase<'info> {
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
    /// The ring account at the position of the case's round, whatever round it holds now.
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
    /// Who posted the bond, while some of it is left.
    /// CHECK: `audit.challenger`; only lamports enter.
    #[account(mut)]
    pub challenger: Option<UncheckedAccount<'info>>,
}

impl<'info> SettleCase<'info> {
    /// Ends the case: fees, penalties, slash into escrow, bond.
    pub fn handle(ctx: Context<'info, SettleCase<'info>>) -> Result<()> {
        let accounts = &ctx.accounts;
        let slot = Clock::get()?.slot;
        let (mut run, mut audit) = (accounts.run.load_mut()?, accounts.audit.load_mut()?);
        let mut round = accounts.round.load_mut()?;
        require_ring_account(&run, &round, audit.round)?;
        let clock = run.clock(slot);
        audit.advance_case(&run.params, clock)?;
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
        let purse = Purse {
            vault: &accounts.vault,
            challenger: accounts.challenger.as_ref().map(AsRef::as_ref),
        };
        scene.settle_case(&mut round, &purse)?;
        pda::pay(&accounts.vault, &accounts.incinerator, scene.burned)?;
        scene.invariant()?;
        round.invariant()?;
        run.check_vault(&accounts.vault)
    }
}
