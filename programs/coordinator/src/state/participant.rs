//! A participant's cold data, which no round reads.
//!
//! Owns unbonding tickets and announcements. Never holds stake: the roster entry does.
//! Next: `entry`.

use anchor_lang::prelude::*;

use crate::constants::*;
use crate::errors::{refuse, CoordinatorError};
use crate::math::{add, sub};
use crate::state::{Entry, Params, Record, Roster, Run};

/// Stake on its way out.
#[derive(
    AnchorSerialize, AnchorDeserialize, InitSpace, Clone, Copy, Debug, Default, PartialEq, Eq,
)]
pub struct Ticket {
    /// Amount; zero in a free place.
    pub lamports: u64,
    /// First moment on the run clock in which it is paid.
    pub matures_clock: u64,
}

/// Owner and cold data of a participant.
#[account]
#[derive(InitSpace)]
pub struct Participant {
    /// Layout version.
    pub version: u8,
    /// PDA bump.
    pub bump: u8,
    /// The run.
    pub run: Pubkey,
    /// Owner key.
    pub owner: Pubkey,
    /// Payer of the rent.
    pub payer: Pubkey,
    /// Index in the roster, or 65535.
    pub index: u16,
    /// Whether the authority admitted the owner.
    pub admitted: bool,
    /// Whether the owner may never join again.
    pub barred: bool,
    /// Where the participant serves payloads.
    #[max_len(96)]
    pub endpoint: String,
    /// Stake on its way out.
    pub tickets: [Ticket; MAX_TICKETS],
    /// Rewards moved here when the index went to somebody else.
    pub claimable: u64,
    /// Stake paid out so far.
    pub withdrawn_total: u64,
    /// Rewards paid out so far.
    pub claimed_total: u64,
    /// Round of the newest manifest announcement, or NONE.
    pub manifest_round: u64,
    /// Hash of that manifest.
    pub manifest_hash: [u8; 32],
    /// Where that manifest is served.
    #[max_len(96)]
    pub manifest_uri: String,
    /// The past of its owner in earlier memberships.
    pub record: Record,
}

/// Refuses texts that are too long, or that a terminal would not print as they are.
pub fn check_text(text: &str) -> Result<()> {
    let printable = text.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(
        text.len() <= MAX_TEXT_BYTES && printable,
        CoordinatorError::InvalidText
    );
    Ok(())
}

impl Participant {
    /// Bytes of the account, with room for the longest texts.
    pub const SIZE: usize = 8 + Participant::INIT_SPACE;

    /// A participant that holds no index yet.
    #[must_use]
    pub fn new(run: Pubkey, owner: Pubkey, payer: Pubkey, bump: u8) -> Self {
        Self {
            version: VERSION,
            bump,
            run,
            owner,
            payer,
            index: NO_INDEX,
            admitted: false,
            barred: false,
            endpoint: String::new(),
            tickets: [Ticket::default(); MAX_TICKETS],
            claimable: 0,
            withdrawn_total: 0,
            claimed_total: 0,
            manifest_round: NONE,
            manifest_hash: [0; 32],
            manifest_uri: String::new(),
            record: Record::CLEAN,
        }
    }

    /// Reads an account that may be no participant of this run; a named error if so.
    pub fn load(account: &AccountInfo, run: Pubkey) -> Result<Self> {
        ensure!(*account.owner == crate::ID, CoordinatorError::WrongAddress);
        let participant = Self::try_deserialize(&mut &account.try_borrow_data()?[..])?;
        ensure!(participant.run == run, CoordinatorError::WrongRun);
        Ok(participant)
    }

    /// Writes the participant into its account.
    pub fn save(&self, account: &AccountInfo) -> Result<()> {
        self.invariant()?;
        let mut data = account.try_borrow_mut_data()?;
        let mut writer: &mut [u8] = &mut data;
        self.try_serialize(&mut writer)
    }

    /// The entry that this participant holds, or `NotJoined` when the index is another's now.
    pub fn entry_of<'a>(&self, roster: &'a Roster) -> Result<&'a Entry> {
        roster
            .entry(self.index)
            .ok()
            .filter(|entry| entry.owner == self.owner)
            .ok_or_else(|| refuse(CoordinatorError::NotJoined))
    }

    /// The entry that this participant holds, or none when the index is another's now.
    pub fn entry_mut_of<'a>(&self, roster: &'a mut Roster) -> Option<&'a mut Entry> {
        roster
            .entry_mut(self.index)
            .ok()
            .filter(|entry| entry.owner == self.owner)
    }

    /// Whether the account may be closed: nothing is owed, no index is held, no case can name it
    /// any more. Before the run has finished, its owner must have no record either.
    pub fn is_closable(&self, run: &Run, roster: &Roster, slot: u64) -> Result<bool> {
        let (is_finished, is_over) = (run.finished_slot != NONE, run.is_past_cases(slot));
        let mut is_remembered = self.barred || self.record.is_remembered(run.round);
        for entry in roster.entries_of(self.owner) {
            if !entry.is_spent()? || !(is_over || entry.is_past_duty(run, slot)) {
                return Ok(false);
            }
            is_remembered |= entry.record().is_remembered(run.round);
        }
        let is_paid = self.claimable == 0 && self.num_tickets() == 0;
        Ok(is_paid && (is_finished || !is_remembered))
    }

    /// Whether every ticket was opened longer ago than the round under way then can be judged.
    #[must_use]
    pub fn is_past_cases(&self, params: &Params, clock: u64) -> bool {
        let mut tickets = self.tickets.iter().filter(|ticket| ticket.lamports > 0);
        tickets.all(|ticket| {
            let opened = ticket.matures_clock.saturating_sub(params.unbond_slots);
            opened.saturating_add(params.longest_path_slots()) < clock
        })
    }

    /// Tickets in use.
    #[must_use]
    pub fn num_tickets(&self) -> usize {
        self.tickets.iter().filter(|t| t.lamports > 0).count()
    }

    /// Refuses with `TicketsFull` unless fewer than `max` tickets are in use.
    pub fn require_place(&self, max: usize) -> Result<()> {
        ensure!(self.num_tickets() < max, CoordinatorError::TicketsFull);
        Ok(())
    }

    /// Opens a ticket; `max` places may be in use afterwards, else `TicketsFull`.
    pub fn open_ticket(&mut self, ticket: Ticket, max: usize) -> Result<()> {
        self.require_place(max)?;
        let place = self
            .tickets
            .iter_mut()
            .find(|t| t.lamports == 0)
            .ok_or_else(|| refuse(CoordinatorError::TicketsFull))?;
        *place = ticket;
        Ok(())
    }

    /// Empties every ticket that has matured by `clock`. Returns the sum.
    pub fn take_matured(&mut self, clock: u64) -> Result<u64> {
        let mut sum = 0;
        for ticket in &mut self.tickets {
            if ticket.lamports > 0 && ticket.matures_clock <= clock {
                sum = add(sum, ticket.lamports)?;
                *ticket = Ticket::default();
            }
        }
        Ok(sum)
    }

    /// Lamports in all tickets.
    pub fn unbonding(&self) -> Result<u64> {
        self.tickets
            .iter()
            .try_fold(0, |sum, ticket| add(sum, ticket.lamports))
    }

    /// Takes `lamports` out of the tickets, from those that mature first; they hold as much.
    pub fn cut_tickets(&mut self, lamports: u64) -> Result<()> {
        let mut rest = lamports;
        while rest > 0 {
            let used = self.tickets.iter_mut().filter(|t| t.lamports > 0);
            let Some(ticket) = used.min_by_key(|t| t.matures_clock) else {
                return Err(refuse(CoordinatorError::InvariantViolated));
            };
            let part = rest.min(ticket.lamports);
            ticket.lamports = sub(ticket.lamports, part)?;
            rest = sub(rest, part)?;
        }
        Ok(())
    }

    /// Conditions that every mutation keeps.
    pub fn invariant(&self) -> Result<()> {
        let fits = |text: &str| text.len() <= MAX_TEXT_BYTES;
        let sound = fits(&self.endpoint)
            && fits(&self.manifest_uri)
            && (self.index == NO_INDEX || usize::from(self.index) < MAX_PARTICIPANTS);
        ensure!(sound, CoordinatorError::InvariantViolated);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ticket_is_kept_for_leaving() {
        let key = Pubkey::new_from_array([1; 32]);
        let mut participant = Participant::new(key, key, key, 255);
        let ticket = Ticket {
            lamports: 10,
            matures_clock: 5,
        };
        for _ in 0..MAX_PARTIAL_TICKETS {
            participant
                .open_ticket(ticket, MAX_PARTIAL_TICKETS)
                .unwrap();
        }
        assert!(participant
            .open_ticket(ticket, MAX_PARTIAL_TICKETS)
            .is_err());
        assert!(participant.require_place(MAX_TICKETS).is_ok());
        participant.open_ticket(ticket, MAX_TICKETS).unwrap();
        assert!(participant.require_place(MAX_TICKETS).is_err());
        participant.take_matured(5).unwrap();
        assert!(participant.require_place(MAX_TICKETS).is_ok());
    }
}
