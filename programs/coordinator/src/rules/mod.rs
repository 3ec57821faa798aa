//! The protocol's rules as pure integer functions.
//!
//! Owns every decision that Python must reproduce to the bit: phases, inclusion, vesting, misses
//! and strikes, seeds, audits and juries, the chain hash. Never touches accounts, Anchor, clocks or
//! randomness: slots and hashes are arguments. Next: `crate::round`, which applies these decisions.

pub mod bitmap;
pub mod chain_hash;
pub mod eligibility;
pub mod expected_members;
pub mod hashing;
pub mod outage;
pub mod panel;
pub mod phase;
pub mod quorum;
pub mod refusal;
pub mod reward;
pub mod root;
pub mod sampling;
pub mod seeds;
pub mod sketch;
pub mod slashing;
pub mod standing;
pub mod verdict;

/// Marks "no round" and "no slot" in every layout.
pub const NONE: u64 = u64::MAX;

/// Most participants of a run: one bit each in a `u64` bitmap.
pub const MAX_PARTICIPANTS: usize = 64;
