//! What the program tells the world, and how it enters the chain hash.
//!
//! Owns the rule of protocol §11: every change that no round closes into the chain hash is
//! absorbed as an event, in execution order. `PayloadCommitted`, `Attested` and `RoundClosed`
//! are plain: the close itself hashes what they say. Never decides what happened.
//! Next: `run`, `participant`, `round` (rounds and seeds).

use anchor_lang::prelude::*;
use anchor_lang::solana_program::log::sol_log_data;

use crate::math::add;
use crate::rules::hash::{digest, TAG_EVENT};
use crate::state::Run;

mod participant;
mod round;
mod run;

pub use participant::*;
pub use round::*;
pub use run::*;

/// An event that the chain hash absorbs. Its first fields are `run` and `sequence`.
pub trait Absorbed: anchor_lang::Event {
    /// Number of the kind inside the chain hash: 1..31 runs and participants, 32..63 rounds.
    const KIND: u8;
}

/// Absorbs an event whose `sequence` is `run.event_sequence`, and logs it.
pub fn record<E: Absorbed>(run: &mut Run, event: &E) -> Result<()> {
    record_bytes(run, E::KIND, &event.data())
}

/// One copy for all kinds: `data` is the discriminator and the event's borsh bytes.
#[inline(never)]
fn record_bytes(run: &mut Run, kind: u8, data: &[u8]) -> Result<()> {
    let body = data.get(8..).unwrap_or_default();
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    run.chain_hash = digest(&[
        TAG_EVENT,
        &run.chain_hash,
        &run.event_sequence.to_le_bytes(),
        &[kind],
        &length.to_le_bytes(),
        body,
    ]);
    run.event_sequence = add(run.event_sequence, 1)?;
    sol_log_data(&[data]);
    Ok(())
}
