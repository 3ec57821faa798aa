//! All participants of a run in one account, one entry per index.
//!
//! Owns lookups by index. Never changes an entry by itself. Next: `entry`.

use anchor_lang::prelude::*;

use crate::constants::*;
use crate::errors::{refuse, CoordinatorError};
use crate::state::entry::Entry;
use crate::state::params::Params;

/// Every participant of a run, by index.
#[account(zero_copy)]
pub struct Roster {
    /// Layout version.
    pub version: u8,
    /// PDA bump.
    pub bump: u8,
    /// Zero.
    pub pad: [u8; 6],
    /// The run.
    pub run: Pubkey,
    /// Payer of the rent.
    pub payer: Pubkey,
    /// The participants.
    pub entries: [Entry; MAX_PARTICIPANTS],
}

impl Roster {
    /// Bytes of the account.
    pub const SIZE: usize = 8 + std::mem::size_of::<Roster>();

    /// The entry at `index`, or `IndexOutOfRange`.
    pub fn entry(&self, index: u16) -> Result<&Entry> {
        self.entries
            .get(usize::from(index))
            .ok_or_else(|| refuse(CoordinatorError::IndexOutOfRange))
    }

    /// The entry at `index`, or `IndexOutOfRange`.
    pub fn entry_mut(&mut self, index: u16) -> Result<&mut Entry> {
        self.entries
            .get_mut(usize::from(index))
            .ok_or_else(|| refuse(CoordinatorError::IndexOutOfRange))
    }

    /// The entry at `index` whose session key is `session`, or `WrongSessionKey`.
    pub fn signed_entry(&self, index: u16, session: &Pubkey) -> Result<&Entry> {
        let entry = self.entry(index)?;
        ensure!(
            entry.session == *session && entry.owner != Pubkey::default(),
            CoordinatorError::WrongSessionKey
        );
        Ok(entry)
    }

    /// The entry at `index` acts, signed by its session key, at `clock`; or `WrongSessionKey`.
    pub fn act(&mut self, index: u16, session: &Pubkey, clock: u64, params: &Params) -> Result<()> {
        self.signed_entry(index, session)?;
        self.entry_mut(index)?.act(clock, params);
        Ok(())
    }

    /// Every entry of `owner`: one who has left and joined again has two for a while.
    pub fn entries_of(&self, owner: Pubkey) -> impl Iterator<Item = &Entry> {
        let entries = self.entries.iter();
        entries.filter(move |entry| entry.owner == owner)
    }

    /// Refuses while an accusation, a case or an escrow is open against `owner`.
    pub fn require_unfrozen(&self, owner: Pubkey) -> Result<()> {
        let is_frozen = self.entries_of(owner).any(|entry| entry.frozen > 0);
        ensure!(!is_frozen, CoordinatorError::Frozen);
        Ok(())
    }
}
