//! `advance_phase`: moves the run to its next phase once that is due.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::events::Journal;
use crate::round::open::require_ring_account;
use crate::round::RoundContext;
use crate::state::{Phase, Roster, Round, Run};

/// Accounts of `advance_phase`.
#[derive(Accounts)]
pub struct AdvancePhase<'info> {
    /// Sender of the transaction, open to anyone.
    pub cranker: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    #[account(mut)]
    pub roster: AccountLoader<'info, Roster>,
    /// The ring account of `run.round`.
    #[account(
        mut,
        constraint = round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub round: AccountLoader<'info, Round>,
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

impl AdvancePhase<'_> {
    /// Makes the transition that is due, or refuses with `NothingDue`.
    pub fn handle(ctx: Context<AdvancePhase>, journal: &mut Journal) -> Result<()> {
        let accounts = &ctx.accounts;
        let by_authority = accounts.run.load()?.authority == accounts.cranker.key();
        let mut context = RoundContext {
            key: accounts.run.key(),
            slot: Clock::get()?.slot,
            run: &mut *accounts.run.load_mut()?,
            roster: &mut *accounts.roster.load_mut()?,
            round: &mut *accounts.round.load_mut()?,
            journal,
        };
        require_ring_account(context.run, context.round, context.run.round)?;
        match context.run.phase()? {
            Phase::WaitingForMembers => context.leave_waiting(by_authority)?,
            Phase::Warmup => context.end_warmup()?,
            Phase::Commit => context.start_attest()?,
            Phase::Halted => context.leave_halt()?,
            _ => return Err(refuse(CoordinatorError::NothingDue)),
        }
        context.invariant()
    }
}
