//! The phases of a run and of a round's seed, by the numbers that accounts hold.
//!
//! Owns the names of these numbers. Never moves a run to another phase: `crate::round` does.
//! Next: `status` for participants.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};

/// Phase of a run.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Fewer than the minimum of members are there.
    WaitingForMembers = 0,
    /// Members load the stored weights and send `post_ready`.
    Warmup = 1,
    /// Trainers commit payloads (or, root-only, their root votes).
    Commit = 2,
    /// Members attest what they hold.
    Attest = 3,
    /// The root-only step that ends a stretch of rounds.
    Cooldown = 4,
    /// Stopped by the authority.
    Paused = 5,
    /// Stopped by three void rounds in a row.
    Halted = 6,
    /// All rounds are done.
    Finished = 7,
}

impl Phase {
    /// Every phase in the order of its number.
    pub const ALL: [Phase; 8] = [
        Phase::WaitingForMembers,
        Phase::Warmup,
        Phase::Commit,
        Phase::Attest,
        Phase::Cooldown,
        Phase::Paused,
        Phase::Halted,
        Phase::Finished,
    ];

    /// The phase with this number, or `InvariantViolated`.
    pub fn from_number(number: u8) -> Result<Phase> {
        Phase::ALL
            .get(usize::from(number))
            .copied()
            .ok_or_else(|| refuse(CoordinatorError::InvariantViolated))
    }

    /// Whether the sets of an open round (or root-only step) are fixed in this phase.
    #[must_use]
    pub fn is_in_round(self) -> bool {
        matches!(self, Phase::Commit | Phase::Attest | Phase::Cooldown)
    }
}

/// State of a round's seed.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedStatus {
    /// The round is not closed, or void.
    None = 0,
    /// Waits for its slot hash.
    Pending = 1,
    /// Fixed.
    Frozen = 2,
    /// Waits for a second slot hash.
    Retargeted = 3,
    /// Never fixed: the round has no audit.
    Lost = 4,
}

impl SeedStatus {
    /// Every status in the order of its number.
    pub const ALL: [SeedStatus; 5] = [
        SeedStatus::None,
        SeedStatus::Pending,
        SeedStatus::Frozen,
        SeedStatus::Retargeted,
        SeedStatus::Lost,
    ];
}
