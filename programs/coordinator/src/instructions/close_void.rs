//! `close_void`: closes a round without a result and opens the next.

use anchor_lang::prelude::*;

use crate::constants::ROUND_FORCED_VOID;
use crate::errors::{refuse, CoordinatorError};
use crate::events::Journal;
use crate::math::add;
use crate::round::{require_round, RoundContext};
use crate::state::{Phase, Roster, Round, Run};

/// Accounts of `close_void`.
#[derive(Accounts)]
pub struct CloseVoid<'info> {
    /// Sender of the transaction, open to anyone; pays for created accounts.
    #[account(mut)]
    pub cranker: Signer<'info>,
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
    /// The ring account of the next round.
    #[account(
        mut,
        constraint = next_round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub next_round: AccountLoader<'info, Round>,
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

impl CloseVoid<'_> {
    /// A forced void may close at once, any other only when the grace after the phase is over.
    fn validate(&self, number: u64, slot: u64) -> Result<()> {
        let (run, round) = (self.run.load()?, self.round.load()?);
        let phase = run.phase()?;
        let is_forced = round.has_flag(ROUND_FORCED_VOID);
        let is_closable = match phase {
            Phase::Attest | Phase::Cooldown => true,
            Phase::Commit => is_forced,
            _ => false,
        };
        ensure!(number == run.round, CoordinatorError::WrongRound);
        ensure!(is_closable, CoordinatorError::WrongPhase);
        require_round(&run, &round, number, phase)?;
        let grace_end = add(run.phase_end_slot, run.params.close_grace_slots)?;
        ensure!(
            is_forced || slot > grace_end,
            CoordinatorError::CloseGraceRemaining
        );
        Ok(())
    }

    /// Closes a round (or root-only step) without a result and goes on.
    pub fn handle(ctx: Context<CloseVoid>, journal: &mut Journal, round: u64) -> Result<()> {
        let slot = Clock::get()?.slot;
        let accounts = &ctx.accounts;
        accounts.validate(round, slot)?;
        let mut next = accounts.next_round.load_mut()?;
        let mut context = RoundContext {
            key: accounts.run.key(),
            slot,
            run: &mut *accounts.run.load_mut()?,
            roster: &mut *accounts.roster.load_mut()?,
            round: &mut *accounts.round.load_mut()?,
            journal,
        };
        if context.run.is(Phase::Cooldown) {
            context.void_root_only()?;
        } else {
            context.close_void()?;
            context.proceed(&mut next)?;
        }
        next.invariant()?;
        context.invariant()
    }
}
