//! The events of the program, and how they enter the chain hash.
//!
//! Owns the rule of protocol §11: every change that no round closes into the chain hash is
//! absorbed as an event, in execution order. `PayloadCommitted`, `Attested` and `RoundClosed`
//! are plain: the close itself hashes what they say. Never decides what happened.
//! Next: `journal` for how events are shown; `run`, `participant`, `round` (rounds and seeds),
//! `audit`, `case`, `plain`.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::math::add;
use crate::rules::chain_hash::after_event;
use crate::state::Run;

mod audit;
mod case;
#[macro_use]
mod journal;
mod participant;
mod plain;
mod round;
mod run;

pub use audit::*;
pub use case::*;
pub use journal::{Journal, EVENT_AUTHORITY};
pub use participant::*;
pub use plain::*;
pub use round::*;
pub use run::*;

/// An event that the chain hash absorbs. Its first fields are `run` and `sequence`.
pub trait Absorbed: anchor_lang::Event {
    /// Number of the kind inside the chain hash: 1..31 runs and participants, 32..63 rounds,
    /// 64..79 audits, 80..95 cases.
    const KIND: u8;
}

/// Absorbs an event whose `sequence` is `run.event_sequence`, and writes it into the journal.
pub fn record<E: Absorbed>(run: &mut Run, journal: &mut Journal, event: &E) -> Result<()> {
    absorb(run, E::KIND, journal.push(event)?)
}

/// Writes a plain event into the journal.
pub fn record_plain<E: anchor_lang::Event>(journal: &mut Journal, event: &E) -> Result<()> {
    journal.push(event)?;
    Ok(())
}

/// One copy for all kinds: `body` holds the event's borsh bytes.
#[inline(never)]
fn absorb(run: &mut Run, kind: u8, body: &[u8]) -> Result<()> {
    run.chain_hash = after_event(&run.chain_hash, run.event_sequence, kind, body)
        .ok_or_else(|| refuse(CoordinatorError::MathOverflow))?;
    run.event_sequence = add(run.event_sequence, 1)?;
    Ok(())
}
