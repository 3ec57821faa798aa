//! `announce_manifest`: says where the files of a checkpoint are. A hint, never authority.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, ManifestAnnounced};
use crate::state::{check_text, Checkpoint, Participant, Roster, Run};

/// Accounts of `announce_manifest`.
#[derive(Accounts)]
pub struct AnnounceManifest<'info> {
    /// Session key of the participant.
    pub session: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    pub roster: AccountLoader<'info, Roster>,
    /// The participant.
    #[account(mut, dup, has_one = run @ refuse(CoordinatorError::WrongRun))]
    pub participant: Box<Account<'info, Participant>>,
    /// The checkpoint.
    #[account(has_one = run @ refuse(CoordinatorError::WrongRun))]
    pub checkpoint: Box<Account<'info, Checkpoint>>,
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

impl AnnounceManifest<'_> {
    fn validate(&self, index: u16, round: u64, uri: &str) -> Result<()> {
        check_text(uri)?;
        let roster = self.roster.load()?;
        let entry = roster.signed_entry(index, self.session.key)?;
        let holds = entry.owner == self.participant.owner && self.participant.index == index;
        ensure!(holds, CoordinatorError::WrongOwner);
        ensure!(entry.is_present(), CoordinatorError::NotJoined);
        ensure!(
            self.checkpoint.round == round,
            CoordinatorError::WrongCheckpoint
        );
        Ok(())
    }

    /// Replaces the participant's announcement.
    pub fn handle(
        ctx: Context<AnnounceManifest>,
        journal: &mut Journal,
        index: u16,
        round: u64,
        manifest_hash: [u8; 32],
        uri: String,
    ) -> Result<()> {
        let accounts = ctx.accounts;
        accounts.validate(index, round, &uri)?;
        let participant = &mut accounts.participant;
        participant.manifest_round = round;
        participant.manifest_hash = manifest_hash;
        participant.manifest_uri.clone_from(&uri);
        participant.invariant()?;
        let mut run = accounts.run.load_mut()?;
        let event = ManifestAnnounced {
            run: accounts.run.key(),
            sequence: run.event_sequence,
            slot: Clock::get()?.slot,
            index,
            owner: participant.owner,
            round,
            manifest_hash,
            uri,
        };
        record(&mut run, journal, &event)
    }
}
