//! What absence and strikes do to a participant.
//!
//! Owns the changes of status that a close or a report causes. Never touches one who is leaving:
//! its membership ends anyway, and its stake is on the way out. Next: `settle`.

use anchor_lang::prelude::*;

use crate::math::add;
use crate::rules::{misses, strikes};
use crate::state::{Entry, Run, Status};

/// Makes a member inactive for misses in `round` and charges the absence fee. Returns the fee.
pub fn make_inactive(run: &mut Run, entry: &mut Entry, round: u64) -> Result<u64> {
    let rounds_per_epoch = u64::from(run.params.rounds_per_epoch);
    entry.return_round =
        misses::return_round(entry.inactive_round, round, rounds_per_epoch).unwrap_or(round);
    entry.inactive_round = round;
    entry.misses_in_row = 0;
    entry.deadline_misses_in_row = 0;
    entry.clear_ready();
    entry.set_status(Status::Inactive);
    run.charge_fee(entry, run.params.absence_fee)
}

/// Gives a strike for `round`. Returns whether it jailed the participant, from the next open
/// on, for `rounds_per_epoch` rounds.
pub fn strike(run: &Run, entry: &mut Entry, round: u64) -> Result<bool> {
    entry.strikes = entry.strikes.saturating_add(1);
    entry.included_since_strike = 0;
    let is_third = strikes::add(&mut entry.strike_rounds, round);
    Ok(is_third && jail(run, entry, round)?)
}

/// Jails a participant from the next open on. Returns whether it did: not who is leaving, has
/// left or sits already.
pub fn jail(run: &Run, entry: &mut Entry, round: u64) -> Result<bool> {
    let is_bound =
        entry.is(Status::Active) || entry.is(Status::Pending) || entry.is(Status::Inactive);
    if !is_bound || entry.is_leaving() {
        return Ok(false);
    }
    let free = add(round, 1)?;
    entry.jailed_until_round = add(free, u64::from(run.params.rounds_per_epoch))?;
    entry.clear_ready();
    entry.set_status(Status::Jailed);
    Ok(true)
}
