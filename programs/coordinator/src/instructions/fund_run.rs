//! `fund_run`: adds lamports to the reward pool.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, RunFunded};
use crate::math::add;
use crate::pda;
use crate::state::Run;

/// Accounts of `fund_run`.
#[derive(Accounts)]
pub struct FundRun<'info> {
    /// Funder recorded in the run: leftovers return to this key.
    #[account(mut)]
    pub funder: Signer<'info>,
    /// The run.
    #[account(
        mut,
        has_one = funder @ refuse(CoordinatorError::WrongFunder),
        has_one = vault @ refuse(CoordinatorError::WrongVault),
    )]
    pub run: AccountLoader<'info, Run>,
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

impl FundRun<'_> {
    fn validate(&self, lamports: u64) -> Result<()> {
        ensure!(lamports > 0, CoordinatorError::ZeroLamports);
        self.run.load()?.require_unfinished()
    }

    /// Adds lamports to the reward pool.
    pub fn handle(ctx: Context<FundRun>, journal: &mut Journal, lamports: u64) -> Result<()> {
        let accounts = ctx.accounts;
        accounts.validate(lamports)?;
        pda::transfer(&accounts.funder, &accounts.vault, lamports)?;

        let key = accounts.run.key();
        let mut run = accounts.run.load_mut()?;
        run.reward_pool = add(run.reward_pool, lamports)?;
        let event = RunFunded {
            run: key,
            sequence: run.event_sequence,
            slot: Clock::get()?.slot,
            funder: accounts.funder.key(),
            lamports,
            reward_pool: run.reward_pool,
        };
        record(&mut run, journal, &event)?;
        run.invariant()?;
        run.check_vault(&accounts.vault)
    }
}
