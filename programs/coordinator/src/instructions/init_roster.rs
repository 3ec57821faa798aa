//! `init_roster`: creates the roster, and grows it by 10 240 bytes per call.

use anchor_lang::prelude::*;

use crate::constants::{MAX_GROWTH_BYTES, VERSION};
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, RosterInitialized};
use crate::pda;
use crate::pda::SEED_ROSTER;
use crate::state::{init::initialise, Roster, Run};

/// Accounts of `init_roster`.
#[derive(Accounts)]
pub struct InitRoster<'info> {
    /// The authority of the run: a stranger could otherwise start the roster and never end it.
    #[account(mut)]
    pub payer: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    /// CHECK: `run.roster`; created and grown here by `pda`.
    #[account(mut)]
    pub roster: UncheckedAccount<'info>,
    /// The system program.
    pub system_program: Program<'info, System>,
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

impl InitRoster<'_> {
    fn validate(&self) -> Result<()> {
        let run = self.run.load()?;
        run.require_unfinished()?;
        ensure!(
            run.authority == self.payer.key(),
            CoordinatorError::WrongAuthority
        );
        Ok(())
    }

    /// Creates the roster, or grows it; does nothing once it is full size.
    pub fn handle(ctx: Context<InitRoster>, journal: &mut Journal) -> Result<()> {
        let accounts = ctx.accounts;
        accounts.validate()?;
        let (payer, roster) = (&accounts.payer, &accounts.roster);
        let key = accounts.run.key();
        let bump = accounts.run.load()?.roster_bump;
        if roster.data_len() == Roster::SIZE && roster.owner == &crate::ID {
            return Ok(());
        }
        let reached = if roster.owner == &crate::ID {
            pda::grow(payer, roster, Roster::SIZE)?
        } else {
            let seeds: [&[u8]; 3] = [SEED_ROSTER, key.as_ref(), &[bump]];
            let first = Roster::SIZE.min(MAX_GROWTH_BYTES);
            pda::create(payer, roster, &seeds, first)?;
            first
        };
        if reached < Roster::SIZE {
            return Ok(());
        }
        initialise::<Roster>(roster, |value| {
            value.version = VERSION;
            value.bump = bump;
            value.run = key;
            value.payer = payer.key();
            Ok(())
        })?;
        let mut run = accounts.run.load_mut()?;
        let event = RosterInitialized {
            run: key,
            sequence: run.event_sequence,
            slot: Clock::get()?.slot,
            roster: roster.key(),
            payer: payer.key(),
        };
        record(&mut run, journal, &event)
    }
}
