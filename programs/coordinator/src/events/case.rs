//! Events of cases, kinds 80 to 95.
//!
//! Owns the bytes: fields never change order. `round`, `target` and `audit_kind` say which case.
//! Next: `crate::case`, which records them.

use anchor_lang::prelude::*;

use crate::constants::{NUM_JURORS, SKETCH_LEN};
use crate::events::Absorbed;

/// Somebody posted a bond: a jury must judge.
#[event]
pub struct CaseOpened {
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
    /// See `AuditKind`.
    pub audit_kind: u8,
    /// Possession: index of the payload in question; else 65535.
    pub subject: u16,
    /// Challenger that posted the bond.
    pub challenger: Pubkey,
    /// Index of the challenger, or 65535.
    pub challenger_index: u16,
    /// Lamports posted.
    pub bond: u64,
    /// Slot whose hash draws the jury.
    pub case_seed_slot: u64,
}

impl Absorbed for CaseOpened {
    const KIND: u8 = 80;
}

/// The seed slot of a case was lost once: a later one is asked for.
#[event]
pub struct CaseSeedRetargeted {
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
    /// See `AuditKind`.
    pub audit_kind: u8,
    /// The later slot.
    pub case_seed_slot: u64,
}

impl Absorbed for CaseSeedRetargeted {
    const KIND: u8 = 81;
}

/// The seed slot of a case was lost twice: there is no jury, and the case is not proven.
#[event]
pub struct CaseSeedLost {
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
    /// See `AuditKind`.
    pub audit_kind: u8,
}

impl Absorbed for CaseSeedLost {
    const KIND: u8 = 82;
}

/// The jury is drawn.
#[event]
pub struct JuryDrawn {
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
    /// See `AuditKind`.
    pub audit_kind: u8,
    /// Slot asked for.
    pub case_seed_slot: u64,
    /// First slot at or after it.
    pub found_slot: u64,
    /// Its hash.
    pub slot_hash: [u8; 32],
    /// The seed.
    pub case_seed: [u8; 32],
    /// Witnesses that may sit.
    pub eligible: u64,
    /// Indices of the jurors in order, 65535 where there is none.
    pub jurors: [u16; NUM_JURORS],
    /// Last moment for the commits on the run clock.
    pub stage_end: u64,
}

impl Absorbed for JuryDrawn {
    const KIND: u8 = 83;
}

/// A juror committed to a hidden vote.
#[event]
pub struct JurorVoteCommitted {
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
    /// See `AuditKind`.
    pub audit_kind: u8,
    /// Index of the juror.
    pub index: u16,
    /// Hash of the vote.
    pub commitment: [u8; 32],
    /// See `Stage`: CaseReveal where this was the last commit.
    pub stage: u8,
    /// Last moment of that stage on the run clock.
    pub stage_end: u64,
}

impl Absorbed for JurorVoteCommitted {
    const KIND: u8 = 84;
}

/// A juror showed its vote.
#[event]
pub struct JurorVoteRevealed {
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
    /// See `AuditKind`.
    pub audit_kind: u8,
    /// Index of the juror.
    pub index: u16,
    /// 1 ok, 2 mismatch, 3 unavailable, 4 inconclusive.
    pub verdict: u8,
    /// Root of the openings that it judged, zeros without any.
    pub evidence: [u8; 32],
    /// The sketch of the juror's own gradient; zeros in the exact cases.
    pub sketch: [i32; SKETCH_LEN],
    /// Salt of the commitment.
    pub salt: [u8; 32],
}

impl Absorbed for JurorVoteRevealed {
    const KIND: u8 = 85;
}

/// A case ended. Penalties of judges are events of their own.
#[event]
pub struct CaseSettled {
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
    /// See `AuditKind`.
    pub audit_kind: u8,
    /// 1 convicted, 2 acquitted, 3 not proven, 4 excluded, 5 no openings.
    pub outcome: u8,
    /// `AUDIT_*` flags from now on.
    pub flags: u16,
    /// Number of the fault, or 0.
    pub fault: u8,
    /// Taken from the stake, in escrow.
    pub stake: u64,
    /// Taken from unbonding tickets, in escrow.
    pub unbonding: u64,
    /// Taken from unvested rewards, in escrow.
    pub unvested: u64,
    /// Lamports that were due but missing.
    pub shortfall: u64,
    /// Last moment for an appeal on the run clock.
    pub appeal_end: u64,
    /// Last moment of the escrow on the run clock.
    pub stage_end: u64,
    /// Lamports for each paid juror.
    pub fee: u64,
    /// Jurors that were paid.
    pub paid: u64,
    /// Seats that were paid: they said unavailable, and the jury found so too.
    pub seats_paid: u64,
    /// Lamports for each of them.
    pub seats_fee: u64,
    /// Lamports of older buckets that vested by it.
    pub vested: u64,
    /// Fees of the jurors that came out of the bond, by way of the pool.
    pub bond_spent: u64,
    /// Fees of the jurors that came out of what the conviction took.
    pub juror_fees: u64,
    /// Bond that went back to the challenger.
    pub bond_returned: u64,
    /// Bond that the target received (P9).
    pub bond_acquitted: u64,
    /// Bond for the incinerator (P9).
    pub bond_burned: u64,
    /// Bond for the pool: the challenger's account could not hold it.
    pub bond_pool: u64,
    /// Reward of the target that went back to the pool.
    pub reward_undone: u64,
    /// Whether this was the third unproven audit of the target in a hundred rounds.
    pub is_strike: bool,
    /// A strike each, for vouching.
    pub vouchers: u64,
    /// Jailed from now on, of these and the target.
    pub jailed: u64,
    /// Status of the target from now on.
    pub status: u8,
}

impl Absorbed for CaseSettled {
    const KIND: u8 = 86;
}

/// The convicted owner appealed.
#[event]
pub struct CaseAppealed {
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
    /// See `AuditKind`.
    pub audit_kind: u8,
    /// Last moment of the escrow on the run clock.
    pub stage_end: u64,
}

impl Absorbed for CaseAppealed {
    const KIND: u8 = 87;
}

/// The council reversed a conviction.
#[event]
pub struct CaseReversed {
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
    /// See `AuditKind`.
    pub audit_kind: u8,
}

impl Absorbed for CaseReversed {
    const KIND: u8 = 88;
}

/// An audit or case is over: what was in escrow is paid, and the account is closed.
#[event]
pub struct AuditClosed {
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
    /// See `AuditKind`.
    pub audit_kind: u8,
    /// Escrow that the target got back.
    pub returned: u64,
    /// Escrow for the challenger of a bonded case.
    pub challenger: u64,
    /// Escrow for the pool: the challenger's account could not hold it.
    pub pool: u64,
    /// Escrow for the incinerator.
    pub burned: u64,
    /// Fees of jurors that a reversal could not return: the pool was short.
    pub shortfall: u64,
    /// Status of the target from now on.
    pub status: u8,
    /// Receiver of the rent.
    pub payer: Pubkey,
}

impl Absorbed for AuditClosed {
    const KIND: u8 = 89;
}
