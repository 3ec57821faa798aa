//! `tick`: moves the run to its next phase once that is due.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::round::open::require_ring_account;
use crate::round::Scene;
use crate::state::{Phase, Roster, Round, Run};

/// Accounts of `tick`.
#[derive(Accounts)]
pub struct Tick<'info> {
    /// Whoever sends the transaction.
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
}

impl Tick<'_> {
    /// Makes the transition that is due, or refuses with `NothingDue`.
    pub fn handle(ctx: Context<Tick>) -> Result<()> {
        let accounts = &ctx.accounts;
        let by_authority = accounts.run.load()?.authority == accounts.cranker.key();
        let mut scene = Scene {
            key: accounts.run.key(),
            slot: Clock::get()?.slot,
            run: &mut *accounts.run.load_mut()?,
            roster: &mut *accounts.roster.load_mut()?,
            round: &mut *accounts.round.load_mut()?,
        };
        require_ring_account(scene.run, scene.round, scene.run.round)?;
        match scene.run.phase()? {
            Phase::WaitingForMembers => scene.leave_waiting(by_authority)?,
            Phase::Warmup => scene.end_warmup()?,
            Phase::Commit => scene.start_attest()?,
            Phase::Halted => scene.leave_halt()?,
            _ => return Err(refuse(CoordinatorError::NothingDue)),
        }
        scene.invariant()
    }
}
