//! `resume_run`: restarts the clock, or cancels a requested pause.

use anchor_lang::prelude::*;

use crate::constants::RUN_PAUSE_REQUESTED;
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, PauseCancelled, RunResumed};
use crate::math::sub;
use crate::round::open::open_next;
use crate::state::{Phase, Roster, Round, Run};

/// Accounts of `resume_run`.
#[derive(Accounts)]
pub struct ResumeRun<'info> {
    /// Authority of the run; anyone once the pause budget is spent.
    pub signer: Signer<'info>,
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

impl ResumeRun<'_> {
    fn validate(&self, slot: u64) -> Result<()> {
        let run = self.run.load()?;
        let is_authority = run.authority == self.signer.key();
        if run.flags & RUN_PAUSE_REQUESTED != 0 {
            ensure!(is_authority, CoordinatorError::WrongAuthority);
            return Ok(());
        }
        ensure!(run.is(Phase::Paused), CoordinatorError::NotPaused);
        ensure!(
            is_authority || run.is_pause_spent(slot),
            CoordinatorError::PauseBudgetRemaining
        );
        Ok(())
    }

    /// Restarts the clock, or cancels a requested pause.
    pub fn handle(ctx: Context<ResumeRun>, journal: &mut Journal) -> Result<()> {
        let accounts = ctx.accounts;
        let slot = Clock::get()?.slot;
        accounts.validate(slot)?;
        let key = accounts.run.key();
        let mut run = accounts.run.load_mut()?;
        let sequence = run.event_sequence;
        if run.flags & RUN_PAUSE_REQUESTED != 0 {
            run.flags &= !RUN_PAUSE_REQUESTED;
            let event = PauseCancelled {
                run: key,
                sequence,
                slot,
            };
            record(&mut run, journal, &event)?;
            return run.invariant();
        }
        let paused_slots = sub(slot, run.paused_at_slot)?;
        let phase = run.leave_pause(slot)?;
        let event = RunResumed {
            run: key,
            sequence,
            slot,
            phase: phase as u8,
            paused_slots,
            pause_total_slots: run.pause_total_slots,
        };
        record(&mut run, journal, &event)?;
        if phase == Phase::Commit {
            let mut roster = accounts.roster.load_mut()?;
            let mut round = accounts.round.load_mut()?;
            open_next(&mut run, journal, &key, &mut roster, &mut round, slot)?;
            round.invariant()?;
        }
        run.invariant()
    }
}
