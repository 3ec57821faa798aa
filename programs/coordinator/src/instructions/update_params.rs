//! `update_params`: requests new parameters.

use anchor_lang::prelude::*;

use crate::constants::RUN_PARAMS_PENDING;
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, ParamsRequested};
use crate::state::{Params, Roster, Run};

/// Accounts of `update_params`.
#[derive(Accounts)]
pub struct UpdateParams<'info> {
    /// Authority of the run.
    pub authority: Signer<'info>,
    /// The run.
    #[account(
        mut,
        has_one = authority @ refuse(CoordinatorError::WrongAuthority),
        has_one = roster @ refuse(CoordinatorError::WrongRoster),
    )]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    pub roster: AccountLoader<'info, Roster>,
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

impl UpdateParams<'_> {
    fn validate(&self, params: &Params) -> Result<()> {
        let run = self.run.load()?;
        run.require_unfinished()?;
        run.params.validate_update(&run.created, params)?;
        let is_funded = run.can_pay(&*self.roster.load()?, params.reward_per_payload);
        ensure!(is_funded, CoordinatorError::RewardUnfunded);
        Ok(())
    }

    /// Requests new parameters; a second request replaces the first and starts the delay anew.
    pub fn handle(ctx: Context<UpdateParams>, journal: &mut Journal, params: Params) -> Result<()> {
        let accounts = ctx.accounts;
        accounts.validate(&params)?;
        let slot = Clock::get()?.slot;
        let mut run = accounts.run.load_mut()?;
        run.pending_params = params;
        run.params_requested_slot = slot;
        run.flags |= RUN_PARAMS_PENDING;
        let event = ParamsRequested {
            run: accounts.run.key(),
            sequence: run.event_sequence,
            slot,
            params,
        };
        record(&mut run, journal, &event)?;
        run.invariant()
    }
}
