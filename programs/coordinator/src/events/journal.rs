//! The events of one instruction, and how they are shown: one call of the program to itself.
//!
//! Owns the bytes of that call: Anchor's tag, then each event with its length before it. An RPC
//! node keeps the data of such calls whole, whatever else the transaction logs. Never absorbs an
//! event: `super::record` does. Next: `super`.
//!
//! The call passes the event authority alone. With any further account the runtime would compare
//! lamports that this instruction has moved by hand, and refuse. It is one call deeper than its
//! instruction, so a caller at the deepest level the runtime allows cannot use this program.

use anchor_lang::event::EVENT_IX_TAG_LE;
use anchor_lang::prelude::*;
use anchor_lang::solana_program::instruction::Instruction;
use anchor_lang::solana_program::log::sol_log_data;
use anchor_lang::solana_program::program::invoke_signed;

use crate::errors::{refuse, CoordinatorError};
use crate::EVENT_AUTHORITY_AND_BUMP;

/// Signs the call; only this program can sign for it.
pub const EVENT_AUTHORITY: Pubkey = EVENT_AUTHORITY_AND_BUMP.0;
/// The seed that Anchor gives it.
const SEED_EVENT_AUTHORITY: &[u8] = b"__event_authority";
/// Bytes of an event's length.
const LENGTH_BYTES: usize = 2;
/// Bytes reserved at the start. The heap is never freed, so the journal must not grow beyond.
const CAPACITY: usize = 4_096;

/// The events of an instruction in order of execution.
#[must_use]
pub struct Journal {
    bytes: Vec<u8>,
}

impl Default for Journal {
    #[inline(never)]
    fn default() -> Self {
        let mut bytes = Vec::with_capacity(CAPACITY);
        bytes.extend_from_slice(EVENT_IX_TAG_LE);
        Self { bytes }
    }
}

impl Journal {
    /// Writes an event and logs it. Returns its bytes without the discriminator.
    pub fn push<E: anchor_lang::Event>(&mut self, event: &E) -> Result<&[u8]> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; LENGTH_BYTES]);
        self.bytes.extend_from_slice(E::DISCRIMINATOR);
        event.serialize(&mut self.bytes)?;
        self.finish(start)
    }

    /// Writes the length of the event that starts at `start`. One copy for all kinds.
    #[inline(never)]
    fn finish(&mut self, start: usize) -> Result<&[u8]> {
        ensure!(
            self.bytes.len() <= CAPACITY,
            CoordinatorError::TooManyEvents
        );
        let written = self.bytes.get_mut(start..).unwrap_or_default();
        let (length, event) = written
            .split_first_chunk_mut::<LENGTH_BYTES>()
            .ok_or_else(|| refuse(CoordinatorError::InvariantViolated))?;
        let size = u16::try_from(event.len());
        *length = size
            .map_err(|_| refuse(CoordinatorError::TooManyEvents))?
            .to_le_bytes();
        // For people who read logs; a log may be cut, so no reader of ours does.
        sol_log_data(&[event]);
        Ok(event.get(8..).unwrap_or_default())
    }

    /// Shows the events, if there are any, in one call signed by the event authority.
    #[inline(never)]
    pub fn send(self, authority: &AccountInfo) -> Result<()> {
        if self.bytes.len() == EVENT_IX_TAG_LE.len() {
            return Ok(());
        }
        let call = Instruction {
            program_id: crate::ID,
            accounts: vec![AccountMeta::new_readonly(EVENT_AUTHORITY, true)],
            data: self.bytes,
        };
        let signer: &[&[u8]] = &[SEED_EVENT_AUTHORITY, &[EVENT_AUTHORITY_AND_BUMP.1]];
        invoke_signed(&call, std::slice::from_ref(authority), &[signer])?;
        Ok(())
    }
}

/// Runs a handler with a journal, and shows what it has recorded.
macro_rules! journalled {
    ($ctx:ident, $journal:ident => $handled:expr) => {{
        let authority = $ctx.accounts.event_authority.to_account_info();
        let mut events = $crate::events::Journal::default();
        let $journal = &mut events;
        $handled?;
        events.send(&authority)
    }};
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::RunClosed;

    #[test]
    fn a_journal_never_grows_beyond_what_it_reserved() {
        let event = RunClosed {
            run: Pubkey::new_from_array([1; 32]),
            sequence: 2,
            slot: 3,
            funder: Pubkey::new_from_array([4; 32]),
        };
        let mut journal = Journal::default();
        let room = journal.bytes.capacity();
        journal.push(&event).unwrap();
        let each = journal.bytes.len() - EVENT_IX_TAG_LE.len();
        let fit = (CAPACITY - EVENT_IX_TAG_LE.len()) / each;
        for _ in 1..fit {
            journal.push(&event).unwrap();
        }
        assert_eq!(
            journal.push(&event).unwrap_err(),
            refuse(CoordinatorError::TooManyEvents)
        );
        assert_eq!((room, fit), (CAPACITY, 45));
    }
}
