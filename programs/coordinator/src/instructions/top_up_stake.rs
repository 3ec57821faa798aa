//! `top_up_stake`: adds to a stake.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, StakeToppedUp};
use crate::pda;
use crate::state::{Participant, Roster, Run};

/// Accounts of `top_up_stake`.
#[derive(Accounts)]
pub struct TopUpStake<'info> {
    /// Owner of the participant.
    #[account(mut)]
    pub owner: Signer<'info>,
    /// The run.
    #[account(
        mut,
        has_one = roster @ refuse(CoordinatorError::WrongRoster),
        has_one = vault @ refuse(CoordinatorError::WrongVault),
    )]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    #[account(mut)]
    pub roster: AccountLoader<'info, Roster>,
    /// The participant.
    #[account(
        mut,
        dup,
        has_one = run @ refuse(CoordinatorError::WrongRun),
        has_one = owner @ refuse(CoordinatorError::WrongOwner),
    )]
    pub participant: Box<Account<'info, Participant>>,
    /// The vault of the run.
    /// CHECK: `run.vault`; only lamports enter.
    #[account(mut)]
    pub vault: UncheckedAccount<'info>,
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

impl TopUpStake<'_> {
    fn validate(&self, lamports: u64) -> Result<()> {
        ensure!(lamports > 0, CoordinatorError::ZeroLamports);
        self.run.load()?.require_unfinished()?;
        let roster = self.roster.load()?;
        let entry = self.participant.entry_of(&roster)?;
        ensure!(entry.is_present(), CoordinatorError::NotJoined);
        ensure!(!entry.is_leaving(), CoordinatorError::AlreadyLeaving);
        Ok(())
    }

    /// Adds to a stake.
    pub fn handle(ctx: Context<TopUpStake>, journal: &mut Journal, lamports: u64) -> Result<()> {
        let accounts = ctx.accounts;
        accounts.validate(lamports)?;
        pda::transfer(&accounts.owner, &accounts.vault, lamports)?;

        let index = accounts.participant.index;
        let (mut run, mut roster) = (accounts.run.load_mut()?, accounts.roster.load_mut()?);
        let entry = roster.entry_mut(index)?;
        run.deposit_stake(entry, lamports)?;
        entry.invariant()?;
        let event = StakeToppedUp {
            run: accounts.run.key(),
            sequence: run.event_sequence,
            slot: Clock::get()?.slot,
            index,
            lamports,
            stake: entry.stake,
        };
        record(&mut run, journal, &event)?;
        run.invariant()?;
        run.check_vault(&accounts.vault)
    }
}
