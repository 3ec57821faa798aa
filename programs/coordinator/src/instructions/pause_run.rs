//! `pause_run`: stops the clock, at once between rounds, else at the next close.

use anchor_lang::prelude::*;

use crate::constants::RUN_PAUSE_REQUESTED;
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, PauseRequested, RunPaused};
use crate::state::{Phase, Run};

/// Accounts of `pause_run`.
#[derive(Accounts)]
pub struct PauseRun<'info> {
    /// Authority of the run.
    pub authority: Signer<'info>,
    /// The run.
    #[account(mut, has_one = authority @ refuse(CoordinatorError::WrongAuthority))]
    pub run: AccountLoader<'info, Run>,
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

impl PauseRun<'_> {
    /// Stops the clock: at once between rounds, else at the next close.
    pub fn handle(ctx: Context<PauseRun>, journal: &mut Journal) -> Result<()> {
        let key = ctx.accounts.run.key();
        let mut run = ctx.accounts.run.load_mut()?;
        let slot = Clock::get()?.slot;
        let phase = run.phase()?;
        let is_requested = run.flags & RUN_PAUSE_REQUESTED != 0;
        ensure!(
            phase != Phase::Paused && !is_requested,
            CoordinatorError::AlreadyPaused
        );
        run.require_unfinished()?;
        ensure!(phase != Phase::Halted, CoordinatorError::WrongPhase);
        run.renew_pause_budget(slot);
        ensure!(
            !run.is_pause_spent(slot),
            CoordinatorError::PauseBudgetSpent
        );
        let sequence = run.event_sequence;
        if matches!(phase, Phase::Commit | Phase::Attest) {
            run.flags |= RUN_PAUSE_REQUESTED;
            let event = PauseRequested {
                run: key,
                sequence,
                slot,
            };
            record(&mut run, journal, &event)?;
        } else {
            run.enter_pause(slot, phase);
            let event = RunPaused {
                run: key,
                sequence,
                slot,
                resume_phase: phase as u8,
            };
            record(&mut run, journal, &event)?;
        }
        run.invariant()
    }
}
