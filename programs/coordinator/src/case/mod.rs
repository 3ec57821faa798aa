//! The way of an accusation: jury, votes, outcome, escrow, appeal.
//!
//! Owns the transitions of `Audit` from `Settled` or `Accused` on. Decisions come from
//! `crate::rules`, slashes from `crate::audit::penalties`; signers and accounts are checked by
//! the instructions. Reading order: `open`, `jury`, `settle`, `sentence`, `escrow`.

pub mod escrow;
pub mod jury;
pub mod open;
pub mod sentence;
pub mod settle;
