//! Events of audits, kinds 64 to 79.
//!
//! Owns the bytes: fields never change order. `round` and `target` say which audit.
//! Next: `crate::audit`, which records them.

use anchor_lang::prelude::*;

use crate::constants::{NUM_SEATS, SKETCH_LEN};
use crate::events::Absorbed;

/// Somebody paid for an audit of the open round in advance.
#[event]
pub struct AuditRequested {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round.
    pub round: u64,
    /// Index of the target.
    pub target: u16,
    /// Payer.
    pub challenger: Pubkey,
    /// Lamports paid.
    pub prepaid: u64,
}

impl Absorbed for AuditRequested {
    const KIND: u8 = 64;
}

/// A sampled or requested target must show its openings.
#[event]
pub struct AuditOpened {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round.
    pub round: u64,
    /// Index of the target.
    pub target: u16,
    /// Whether it was requested and not sampled: its fees are paid in advance.
    pub is_requested: bool,
    /// Indices of the seats in order, 65535 where there is none.
    pub seats: [u16; NUM_SEATS],
    /// Last moment for the openings on the run clock.
    pub stage_end: u64,
}

impl Absorbed for AuditOpened {
    const KIND: u8 = 65;
}

/// The target fixed what it shows.
#[event]
pub struct OpeningsPosted {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round.
    pub round: u64,
    /// Index of the target.
    pub target: u16,
    /// Root over the openings.
    pub root: [u8; 32],
    /// Last moment for verdict commits on the run clock.
    pub stage_end: u64,
}

impl Absorbed for OpeningsPosted {
    const KIND: u8 = 66;
}

/// A seat committed to a hidden verdict.
#[event]
pub struct VerdictCommitted {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round.
    pub round: u64,
    /// Index of the target.
    pub target: u16,
    /// Index of the witness.
    pub index: u16,
    /// Hash of the verdict.
    pub commitment: [u8; 32],
    /// See `Stage`: Reveal where this was the last commit.
    pub stage: u8,
    /// Last moment of that stage on the run clock.
    pub stage_end: u64,
}

impl Absorbed for VerdictCommitted {
    const KIND: u8 = 67;
}

/// A seat showed its verdict.
#[event]
pub struct VerdictRevealed {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round.
    pub round: u64,
    /// Index of the target.
    pub target: u16,
    /// Index of the witness.
    pub index: u16,
    /// 1 ok, 2 mismatch, 3 unavailable, 4 inconclusive.
    pub verdict: u8,
    /// Root of the openings that it judged, zeros without any.
    pub evidence: [u8; 32],
    /// Its sketch.
    pub sketch: [i32; SKETCH_LEN],
    /// Salt of the commitment.
    pub salt: [u8; 32],
}

impl Absorbed for VerdictRevealed {
    const KIND: u8 = 68;
}

/// The seats so far decide nothing: two more judge, where there are so many.
#[event]
pub struct AuditExtended {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round.
    pub round: u64,
    /// Index of the target.
    pub target: u16,
    /// Seats that judge now.
    pub num_seats: u8,
    /// Last moment for verdict commits on the run clock.
    pub stage_end: u64,
}

impl Absorbed for AuditExtended {
    const KIND: u8 = 69;
}

/// An audit ended.
#[event]
pub struct AuditSettled {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round.
    pub round: u64,
    /// Index of the target.
    pub target: u16,
    /// 1 cleared, 3 accused, 4 no openings, 5 unproven, 6 not audited, 7 unavailable to the seats.
    pub outcome: u8,
    /// Last moment before the account may be closed, or NONE when accused.
    pub stage_end: u64,
    /// Slot whose hash draws the jury when accused, or NONE.
    pub case_seed_slot: u64,
    /// Lamports for each paid seat.
    pub fee: u64,
    /// Witnesses that were paid.
    pub paid: u64,
    /// Lamports of older buckets that vested by it.
    pub vested: u64,
    /// Reward of the target that went back to the pool.
    pub reward_undone: u64,
    /// Whether the target took a strike.
    pub is_strike: bool,
    /// Jailed from now on, for a third strike or a third duty missed.
    pub jailed: u64,
    /// Status of the target from now on.
    pub status: u8,
}

impl Absorbed for AuditSettled {
    const KIND: u8 = 70;
}

/// The source could not pay the seats in full.
#[event]
pub struct FeesScaled {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round.
    pub round: u64,
    /// Index of the target.
    pub target: u16,
    /// Lamports owed to each.
    pub witness_fee: u64,
    /// Lamports paid to each.
    pub fee: u64,
}

impl Absorbed for FeesScaled {
    const KIND: u8 = 71;
}

/// A small penalty was taken and split at once.
#[event]
pub struct Penalised {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round.
    pub round: u64,
    /// Index of the target.
    pub target: u16,
    /// Index of the participant that pays.
    pub index: u16,
    /// Number of the fault: 5, 6 or 7.
    pub fault: u8,
    /// Taken from vested rewards.
    pub claimable: u64,
    /// Taken from the stake.
    pub stake: u64,
    /// Taken from unbonding tickets.
    pub unbonding: u64,
    /// Taken from unvested rewards.
    pub unvested: u64,
    /// Lamports that were due but missing.
    pub shortfall: u64,
    /// To the target, wrongly accused.
    pub acquitted: u64,
    /// To the incinerator.
    pub burned: u64,
    /// Status of that participant from now on.
    pub status: u8,
}

impl Absorbed for Penalised {
    const KIND: u8 = 72;
}

/// A probation began, went on, or ended; rewards that waited for it moved.
#[event]
pub struct ProbationChanged {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round of the audit.
    pub round: u64,
    /// Index of the participant.
    pub index: u16,
    /// Whether it is on probation from now on.
    pub is_on: bool,
    /// Lamports that waited and are earned now.
    pub credited: u64,
    /// Lamports that waited and are the pool's again.
    pub returned: u64,
    /// Lamports of older buckets that vested by it.
    pub vested: u64,
}

impl Absorbed for ProbationChanged {
    const KIND: u8 = 74;
}

/// Probations ended because the membership did, or the run.
#[event]
pub struct ProbationsEnded {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Participants, as a bitmap.
    pub ended: u64,
    /// Lamports that waited and are the pool's again.
    pub returned: u64,
}

impl Absorbed for ProbationsEnded {
    const KIND: u8 = 75;
}

/// The rest of fees paid in advance left the vault.
#[event]
pub struct PrepaidRefunded {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Round.
    pub round: u64,
    /// Index of the target.
    pub target: u16,
    /// Payer of the fees.
    pub challenger: Pubkey,
    /// Lamports that went back.
    pub refunded: u64,
    /// Lamports for the pool: no openings came.
    pub kept: u64,
    /// Lamports for the pool: that account could not hold them.
    pub pool: u64,
}

impl Absorbed for PrepaidRefunded {
    const KIND: u8 = 73;
}
