//! A canonical root, stored by the program itself.

use anchor_lang::prelude::*;

/// The canonical root of a round.
#[account]
#[derive(InitSpace)]
pub struct Checkpoint {
    /// Layout version.
    pub version: u8,
    /// PDA bump.
    pub bump: u8,
    /// The run.
    pub run: Pubkey,
    /// Payer of the rent.
    pub payer: Pubkey,
    /// The round that trained on these weights.
    pub round: u64,
    /// Position in the data before that round.
    pub cursor: u64,
    /// Epoch of that round.
    pub epoch: u64,
    /// State root of the weights.
    pub root: [u8; 32],
    /// Slot of the close.
    pub slot: u64,
}

impl Checkpoint {
    /// Bytes of the account.
    pub const SIZE: usize = 8 + Checkpoint::INIT_SPACE;
}
