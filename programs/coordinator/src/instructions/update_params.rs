//! `update_params`: requests new parameters.

use anchor_lang::prelude::*;

use crate::constants::RUN_PARAMS_PENDING;
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, ParamsRequested};
use crate::state::{Params, Run};

/// Accounts of `update_params`.
#[derive(Accounts)]
pub struct UpdateParams<'info> {
    /// Authority of the run.
    pub authority: Signer<'info>,
    /// The run.
    #[account(mut, has_one = authority @ refuse(CoordinatorError::WrongAuthority))]
    pub run: AccountLoader<'info, Run>,
}

impl UpdateParams<'_> {
    fn validate(&self, params: &Params) -> Result<()> {
        let run = self.run.load()?;
        run.require_unfinished()?;
        run.params.validate_update(params)
    }

    /// Requests new parameters; a second request replaces the first and starts the delay anew.
    pub fn handle(ctx: Context<UpdateParams>, params: Params) -> Result<()> {
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
        record(&mut run, &event)?;
        run.invariant()
    }
}
