//! The transitions of a run between two phases: opening, closing, settling, waiting.
//!
//! Owns the transitions that several instructions share. Decisions come from `crate::rules`,
//! layouts and money from `crate::state`; signers and accounts are checked by the instructions.
//! Reading order: `open`, `ballots`, `close`, `settle`, `penalties`, `checkpoint`, `correct`,
//! `waiting`.

use anchor_lang::prelude::*;

use crate::constants::NONE;
use crate::errors::CoordinatorError;
use crate::events::Journal;
use crate::rules::phase::{has_quorum, Window};
use crate::state::{Phase, Roster, Round, Run};

pub mod ballots;
pub mod checkpoint;
pub mod close;
pub mod correct;
pub mod open;
pub mod penalties;
pub mod settle;
pub mod waiting;

/// The accounts that a transition works on, and when.
pub struct RoundContext<'a> {
    /// Address of the run.
    pub key: Pubkey,
    /// Current slot.
    pub slot: u64,
    /// The run.
    pub run: &'a mut Run,
    /// Its roster.
    pub roster: &'a mut Roster,
    /// The ring account of the open round, or of the one that opens.
    pub round: &'a mut Round,
    /// The events that the instruction shows at its end.
    pub journal: &'a mut Journal,
}

impl RoundContext<'_> {
    /// Conditions that every transition keeps.
    pub fn invariant(&self) -> Result<()> {
        self.run.invariant()?;
        self.round.invariant()?;
        for entry in &self.roster.entries {
            entry.invariant()?;
        }
        Ok(())
    }
}

/// The time limits of the run's phase.
#[must_use]
pub fn window(run: &Run) -> Window {
    Window {
        start: run.phase_start_slot,
        end: run.phase_end_slot,
        quorum_slot: run.quorum_slot,
    }
}

/// Refuses an action after the last slot of the phase.
pub fn require_open(run: &Run, slot: u64) -> Result<()> {
    ensure!(window(run).accepts(slot), CoordinatorError::PhaseOver);
    Ok(())
}

/// Refuses unless the run is in `phase` and `number` is its open round, held by `round`.
pub fn require_round(run: &Run, round: &Round, number: u64, phase: Phase) -> Result<()> {
    ensure!(number == run.round, CoordinatorError::WrongRound);
    ensure!(run.is(phase), CoordinatorError::WrongPhase);
    ensure!(round.round == number, CoordinatorError::WrongRoundAccount);
    Ok(())
}

/// Remembers the slot in which four fifths had acted for the first time in this phase.
pub fn note_quorum(run: &mut Run, acted: u64, all: u64, slot: u64) {
    if run.quorum_slot == NONE && has_quorum(acted, all) {
        run.quorum_slot = slot;
    }
}
