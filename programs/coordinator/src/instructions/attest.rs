//! `attest`: a member says which payloads it holds.

use anchor_lang::prelude::*;

use super::shared::MemberInRound;
use crate::errors::CoordinatorError;
use crate::events::{record_plain, Attested, Journal};
use crate::round::{note_quorum, require_open, require_round};
use crate::rules::bitmap::{bit, contains, count, with_bits};
use crate::state::Phase;

/// Arguments of `attest`.
#[derive(Clone, Copy)]
pub struct AttestArgs {
    /// Index of the member.
    pub index: u16,
    /// The open round.
    pub round: u64,
    /// Bit i: the member holds header and payload i.
    pub bitmap: u64,
    /// Byte i: first byte of the possession hash of payload i, zero where bit i is not set.
    pub possession: [u8; 64],
}

fn validate(accounts: &MemberInRound, args: &AttestArgs, slot: u64) -> Result<()> {
    let (run, round) = (accounts.run.load()?, accounts.round.load()?);
    require_round(&run, &round, args.round, Phase::Attest)?;
    require_open(&run, slot)?;
    accounts
        .roster
        .load()?
        .signed_entry(args.index, accounts.session.key)?;
    let index = usize::from(args.index);
    ensure!(contains(round.members, index), CoordinatorError::NotAMember);
    ensure!(
        !contains(round.attested, index),
        CoordinatorError::AlreadyAttested
    );
    let is_committed = args.bitmap & !round.committed == 0;
    ensure!(is_committed, CoordinatorError::AttestOutsideCommits);
    let is_within =
        with_bits(&args.possession).all(|(bit, &byte)| byte == 0 || args.bitmap & bit != 0);
    ensure!(is_within, CoordinatorError::PossessionOutsideBitmap);
    Ok(())
}

/// Records which payloads a member holds, once per round.
pub fn handle(ctx: Context<MemberInRound>, journal: &mut Journal, args: &AttestArgs) -> Result<()> {
    let slot = Clock::get()?.slot;
    validate(ctx.accounts, args, slot)?;
    let (mut run, mut round) = (ctx.accounts.run.load_mut()?, ctx.accounts.round.load_mut()?);
    let mut roster = ctx.accounts.roster.load_mut()?;
    let clock = run.clock(slot);
    roster.entry_mut(args.index)?.act(clock, &run.params);
    let ballot = round.ballot_mut(args.index)?;
    ballot.attest_bitmap = args.bitmap;
    ballot.possession = args.possession;
    round.attested |= bit(usize::from(args.index));
    note_quorum(&mut run, count(round.attested), count(round.members), slot);
    round.invariant()?;
    let event = Attested {
        run: ctx.accounts.run.key(),
        round: args.round,
        slot,
        index: args.index,
        bitmap: args.bitmap,
        possession: args.possession,
    };
    record_plain(journal, &event)
}
