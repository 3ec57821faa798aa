//! The three plain events: the close of a round hashes their content.
//!
//! Owns the bytes: fields never change order. Next: `crate::rules::chain_hash`.

use anchor_lang::prelude::*;

/// A trainer committed a payload, or its root vote in a root-only step (plain).
#[event]
pub struct PayloadCommitted {
    /// The run.
    pub run: Pubkey,
    /// Round.
    pub round: u64,
    /// Slot.
    pub slot: u64,
    /// The index.
    pub index: u16,
    /// Hash of the signed header; zeros in a root-only step.
    pub header_hash: [u8; 32],
    /// Root vote.
    pub root_vote: [u8; 32],
}

/// A member attested (plain).
#[event]
pub struct Attested {
    /// The run.
    pub run: Pubkey,
    /// Round.
    pub round: u64,
    /// Slot.
    pub slot: u64,
    /// The index.
    pub index: u16,
    /// The members whose payloads it holds.
    pub bitmap: u64,
    /// Byte i proves possession of payload i.
    pub possession: [u8; 64],
}

/// A round or root-only step closed (plain): its record is in the chain hash.
#[event]
pub struct RoundClosed {
    /// The run.
    pub run: Pubkey,
    /// Round.
    pub round: u64,
    /// Slot.
    pub slot: u64,
    /// `ROUND_*` flags: root-only, void, forced void, which phases ran to the deadline.
    pub flags: u8,
    /// Members of the round.
    pub members: u64,
    /// Trainers of the round.
    pub trainers: u64,
    /// Trainers that committed.
    pub committed: u64,
    /// Members that attested.
    pub attested: u64,
    /// Payloads that every client applies.
    pub included: u64,
    /// Canonical root; zeros if void.
    pub canonical_root: [u8; 32],
    /// Slot whose hash seeds the audits, or NONE.
    pub seed_slot: u64,
    /// Chain hash with this close folded in.
    pub chain_hash: [u8; 32],
}
