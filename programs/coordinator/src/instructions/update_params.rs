//! `update_params`: requests new parameters.

use anchor_lang::prelude::*;

use super::shared::AuthorityOverRun;
use crate::constants::RUN_PARAMS_PENDING;
use crate::events::{record, Journal, ParamsRequested};
use crate::state::Params;

fn validate(accounts: &AuthorityOverRun, params: &Params) -> Result<()> {
    let run = accounts.run.load()?;
    run.require_unfinished()?;
    run.params.validate_update(params)
}

/// Requests new parameters; a second request replaces the first and starts the delay anew.
pub fn handle(ctx: Context<AuthorityOverRun>, journal: &mut Journal, params: Params) -> Result<()> {
    let accounts = ctx.accounts;
    validate(accounts, &params)?;
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
