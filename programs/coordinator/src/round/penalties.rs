//! Consequences of absence and strikes for a participant.
//!
//! Owns when a close or a report changes a status; `crate::state::status` changes it. Never touches
//! a leaving participant: its membership ends anyway, and its stake is on the way out.
//! Next: `settle`.

use anchor_lang::prelude::*;

use crate::math::add;
use crate::rules::standing;
use crate::state::{Change, Entry, Run};

/// Makes a member inactive for misses in `round`. Where `is_fined` it pays the absence fee, and
/// the second time it waits for the next epoch. Returns the fee.
pub fn make_inactive(run: &mut Run, entry: &mut Entry, round: u64, is_fined: bool) -> Result<u64> {
    entry.misses_in_row = 0;
    entry.deadline_misses_in_row = 0;
    entry.clear_ready();
    entry.change(Change::Deactivate);
    if !is_fined {
        return Ok(0);
    }
    let rounds_per_epoch = u64::from(run.params.rounds_per_epoch);
    entry.return_round =
        standing::return_round(entry.inactive_round, round, rounds_per_epoch).unwrap_or(round);
    entry.inactive_round = round;
    run.charge_fee(entry, run.params.absence_fee)
}

/// Gives a strike for `round`. Returns whether it jailed the participant, from the next open
/// on, for `rounds_per_epoch` rounds.
pub fn strike(run: &Run, entry: &mut Entry, round: u64) -> Result<bool> {
    entry.strikes = entry.strikes.saturating_add(1);
    entry.included_since_strike = 0;
    let is_third = standing::add_strike(&mut entry.strike_rounds, round);
    Ok(is_third && jail(run, entry, round)?)
}

/// Jails a participant from the next open on. Returns false for one that is leaving, has left or
/// is in jail already.
pub fn jail(run: &Run, entry: &mut Entry, round: u64) -> Result<bool> {
    if !entry.may(Change::Jail) || entry.is_leaving() {
        return Ok(false);
    }
    let free = add(round, 1)?;
    entry.jailed_until_round = add(free, u64::from(run.params.rounds_per_epoch))?;
    entry.clear_ready();
    entry.change(Change::Jail);
    Ok(true)
}

/// Ends in `round` the jail that lasts until `until`, and no other.
pub fn end_jail(entry: &mut Entry, until: u64, round: u64) {
    if entry.jailed_until_round == until {
        entry.jailed_until_round = until.min(round);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    fn jailed() -> (Box<Run>, Box<Entry>) {
        let (mut run, mut entry) = (Box::new(Run::zeroed()), Box::new(Entry::zeroed()));
        run.params.rounds_per_epoch = 4;
        entry.change(Change::Join);
        assert!(jail(&run, &mut entry, 7).unwrap());
        assert_eq!(entry.jailed_until_round, 12);
        (run, entry)
    }

    #[test]
    fn a_reversal_ends_the_jail_that_its_conviction_began() {
        let (_, mut entry) = jailed();
        end_jail(&mut entry, 12, 9);
        assert_eq!(entry.jailed_until_round, 9);
    }

    #[test]
    fn a_reversal_ends_no_jail_that_began_elsewhere() {
        for until in [0, 8] {
            let (_, mut entry) = jailed();
            end_jail(&mut entry, until, 9);
            assert_eq!(entry.jailed_until_round, 12);
        }
    }

    #[test]
    fn a_jail_that_is_over_stays_over() {
        let (_, mut entry) = jailed();
        end_jail(&mut entry, 12, 20);
        assert_eq!(entry.jailed_until_round, 12);
    }
}
