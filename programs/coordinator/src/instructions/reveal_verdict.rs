//! `reveal_verdict`: a seat shows the verdict that it had committed to.

use anchor_lang::prelude::*;

use super::shared::JudgeInAudit;
use crate::audit::seats::Reveal;
use crate::constants::SKETCH_LEN;
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, VerdictRevealed};
use crate::rules::sketch;
use crate::rules::verdict::{Statement, Verdict};
use crate::state::{Audit, Run};

/// Arguments of `reveal_verdict`.
pub struct RevealArgs {
    /// Index of the witness.
    pub index: u16,
    /// 1 ok, 2 mismatch, 3 unavailable, 4 inconclusive.
    pub verdict: u8,
    /// Root of the openings that were judged, zeros without any.
    pub evidence: [u8; 32],
    /// The sketch of the witness's own gradient.
    pub sketch: [i32; SKETCH_LEN],
    /// Salt of the commitment.
    pub salt: [u8; 32],
}

/// Records a verdict and its sketch, if they give the committed hash.
pub fn handle(ctx: Context<JudgeInAudit>, journal: &mut Journal, args: &RevealArgs) -> Result<()> {
    let Some(verdict) = Verdict::from_number(args.verdict) else {
        return Err(refuse(CoordinatorError::UnknownVerdict));
    };
    let is_proven = sketch::proves(verdict, &args.sketch);
    ensure!(is_proven, CoordinatorError::ZeroSketch);
    let accounts = &ctx.accounts;
    let slot = Clock::get()?.slot;
    let (mut run, mut audit) = (accounts.run.load_mut()?, accounts.audit.load_mut()?);
    let (key, clock) = (accounts.run.key(), run.clock(slot));
    let mut roster = accounts.roster.load_mut()?;
    roster.act(args.index, accounts.session.key, clock, &run.params)?;
    let statement = Statement {
        run: &key.to_bytes(),
        round: audit.round,
        target: audit.target,
        witness: args.index,
        verdict,
        evidence: &args.evidence,
    };
    let commitment = statement.verdict_hash(&sketch::hash(&args.sketch), &args.salt);
    let shown = Reveal {
        verdict,
        sketch: &args.sketch,
        commitment,
    };
    audit.advance(&run.params, clock)?;
    audit.reveal_verdict(args.index, &shown, clock)?;
    audit.invariant()?;
    report(accounts, &mut run, journal, &audit, args, slot)
}

#[inline(never)]
fn report(
    accounts: &JudgeInAudit,
    run: &mut Run,
    journal: &mut Journal,
    audit: &Audit,
    args: &RevealArgs,
    slot: u64,
) -> Result<()> {
    let event = VerdictRevealed {
        run: accounts.run.key(),
        sequence: run.event_sequence,
        slot,
        round: audit.round,
        target: audit.target,
        index: args.index,
        verdict: args.verdict,
        evidence: args.evidence,
        sketch: args.sketch,
        salt: args.salt,
    };
    record(run, journal, &event)
}
