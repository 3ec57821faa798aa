//! `set_endpoint`: changes where a participant serves what it holds.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, EndpointSet, Journal};
use crate::state::{check_text, Participant, Roster, Run};

/// Accounts of `set_endpoint`.
#[derive(Accounts)]
pub struct SetEndpoint<'info> {
    /// Owner of the participant.
    pub owner: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    pub roster: AccountLoader<'info, Roster>,
    /// The participant.
    #[account(
        mut,
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

impl SetEndpoint<'_> {
    fn validate(&self, endpoint: &str) -> Result<()> {
        check_text(endpoint)?;
        let roster = self.roster.load()?;
        let entry = self.participant.entry_of(&roster)?;
        ensure!(entry.is_present(), CoordinatorError::NotJoined);
        Ok(())
    }

    /// Changes the announced endpoint at once: no round reads it. A finished run may still ask its
    /// participants for openings, so this works there, too.
    pub fn handle(
        ctx: Context<SetEndpoint>,
        journal: &mut Journal,
        endpoint: String,
    ) -> Result<()> {
        let accounts = ctx.accounts;
        accounts.validate(&endpoint)?;
        accounts.participant.endpoint.clone_from(&endpoint);
        accounts.participant.invariant()?;
        let mut run = accounts.run.load_mut()?;
        let event = EndpointSet {
            run: accounts.run.key(),
            sequence: run.event_sequence,
            slot: Clock::get()?.slot,
            index: accounts.participant.index,
            endpoint,
        };
        record(&mut run, journal, &event)
    }
}
