//! The transitions of an audit between the sample and its outcome.
//!
//! Owns the transitions that several instructions share. Decisions come from `crate::rules`,
//! layouts and money from `crate::state`; signers and accounts are checked by the instructions.
//! Reading order: `sample`, `open`, `seats`, `settle`, `fees`, `penalties`, `probation`, `breaker`;
//! `crate::case` goes on with an accusation.

use anchor_lang::prelude::*;

use crate::events::Journal;
use crate::state::{Audit, Roster, Run};

pub mod breaker;
pub mod fees;
pub mod open;
pub mod penalties;
pub mod probation;
pub mod sample;
pub mod seats;
pub mod settle;
#[cfg(test)]
mod tests;

/// The accounts that a transition works on, and when.
pub struct AuditContext<'a, 'info> {
    /// Address of the run.
    pub key: Pubkey,
    /// Current slot.
    pub slot: u64,
    /// Current moment on the run clock.
    pub clock: u64,
    /// The run.
    pub run: &'a mut Run,
    /// Its roster.
    pub roster: &'a mut Roster,
    /// The audit.
    pub audit: &'a mut Audit,
    /// Participant accounts that were passed, for penalties that touch tickets or a bar.
    pub participants: &'a [AccountInfo<'info>],
    /// Lamports that left the totals for the incinerator; the instruction pays them at its end.
    pub burned: u64,
    /// The events that the instruction shows at its end.
    pub journal: &'a mut Journal,
    /// Lamports of false accusers that the acquitted target may still get.
    pub acquittal: u64,
}

impl AuditContext<'_, '_> {
    /// Conditions that every transition keeps. Entries are checked where they change.
    pub fn invariant(&self) -> Result<()> {
        self.run.invariant()?;
        self.audit.invariant()
    }
}
