//! `commit_payload`: a trainer commits to its header and votes for its root.

use anchor_lang::prelude::*;

use super::shared::MemberInRound;
use crate::errors::CoordinatorError;
use crate::events::{record_plain, Journal, PayloadCommitted};
use crate::round::{note_quorum, require_open, require_round};
use crate::rules::bitmap::{bit, contains, count};
use crate::state::Phase;

/// Arguments of `commit_payload`.
#[derive(Clone, Copy)]
pub struct CommitPayloadArgs {
    /// Index of the trainer.
    pub index: u16,
    /// The open round.
    pub round: u64,
    /// Hash of the signed header; zeros in a root-only step.
    pub header_hash: [u8; 32],
    /// Vote for the root of the weights at the start of the round.
    pub root_vote: [u8; 32],
}

fn validate(accounts: &MemberInRound, args: &CommitPayloadArgs, slot: u64) -> Result<()> {
    let (run, round) = (accounts.run.load()?, accounts.round.load()?);
    let is_root_only = run.is(Phase::Cooldown);
    let phase = if is_root_only {
        Phase::Cooldown
    } else {
        Phase::Commit
    };
    require_round(&run, &round, args.round, phase)?;
    require_open(&run, slot)?;
    accounts
        .roster
        .load()?
        .signed_entry(args.index, accounts.session.key)?;
    let index = usize::from(args.index);
    ensure!(
        contains(round.trainers, index),
        CoordinatorError::NotATrainer
    );
    ensure!(
        !contains(round.committed, index),
        CoordinatorError::AlreadyCommitted
    );
    ensure!(args.root_vote != [0; 32], CoordinatorError::RootVoteZero);
    if is_root_only {
        ensure!(
            args.header_hash == [0; 32],
            CoordinatorError::HeaderHashNotZero
        );
    } else {
        ensure!(
            args.header_hash != [0; 32],
            CoordinatorError::HeaderHashZero
        );
    }
    Ok(())
}

/// Records the first commit of a trainer; with zeros for a header in Cooldown's root-only step.
pub fn handle(
    ctx: Context<MemberInRound>,
    journal: &mut Journal,
    args: &CommitPayloadArgs,
) -> Result<()> {
    let slot = Clock::get()?.slot;
    validate(ctx.accounts, args, slot)?;
    let (mut run, mut round) = (ctx.accounts.run.load_mut()?, ctx.accounts.round.load_mut()?);
    let mut roster = ctx.accounts.roster.load_mut()?;
    let clock = run.clock(slot);
    roster.entry_mut(args.index)?.act(clock, &run.params);
    let ballot = round.ballot_mut(args.index)?;
    ballot.header_hash = args.header_hash;
    ballot.root_vote = args.root_vote;
    round.committed |= bit(usize::from(args.index));
    note_quorum(
        &mut run,
        count(round.committed),
        count(round.trainers),
        slot,
    );
    round.invariant()?;
    let event = PayloadCommitted {
        run: ctx.accounts.run.key(),
        round: args.round,
        slot,
        index: args.index,
        header_hash: args.header_hash,
        root_vote: args.root_vote,
    };
    record_plain(journal, &event)
}
