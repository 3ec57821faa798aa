//! Events of participants and their money. Kinds 1 to 31 are shared with `run`.
//!
//! Owns the bytes: fields never change order. Next: `round`.

use anchor_lang::prelude::*;

use crate::events::Absorbed;

/// An owner deposited the stake and took an index.
#[event]
pub struct ParticipantJoined {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The owner.
    pub owner: Pubkey,
    /// Session key.
    pub session: Pubkey,
    /// The index.
    pub index: u16,
    /// 1 trainer, 2 witness.
    pub roles: u8,
    /// Stake deposited.
    pub stake: u64,
    /// Round of the run.
    pub round: u64,
    /// Where payloads are served.
    pub endpoint: String,
}

impl Absorbed for ParticipantJoined {
    const KIND: u8 = 6;
}

/// A participant added stake.
#[event]
pub struct StakeToppedUp {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The index.
    pub index: u16,
    /// Amount.
    pub lamports: u64,
    /// Stake afterwards.
    pub stake: u64,
}

impl Absorbed for StakeToppedUp {
    const KIND: u8 = 7;
}

/// A participant named a new session key.
#[event]
pub struct SessionKeySet {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The index.
    pub index: u16,
    /// The new key.
    pub session: Pubkey,
    /// Whether it waits for the next round open.
    pub at_next_open: bool,
}

impl Absorbed for SessionKeySet {
    const KIND: u8 = 8;
}

/// A participant serves what it holds at another address.
#[event]
pub struct EndpointSet {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The index.
    pub index: u16,
    /// Where payloads are served.
    pub endpoint: String,
}

impl Absorbed for EndpointSet {
    const KIND: u8 = 26;
}

/// A participant says where a checkpoint's files are: a hint, never authority.
#[event]
pub struct ManifestAnnounced {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The index.
    pub index: u16,
    /// The owner.
    pub owner: Pubkey,
    /// Round of the checkpoint.
    pub round: u64,
    /// Hash of the manifest.
    pub manifest_hash: [u8; 32],
    /// Where it is served.
    pub uri: String,
}

impl Absorbed for ManifestAnnounced {
    const KIND: u8 = 9;
}

/// A participant starts leaving: its stake unbonds.
#[event]
pub struct LeaveRequested {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The index.
    pub index: u16,
    /// Stake on its way out.
    pub stake: u64,
    /// First moment on the run clock in which it is paid.
    pub matures_clock: u64,
    /// Whether it serves the open round to its end.
    pub at_next_open: bool,
    /// Last moment on the run clock in which a jury may still need its vote.
    pub duty_until: u64,
}

impl Absorbed for LeaveRequested {
    const KIND: u8 = 16;
}

/// A participant is no longer a member.
#[event]
pub struct ParticipantLeft {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The index.
    pub index: u16,
    /// The owner.
    pub owner: Pubkey,
    /// Round of leaving.
    pub round: u64,
}

impl Absorbed for ParticipantLeft {
    const KIND: u8 = 17;
}

/// Stake above the minimum starts unbonding.
#[event]
pub struct StakeUnbonding {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The index.
    pub index: u16,
    /// Amount.
    pub lamports: u64,
    /// First moment on the run clock in which it is paid.
    pub matures_clock: u64,
}

impl Absorbed for StakeUnbonding {
    const KIND: u8 = 18;
}

/// Matured stake was paid to its owner.
#[event]
pub struct StakeWithdrawn {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The owner.
    pub owner: Pubkey,
    /// Amount.
    pub lamports: u64,
}

impl Absorbed for StakeWithdrawn {
    const KIND: u8 = 19;
}

/// Vested rewards were paid to their owner.
#[event]
pub struct RewardClaimed {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The owner.
    pub owner: Pubkey,
    /// Vested by this claim.
    pub vested: u64,
    /// Amount.
    pub lamports: u64,
}

impl Absorbed for RewardClaimed {
    const KIND: u8 = 20;
}

/// A record that must outlive a membership moved between the roster and the owner's account.
#[event]
pub struct RecordMoved {
    /// The run.
    pub run: Pubkey,
    /// Number of the event in the run.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// Owner whose record it is.
    pub owner: Pubkey,
    /// Index that it left, or that it is in force for now.
    pub index: u16,
    /// Whether its owner has joined again.
    pub is_in_force: bool,
    /// Offences: convictions for work that count.
    pub work_faults: u8,
    /// Strikes in all.
    pub strikes: u8,
    /// Times that openings were missing and are still remembered.
    pub openings_step: u8,
    /// First round after jail.
    pub jailed_until_round: u64,
}

impl Absorbed for RecordMoved {
    const KIND: u8 = 27;
}

/// Rewards left behind at a reused index went to their owner's account.
#[event]
pub struct RewardsMoved {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The former owner.
    pub owner: Pubkey,
    /// The index.
    pub index: u16,
    /// Amount.
    pub lamports: u64,
}

impl Absorbed for RewardsMoved {
    const KIND: u8 = 21;
}

/// A settled participant account was closed.
#[event]
pub struct ParticipantClosed {
    /// The run.
    pub run: Pubkey,
    /// Number of the absorbed event.
    pub sequence: u64,
    /// Slot.
    pub slot: u64,
    /// The owner.
    pub owner: Pubkey,
    /// Receiver of the rent.
    pub payer: Pubkey,
}

impl Absorbed for ParticipantClosed {
    const KIND: u8 = 22;
}
