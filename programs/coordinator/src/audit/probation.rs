//! Probation, as audits begin and end it (protocol §8).
//!
//! Owns what each end of the audit that decides means: cleared credits what was withheld, anything
//! else but a missing audit returns it to the pool. Next: `crate::state::probation`.

use anchor_lang::prelude::*;

use super::AuditContext;
use crate::events::{record, Journal, ProbationChanged, ProbationsEnded};
use crate::math::add;
use crate::rules::quorum::{AuditOutcome, CaseOutcome};
use crate::state::{AuditKind, Entry, Run};

/// How an audit ended for somebody on probation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// The work is there.
    Passed,
    /// It could not be shown.
    Failed,
    /// There was no audit: another payload is drawn.
    Missed,
}

impl Test {
    /// The meaning of what the seats decided; none while a jury has to decide.
    #[must_use]
    pub fn of_seats(outcome: Option<AuditOutcome>) -> Option<Test> {
        match outcome {
            None => Some(Test::Missed),
            Some(AuditOutcome::Cleared) => Some(Test::Passed),
            Some(AuditOutcome::NoOpenings | AuditOutcome::Unproven) => Some(Test::Failed),
            Some(AuditOutcome::Accused | AuditOutcome::Unavailable | AuditOutcome::Extend) => None,
        }
    }

    /// The meaning of what a jury decided.
    #[must_use]
    pub fn of_jury(outcome: CaseOutcome) -> Test {
        if outcome == CaseOutcome::Acquitted {
            Test::Passed
        } else {
            Test::Failed
        }
    }
}

impl AuditContext<'_, '_> {
    /// Puts the target on probation, or starts its probation anew.
    pub fn begin_probation(&mut self) -> Result<()> {
        let index = self.audit.target;
        let entry = self.roster.entry_mut(index)?;
        if !entry.is_present() {
            return Ok(());
        }
        let returned = self.run.return_withheld(entry)?;
        entry.begin_probation();
        self.report_probation(0, returned, 0)
    }

    /// Does what the end of this audit means for the probation of its target, if it decides it.
    pub fn end_test(&mut self, test: Test) -> Result<()> {
        let number = self.audit.round;
        let is_work = self.audit.kind == AuditKind::Work as u8;
        let window = self.run.reward_window(self.slot);
        let entry = self.roster.entry_mut(self.audit.target)?;
        if !is_work || !entry.is_tested_in(number) {
            return Ok(());
        }
        let (mut credited, mut returned, mut vested) = (0, 0, 0);
        entry.redraw_probation(number);
        match test {
            Test::Missed => return Ok(()),
            Test::Passed => {
                entry.end_probation();
                (credited, vested) = self.run.credit_withheld(entry, window)?;
            }
            Test::Failed => returned = self.run.return_withheld(entry)?,
        }
        self.report_probation(credited, returned, vested)
    }

    fn report_probation(&mut self, credited: u64, returned: u64, vested: u64) -> Result<()> {
        let index = self.audit.target;
        let event = ProbationChanged {
            run: self.key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            round: self.audit.round,
            index,
            is_on: self.roster.entry(index)?.is_on_probation(),
            credited,
            returned,
            vested,
        };
        record(self.run, self.journal, &event)
    }
}

/// Probations whose membership ends: what waits goes to the pool. The mark stays, for one that
/// joins again is still on probation.
#[derive(Default)]
pub struct Ended {
    ended: u64,
    returned: u64,
}

impl Ended {
    /// Returns what `entry` waits for, if it is on probation; `one` is its bitmap.
    pub fn add(&mut self, run: &mut Run, entry: &mut Entry, one: u64) -> Result<()> {
        if entry.is_on_probation() && !entry.is_gone() {
            self.ended |= one;
            self.returned = add(self.returned, run.return_withheld(entry)?)?;
        }
        Ok(())
    }

    /// Records one event for all of them, if there are any.
    pub fn report(
        &self,
        run: &mut Run,
        journal: &mut Journal,
        key: &Pubkey,
        slot: u64,
    ) -> Result<()> {
        if self.ended == 0 {
            return Ok(());
        }
        let event = ProbationsEnded {
            run: *key,
            sequence: run.event_sequence,
            slot,
            ended: self.ended,
            returned: self.returned,
        };
        record(run, journal, &event)
    }
}
