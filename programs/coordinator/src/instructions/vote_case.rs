//! `vote_case`: a juror commits to a vote, and shows it when the others have committed too.

use anchor_lang::prelude::*;

use super::shared::JudgeInAudit;
use crate::audit::seats::Reveal;
use crate::constants::SKETCH_LEN;
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, JurorVoteCommitted, JurorVoteRevealed};
use crate::rules::sketch;
use crate::rules::verdict::{Statement, Verdict};

/// Arguments of `vote_case`.
#[derive(Clone, Copy)]
pub struct VoteCaseArgs {
    /// Index of the juror.
    pub index: u16,
    /// 0 to commit; else the vote: 1 ok, 2 mismatch, 3 unavailable, 4 inconclusive.
    pub verdict: u8,
    /// The hash committed to; with a vote, the root of the openings that it judged.
    pub hash: [u8; 32],
    /// With a vote of ok, mismatch or inconclusive on work, the sketch of the juror's own gradient;
    /// else zeros.
    pub sketch: [i32; SKETCH_LEN],
    /// Salt of the commitment; zeros to commit.
    pub salt: [u8; 32],
}

/// Commits to the hash of a vote, or shows the vote behind it.
pub fn handle(
    ctx: Context<JudgeInAudit>,
    journal: &mut Journal,
    args: &VoteCaseArgs,
) -> Result<()> {
    let accounts = &ctx.accounts;
    let (run, slot) = (accounts.run.load()?, Clock::get()?.slot);
    let mut roster = accounts.roster.load_mut()?;
    roster.act(
        args.index,
        accounts.session.key,
        run.clock(slot),
        &run.params,
    )?;
    drop((run, roster));
    if args.verdict == 0 {
        commit(accounts, journal, args)
    } else {
        reveal(accounts, journal, args)
    }
}

fn commit(accounts: &JudgeInAudit, journal: &mut Journal, args: &VoteCaseArgs) -> Result<()> {
    let is_bare = args.salt == [0; 32] && sketch::is_zero(&args.sketch);
    let is_some = args.hash != [0; 32] && is_bare;
    ensure!(is_some, CoordinatorError::CommitmentZero);
    let slot = Clock::get()?.slot;
    let (mut run, mut audit) = (accounts.run.load_mut()?, accounts.audit.load_mut()?);
    let clock = run.clock(slot);
    audit.advance_case(&run.params, clock)?;
    audit.commit_vote(args.index, args.hash, &run.params, clock)?;
    audit.invariant()?;
    let event = JurorVoteCommitted {
        run: accounts.run.key(),
        sequence: run.event_sequence,
        slot,
        round: audit.round,
        target: audit.target,
        audit_kind: audit.kind,
        index: args.index,
        commitment: args.hash,
        stage: audit.stage,
        stage_end: audit.stage_end,
    };
    record(&mut run, journal, &event)
}

fn reveal(accounts: &JudgeInAudit, journal: &mut Journal, args: &VoteCaseArgs) -> Result<()> {
    let verdict = Verdict::from_number(args.verdict)
        .ok_or_else(|| refuse(CoordinatorError::UnknownVerdict))?;
    let slot = Clock::get()?.slot;
    let (mut run, mut audit) = (accounts.run.load_mut()?, accounts.audit.load_mut()?);
    let clock = run.clock(slot);
    audit.advance_case(&run.params, clock)?;
    audit.require_sketch(verdict, &args.sketch)?;
    let statement = Statement {
        run: &accounts.run.key().to_bytes(),
        round: audit.round,
        target: audit.target,
        witness: args.index,
        verdict,
        evidence: &args.hash,
    };
    let hashed = sketch::hash(&args.sketch);
    let shown = Reveal {
        verdict,
        sketch: &args.sketch,
        commitment: statement.vote_hash(audit.kind, &hashed, &args.salt),
    };
    let was_lost = audit.is_lost_to_the_jury();
    audit.reveal_vote(args.index, &shown, clock)?;
    audit.invariant()?;
    if audit.is_lost_to_the_jury() && !was_lost {
        // The cap may postpone the conviction; the stake must not leave meanwhile.
        accounts
            .roster
            .load_mut()?
            .entry_mut(audit.target)?
            .freeze()?;
    }
    let event = JurorVoteRevealed {
        run: accounts.run.key(),
        sequence: run.event_sequence,
        slot,
        round: audit.round,
        target: audit.target,
        audit_kind: audit.kind,
        index: args.index,
        verdict: args.verdict,
        evidence: args.hash,
        sketch: args.sketch,
        salt: args.salt,
    };
    record(&mut run, journal, &event)
}
