//! `attest`: a member says which payloads it holds.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::events::Attested;
use crate::round::{note_quorum, require_open, require_round};
use crate::rules::bits::{bit, contains, count, with_bits};
use crate::state::{Phase, Roster, Round, Run};

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

/// Accounts of `attest`.
#[derive(Accounts)]
pub struct Attest<'info> {
    /// Session key of the participant.
    pub session: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    pub roster: AccountLoader<'info, Roster>,
    /// The round.
    #[account(
        mut,
        constraint = round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub round: AccountLoader<'info, Round>,
}

impl Attest<'_> {
    fn validate(&self, args: &AttestArgs, slot: u64) -> Result<()> {
        let (run, round) = (self.run.load()?, self.round.load()?);
        require_round(&run, &round, args.round, Phase::Attest)?;
        require_open(&run, slot)?;
        self.roster
            .load()?
            .signed_entry(args.index, self.session.key)?;
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
    pub fn handle(ctx: Context<Attest>, args: &AttestArgs) -> Result<()> {
        let slot = Clock::get()?.slot;
        ctx.accounts.validate(args, slot)?;
        let (mut run, mut round) = (ctx.accounts.run.load_mut()?, ctx.accounts.round.load_mut()?);
        let ballot = round.slot_mut(args.index)?;
        ballot.attest_bitmap = args.bitmap;
        ballot.possession = args.possession;
        round.attested |= bit(usize::from(args.index));
        note_quorum(&mut run, count(round.attested), count(round.members), slot);
        round.invariant()?;
        emit!(Attested {
            run: ctx.accounts.run.key(),
            round: args.round,
            slot,
            index: args.index,
            bitmap: args.bitmap,
            possession: args.possession,
        });
        Ok(())
    }
}
