//! `commit_verdict`: a seat commits to a verdict that nobody can read yet.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, VerdictCommitted};
use crate::state::{Audit, Roster, Run};

/// Accounts of `commit_verdict`.
#[derive(Accounts)]
pub struct CommitVerdict<'info> {
    /// Session key of the witness.
    pub session: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    pub roster: AccountLoader<'info, Roster>,
    /// The audit.
    #[account(
        mut,
        constraint = audit.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub audit: AccountLoader<'info, Audit>,
}

impl CommitVerdict<'_> {
    /// Records the hash of a verdict: the first one of a seat counts.
    pub fn handle(ctx: Context<CommitVerdict>, index: u16, commitment: [u8; 32]) -> Result<()> {
        ensure!(commitment != [0; 32], CoordinatorError::CommitmentZero);
        let accounts = &ctx.accounts;
        let slot = Clock::get()?.slot;
        accounts
            .roster
            .load()?
            .signed_entry(index, accounts.session.key)?;
        let (mut run, mut audit) = (accounts.run.load_mut()?, accounts.audit.load_mut()?);
        let clock = run.clock(slot);
        audit.advance(&run.params, clock)?;
        audit.commit_verdict(index, commitment, &run.params, clock)?;
        audit.invariant()?;
        let event = VerdictCommitted {
            run: accounts.run.key(),
            sequence: run.event_sequence,
            slot,
            round: audit.round,
            target: audit.target,
            index,
            commitment,
            stage: audit.stage,
            stage_end: audit.stage_end,
        };
        record(&mut run, &event)
    }
}
