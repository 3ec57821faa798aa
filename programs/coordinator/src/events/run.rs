//! Events of the run itself: creation, funding, pauses, parameters, the end. Kinds 1 to 31 are
//! shared with `participant`.
//!
//! Owns the bytes: fields never change order. Next: `participant`, `round`.

use anchor_lang::prelude::*;

use crate::events::Absorbed;
use crate::state::Params;

/// A run was created.
#[event]
pub struct RunCreated {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Identity chosen by the creator.
    pub run_id: [u8; 32],
    /// Authority and funder.
    pub authority: Pubkey,
    /// Council.
    pub council: Pubkey,
    /// Hash of the run config.
    pub config_hash: [u8; 32],
    /// Hash of the data manifest.
    pub manifest_hash: [u8; 32],
    /// State root of the initial weights.
    pub genesis_root: [u8; 32],
    /// Parameters in force.
    pub params: Params,
}

impl Absorbed for RunCreated {
    const KIND: u8 = 1;
}

/// The roster reached its full size.
#[event]
pub struct RosterInitialized {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The account.
    pub roster: Pubkey,
    /// Payer of its rent.
    pub payer: Pubkey,
}

impl Absorbed for RosterInitialized {
    const KIND: u8 = 2;
}

/// A position of the ring was created.
#[event]
pub struct RoundInitialized {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Position in the ring.
    pub position: u16,
    /// Payer of its rent.
    pub payer: Pubkey,
}

impl Absorbed for RoundInitialized {
    const KIND: u8 = 3;
}

/// The authority admitted an owner.
#[event]
pub struct ParticipantAdmitted {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The owner.
    pub owner: Pubkey,
}

impl Absorbed for ParticipantAdmitted {
    const KIND: u8 = 4;
}

/// The reward pool grew.
#[event]
pub struct RunFunded {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Payer.
    pub funder: Pubkey,
    /// Amount.
    pub lamports: u64,
    /// Pool afterwards.
    pub reward_pool: u64,
}

impl Absorbed for RunFunded {
    const KIND: u8 = 5;
}

/// The run pauses at the next close.
#[event]
pub struct PauseRequested {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
}

impl Absorbed for PauseRequested {
    const KIND: u8 = 10;
}

/// The requested pause will not happen.
#[event]
pub struct PauseCancelled {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
}

impl Absorbed for PauseCancelled {
    const KIND: u8 = 11;
}

/// The clock of the run stopped.
#[event]
pub struct RunPaused {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Phase that follows.
    pub resume_phase: u8,
}

impl Absorbed for RunPaused {
    const KIND: u8 = 12;
}

/// The clock of the run goes on; its deadlines moved.
#[event]
pub struct RunResumed {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Phase.
    pub phase: u8,
    /// Length of this pause.
    pub paused_slots: u64,
    /// Slots paused in all.
    pub pause_total_slots: u64,
}

impl Absorbed for RunResumed {
    const KIND: u8 = 13;
}

/// New parameters wait for an epoch boundary.
#[event]
pub struct ParamsRequested {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The new parameters.
    pub params: Params,
}

impl Absorbed for ParamsRequested {
    const KIND: u8 = 14;
}

/// The pending parameters are in force.
#[event]
pub struct ParamsApplied {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// First epoch with them.
    pub epoch: u64,
    /// The parameters.
    pub params: Params,
}

impl Absorbed for ParamsApplied {
    const KIND: u8 = 15;
}

/// A round or checkpoint account was closed.
#[event]
pub struct AccountClosed {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The account.
    pub account: Pubkey,
    /// Receiver of the rent.
    pub payer: Pubkey,
}

impl Absorbed for AccountClosed {
    const KIND: u8 = 23;
}

/// The lamports that are owed to nobody went to the funder.
#[event]
pub struct LeftoversPaid {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The funder.
    pub funder: Pubkey,
    /// Amount.
    pub lamports: u64,
}

impl Absorbed for LeftoversPaid {
    const KIND: u8 = 24;
}

/// Vault, roster and run were closed; the chain hash ends here.
#[event]
pub struct RunClosed {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Receiver of the rent.
    pub funder: Pubkey,
}

impl Absorbed for RunClosed {
    const KIND: u8 = 25;
}
