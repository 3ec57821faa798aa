//! `release_escrow`: pays the escrow of a conviction, and closes any audit that is over.

use anchor_lang::prelude::*;

use crate::audit::AuditContext;
use crate::case::settle::Payout;
use crate::constants::INCINERATOR;
use crate::errors::{refuse, CoordinatorError};
use crate::events::Journal;
use crate::pda;
use crate::state::{Audit, Roster, Run};

/// Accounts of `release_escrow`; beside them, the writable Participant of a target whose bar is
/// lifted.
#[derive(Accounts)]
pub struct ReleaseEscrow<'info> {
    /// Sender of the transaction, open to anyone.
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
    /// The audit; closed here.
    #[account(
        mut,
        constraint = audit.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
        has_one = payer @ refuse(CoordinatorError::WrongPayer),
    )]
    pub audit: AccountLoader<'info, Audit>,
    /// The vault of the run.
    /// CHECK: `run.vault`; lamports leave it here.
    #[account(mut)]
    pub vault: UncheckedAccount<'info>,
    /// Payer of the audit's rent.
    /// CHECK: `audit.payer`; only lamports enter.
    #[account(mut)]
    pub payer: UncheckedAccount<'info>,
    /// Where lamports are burned.
    /// CHECK: the address is checked; only lamports enter.
    #[account(mut, address = INCINERATOR @ refuse(CoordinatorError::WrongIncinerator))]
    pub incinerator: UncheckedAccount<'info>,
    /// Challenger of a case that ended in a conviction.
    /// CHECK: `audit.challenger`; only lamports enter.
    #[account(mut)]
    pub challenger: Option<UncheckedAccount<'info>>,
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

impl<'info> ReleaseEscrow<'info> {
    /// Pays the escrow, if there is one, and closes the account.
    pub fn handle(ctx: Context<'info, ReleaseEscrow<'info>>, journal: &mut Journal) -> Result<()> {
        let accounts = &ctx.accounts;
        let burned = accounts.release(journal, ctx.remaining_accounts)?;
        pda::pay(&accounts.vault, &accounts.incinerator, burned)?;
        let run = accounts.run.load()?;
        run.invariant()?;
        run.check_vault(&accounts.vault)?;
        pda::close(accounts.audit.as_ref(), accounts.rent_receiver())
    }

    fn release(&self, journal: &mut Journal, participants: &[AccountInfo<'info>]) -> Result<u64> {
        let slot = Clock::get()?.slot;
        let mut run = self.run.load_mut()?;
        let mut context = AuditContext {
            key: self.run.key(),
            slot,
            clock: run.clock(slot),
            run: &mut run,
            roster: &mut *self.roster.load_mut()?,
            audit: &mut *self.audit.load_mut()?,
            participants,
            burned: 0,
            journal,
            acquittal: 0,
        };
        let payout = Payout {
            vault: &self.vault,
            challenger: self.challenger.as_ref().map(AsRef::as_ref),
        };
        context.release(&payout, *self.rent_receiver().key)?;
        context.invariant()?;
        Ok(context.burned)
    }

    /// A payer that has become a program can hold no rent: otherwise one could keep an audit open
    /// that way.
    fn rent_receiver(&self) -> &AccountInfo<'info> {
        if self.payer.executable {
            &self.vault
        } else {
            &self.payer
        }
    }
}
