//! The past of a participant, which outlives its membership.
//!
//! Owns what is copied between the roster and the account of the owner: a record is in one place
//! only. Never decides when: `join_run` does. Next: `entry`, whose fields these are.

use anchor_lang::prelude::*;

use crate::constants::NONE;
use crate::state::Entry;

/// The past of a participant, which the run remembers after it has left.
#[derive(AnchorSerialize, AnchorDeserialize, InitSpace, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Convictions for work.
    pub work_faults: u8,
    /// Duties missed on a seat since the last jail for them.
    pub seat_faults: u8,
    /// Strikes in all.
    pub strikes: u8,
    /// Times that openings were missing and are still remembered.
    pub openings_step: u8,
    /// Rounds of the last strikes, or NONE.
    pub strike_rounds: [u64; 3],
    /// Rounds of the last audits that ended unproven, or NONE.
    pub unproven_rounds: [u64; 3],
    /// Round under way at the last conviction of each kind, or NONE.
    pub decided_round: [u64; 4],
    /// `included_total` when openings last were missing.
    pub openings_mark: u64,
    /// Included rounds.
    pub included_total: u64,
    /// Round under way when openings last were missing, or NONE.
    pub openings_fault_round: u64,
    /// Round under way when a missing reveal was fined last, or NONE.
    pub reveal_fault_round: u64,
    /// Round of the last inactivity, or NONE.
    pub inactive_round: u64,
    /// First round in which the participant may return.
    pub return_round: u64,
    /// First round after jail.
    pub jailed_until_round: u64,
    /// Whether an audit has still to clear, before rewards are paid again.
    pub is_on_probation: bool,
}

impl Record {
    /// The record of somebody that nothing is known of.
    pub const CLEAN: Record = Record {
        work_faults: 0,
        seat_faults: 0,
        strikes: 0,
        openings_step: 0,
        strike_rounds: [NONE; 3],
        unproven_rounds: [NONE; 3],
        decided_round: [NONE; 4],
        openings_mark: 0,
        included_total: 0,
        openings_fault_round: NONE,
        reveal_fault_round: NONE,
        inactive_round: NONE,
        return_round: 0,
        jailed_until_round: 0,
        is_on_probation: false,
    };

    /// Whether a later membership, joined in `round` or later, must know it: convictions, refusals,
    /// strikes, probation, jail or an absence that is not over.
    #[must_use]
    pub fn is_remembered(&self, round: u64) -> bool {
        let counts = [
            self.work_faults,
            self.seat_faults,
            self.strikes,
            self.openings_step,
        ];
        let unproven = self.unproven_rounds.iter().any(|&r| r != NONE);
        let is_kept_out = self.return_round.max(self.jailed_until_round) > round;
        let is_convicted = self.decided_round.iter().any(|&r| r != NONE);
        let has_count = counts.iter().any(|&count| count > 0);
        has_count || unproven || is_convicted || is_kept_out || self.is_on_probation
    }
}

impl Entry {
    /// The part of the entry that survives the end of the membership.
    #[must_use]
    pub fn record(&self) -> Record {
        Record {
            work_faults: self.work_faults,
            seat_faults: self.seat_faults,
            strikes: self.strikes,
            openings_step: self.openings_step,
            strike_rounds: self.strike_rounds,
            unproven_rounds: self.unproven_rounds,
            decided_round: self.decided_round,
            openings_mark: self.openings_mark,
            included_total: self.included_total,
            openings_fault_round: self.openings_fault_round,
            reveal_fault_round: self.reveal_fault_round,
            inactive_round: self.inactive_round,
            return_round: self.return_round,
            jailed_until_round: self.jailed_until_round,
            is_on_probation: self.is_on_probation(),
        }
    }

    /// The owner has a past: a new membership begins with it.
    pub fn restore(&mut self, record: &Record) {
        self.work_faults = record.work_faults;
        self.seat_faults = record.seat_faults;
        self.strikes = record.strikes;
        self.openings_step = record.openings_step;
        self.strike_rounds = record.strike_rounds;
        self.unproven_rounds = record.unproven_rounds;
        self.decided_round = record.decided_round;
        self.openings_mark = record.openings_mark;
        self.included_total = record.included_total;
        self.openings_fault_round = record.openings_fault_round;
        self.reveal_fault_round = record.reveal_fault_round;
        self.inactive_round = record.inactive_round;
        self.return_round = record.return_round;
        self.jailed_until_round = record.jailed_until_round;
        if record.is_on_probation {
            self.begin_probation();
        } else {
            self.end_probation();
        }
    }

    /// The record moves to the account of its owner: it is in one place only.
    #[must_use]
    pub fn take_record(&mut self) -> Record {
        let record = self.record();
        self.restore(&Record::CLEAN);
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    fn joined() -> Box<Entry> {
        let mut entry = Box::new(Entry::zeroed());
        let key = |byte| Pubkey::new_from_array([byte; 32]);
        entry.join(key(1), key(2), 3, 7);
        entry
    }

    #[test]
    fn somebody_new_has_no_record() {
        let entry = joined();
        assert!(entry.record() == Record::CLEAN && !Record::CLEAN.is_remembered(0));
    }

    #[test]
    fn each_fault_is_remembered_and_found_again() {
        let faults: [fn(&mut Entry); 9] = [
            |e| e.work_faults = 1,
            |e| e.seat_faults = 1,
            |e| e.strikes = 1,
            |e| e.openings_step = 2,
            |e| e.unproven_rounds[1] = 5,
            |e| e.decided_round[2] = 5,
            |e| e.return_round = 21,
            |e| e.jailed_until_round = 21,
            Entry::begin_probation,
        ];
        for fault in faults {
            let mut former = joined();
            fault(&mut former);
            let record = former.take_record();
            assert!(record.is_remembered(20) && former.record() == Record::CLEAN);
            let mut later = joined();
            later.restore(&record);
            assert!(later.record() == record);
        }
    }

    #[test]
    fn jail_that_is_over_and_rounds_that_were_included_need_no_memory() {
        let mut entry = joined();
        entry.jailed_until_round = 20;
        entry.return_round = 20;
        entry.included_total = 9;
        entry.inactive_round = 3;
        assert!(!entry.record().is_remembered(20) && entry.record().is_remembered(19));
    }
}
