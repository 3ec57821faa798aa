//! `commit_verdict`: a seat commits to a verdict that nobody can read yet.

use anchor_lang::prelude::*;

use super::shared::JudgeInAudit;
use crate::errors::CoordinatorError;
use crate::events::{record, Journal, VerdictCommitted};

/// Records the hash of a verdict: the first one of a seat counts.
pub fn handle(
    ctx: Context<JudgeInAudit>,
    journal: &mut Journal,
    index: u16,
    commitment: [u8; 32],
) -> Result<()> {
    ensure!(commitment != [0; 32], CoordinatorError::CommitmentZero);
    let accounts = &ctx.accounts;
    let slot = Clock::get()?.slot;
    let (mut run, mut audit) = (accounts.run.load_mut()?, accounts.audit.load_mut()?);
    let clock = run.clock(slot);
    let mut roster = accounts.roster.load_mut()?;
    roster.act(index, accounts.session.key, clock, &run.params)?;
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
    record(&mut run, journal, &event)
}
