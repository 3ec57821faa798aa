//! A run between rounds: how long it has waited, and how many members it waits for.
//!
//! Owns what the Run account keeps of both. Never decides: `crate::rules::expected_members` and
//! `crate::round::waiting` do. Next: `crate::round::open`, which halts without half of them.

use anchor_lang::prelude::*;

use crate::constants::{NONE, RUN_LAST_WARMUP};
use crate::rules::expected_members::ExpectedMembers;
use crate::state::{Phase, Run};

impl Run {
    /// Starts to wait for members; the first moment since the last closed round is kept.
    pub fn start_waiting(&mut self, slot: u64) -> Result<()> {
        self.waiting_since = self.waiting_since.min(self.clock(slot));
        self.enter(Phase::WaitingForMembers, slot, None)
    }

    /// Whether the run has waited for as long as a withdrawal takes.
    #[must_use]
    pub fn has_waited_long(&self, slot: u64) -> bool {
        let waited = self.clock(slot).saturating_sub(self.waiting_since);
        waited > self.params.unbond_slots
    }

    /// A round closed with a result: nobody has waited since.
    pub fn stop_waiting(&mut self) {
        self.waiting_since = NONE;
        self.flags &= !RUN_LAST_WARMUP;
    }

    /// The expected members.
    #[must_use]
    pub fn expected(&self) -> ExpectedMembers {
        ExpectedMembers {
            admitted: self.expected_admitted,
            of_epoch: self.expected_members,
            before: self.expected_before,
            epoch: self.expected_epoch,
        }
    }

    /// Keeps other expected members.
    pub fn expect(&mut self, expected: ExpectedMembers) {
        self.expected_admitted = expected.admitted;
        self.expected_members = expected.of_epoch;
        self.expected_before = expected.before;
        self.expected_epoch = expected.epoch;
    }
}
