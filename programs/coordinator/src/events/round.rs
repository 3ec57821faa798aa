//! Events of rounds, phases and seeds, kinds 32 to 63.
//!
//! Owns the bytes: fields never change order. Bitmaps hold participant indices, so that a close
//! or an open with 64 participants is one event. Next: `plain`; `crate::round` records them.

use anchor_lang::prelude::*;

use crate::events::Absorbed;

/// A phase without a round of its own began: WaitingForMembers, Warmup, Attest, Halted, Finished.
#[event]
pub struct PhaseStarted {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// See `Phase`.
    pub phase: u8,
    /// Round that is open or opens next.
    pub round: u64,
    /// Last slot of the phase, or NONE.
    pub ends_slot: u64,
}

impl Absorbed for PhaseStarted {
    const KIND: u8 = 32;
}

/// Warmup ended: ready participants became active, the others inactive.
#[event]
pub struct WarmupEnded {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round that opens next.
    pub round: u64,
    /// Members from now on.
    pub ready: u64,
    /// Inactive from now on.
    pub absent: u64,
}

impl Absorbed for WarmupEnded {
    const KIND: u8 = 33;
}

/// A round, or the root-only step of Cooldown, opened: its sets are fixed.
#[event]
pub struct RoundOpened {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round.
    pub round: u64,
    /// Its epoch.
    pub epoch: u64,
    /// Position in the data before it.
    pub cursor: u64,
    /// Whether it is a root-only step.
    pub root_only: bool,
    /// Last slot of its Commit.
    pub ends_slot: u64,
    /// Members.
    pub members: u64,
    /// Trainers.
    pub trainers: u64,
    /// Witnesses that may be seated.
    pub eligible: u64,
    /// Participants sampled with `p_new_ppm`.
    pub is_new: u64,
}

impl Absorbed for RoundOpened {
    const KIND: u8 = 34;
}

/// Requests that waited for the end of a round took effect.
#[event]
pub struct MembershipChanged {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round that opens next.
    pub round: u64,
    /// Participants that left.
    pub left: u64,
    /// Participants whose next session key is in force now.
    pub rotated: u64,
    /// Members that are inactive now, for their stake is below what they must keep.
    pub short: u64,
}

impl Absorbed for MembershipChanged {
    const KIND: u8 = 35;
}

/// Rewards, misses and strikes of a closed round.
#[event]
pub struct RoundSettled {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round.
    pub round: u64,
    /// Lamports for each included payload.
    pub reward_paid: u64,
    /// Vesting bucket of these rewards.
    pub reward_window: u64,
    /// Lamports of older buckets that vested by it.
    pub vested: u64,
    /// Trainers that did not commit; empty when misses do not count.
    pub missed_commit: u64,
    /// Members that did not attest; empty when misses do not count.
    pub missed_attest: u64,
    /// Inactive from now on, for misses.
    pub inactivated: u64,
    /// Absence fees taken into the pool.
    pub fees: u64,
    /// A strike each (P4).
    pub struck: u64,
    /// Jailed from now on.
    pub jailed: u64,
    /// Included payloads of participants on probation: their reward waits.
    pub withheld: u64,
    /// Those of them whose audit decides the probation.
    pub probation: u64,
}

impl Absorbed for RoundSettled {
    const KIND: u8 = 36;
}

/// The pool could not pay the rewards of a round in full.
#[event]
pub struct RewardsScaled {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round.
    pub round: u64,
    /// Lamports owed for each included payload.
    pub reward_per_payload: u64,
    /// Lamports paid for each.
    pub reward_paid: u64,
}

impl Absorbed for RewardsScaled {
    const KIND: u8 = 37;
}

/// The program stored a canonical root.
#[event]
pub struct CheckpointStored {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round that trains on these weights.
    pub round: u64,
    /// Position in the data before it.
    pub cursor: u64,
    /// Its epoch.
    pub epoch: u64,
    /// State root of the weights.
    pub root: [u8; 32],
    /// Whether a Checkpoint account was created; false where this round had one.
    pub created: bool,
}

impl Absorbed for CheckpointStored {
    const KIND: u8 = 38;
}

/// A participant says that it holds the weights.
#[event]
pub struct ReadyPosted {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The index.
    pub index: u16,
    /// Round of the weights.
    pub round: u64,
    /// Root vote.
    pub vote: [u8; 32],
}

impl Absorbed for ReadyPosted {
    const KIND: u8 = 39;
}

/// A joiner's weights match the canonical root.
#[event]
pub struct Activated {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The index.
    pub index: u16,
    /// Round of the weights it showed.
    pub ready_round: u64,
    /// First round in which it is a member.
    pub active_round: u64,
}

impl Absorbed for Activated {
    const KIND: u8 = 40;
}

/// The seed of a round's audits is fixed.
#[event]
pub struct SeedFrozen {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round.
    pub round: u64,
    /// Slot asked for.
    pub seed_slot: u64,
    /// First slot at or after it.
    pub found_slot: u64,
    /// Its hash.
    pub slot_hash: [u8; 32],
    /// Sigma.
    pub seed: [u8; 32],
    /// Targets drawn from the payloads included at this moment.
    pub sampled: u64,
    /// Those of them without an audit, which are not paid: fewer than three others are eligible.
    pub unseated: u64,
    /// Their rewards that went back to the pool.
    pub reward_undone: u64,
    /// Price of the first refusal of openings by an established target of the round.
    pub price_base: u64,
    /// The same of a new one.
    pub price_new: u64,
}

impl Absorbed for SeedFrozen {
    const KIND: u8 = 41;
}

/// The seed slot was lost once: a later one is asked for.
#[event]
pub struct SeedRetargeted {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round.
    pub round: u64,
    /// The later slot.
    pub seed_slot: u64,
}

impl Absorbed for SeedRetargeted {
    const KIND: u8 = 42;
}

/// The seed slot was lost twice: the round has no audit.
#[event]
pub struct SeedLost {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round.
    pub round: u64,
}

impl Absorbed for SeedLost {
    const KIND: u8 = 43;
}

/// A member lacks an included payload.
#[event]
pub struct MissingReported {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round of the payload.
    pub round: u64,
    /// Index of the payload.
    pub target: u16,
    /// The member.
    pub index: u16,
}

impl Absorbed for MissingReported {
    const KIND: u8 = 44;
}

/// Half of the members lack an included payload: it is struck, and the open round closes void.
#[event]
pub struct PayloadStruck {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round of the payload.
    pub round: u64,
    /// Index of the payload.
    pub target: u16,
    /// The round that closes void.
    pub open_round: u64,
    /// Inclusion bitmap of the round from now on.
    pub included: u64,
    /// Lamports back in the pool.
    pub reward_undone: u64,
    /// A strike each, for vouching.
    pub vouchers: u64,
    /// Jailed from now on.
    pub jailed: u64,
}

impl Absorbed for PayloadStruck {
    const KIND: u8 = 45;
}
