//! `set_session_key`: names a new session key.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, SessionKeySet};
use crate::state::{Participant, Roster, Run, Status};

/// Accounts of `set_session_key`.
#[derive(Accounts)]
pub struct SetSessionKey<'info> {
    /// Owner of the participant.
    pub owner: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    #[account(mut)]
    pub roster: AccountLoader<'info, Roster>,
    /// The participant.
    #[account(
        has_one = run @ refuse(CoordinatorError::WrongRun),
        has_one = owner @ refuse(CoordinatorError::WrongOwner),
    )]
    pub participant: Box<Account<'info, Participant>>,
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

impl SetSessionKey<'_> {
    fn validate(&self, session: Pubkey) -> Result<()> {
        ensure!(
            session != Pubkey::default(),
            CoordinatorError::InvalidSessionKey
        );
        let roster = self.roster.load()?;
        let entry = self.participant.entry_of(&roster)?;
        // An audit or a case that names it needs its votes, whether it has left or not.
        if entry.audits > 0 && !entry.is(Status::Barred) {
            return Ok(());
        }
        self.run.load()?.require_unfinished()?;
        ensure!(entry.is_present(), CoordinatorError::NotJoined);
        Ok(())
    }

    /// Names a new session key: a member of an open round changes at the next open, everybody
    /// else at once.
    pub fn handle(
        ctx: Context<SetSessionKey>,
        journal: &mut Journal,
        session: Pubkey,
    ) -> Result<()> {
        let accounts = ctx.accounts;
        accounts.validate(session)?;
        let index = accounts.participant.index;
        let (mut run, mut roster) = (accounts.run.load_mut()?, accounts.roster.load_mut()?);
        let entry = roster.entry_mut(index)?;
        let at_next_open = entry.is(Status::Active) && run.has_open_round();
        if at_next_open {
            entry.next_session = session;
        } else {
            entry.session = session;
            entry.next_session = Pubkey::default();
        }
        entry.invariant()?;
        let event = SessionKeySet {
            run: accounts.run.key(),
            sequence: run.event_sequence,
            slot: Clock::get()?.slot,
            index,
            session,
            at_next_open,
        };
        record(&mut run, journal, &event)
    }
}
