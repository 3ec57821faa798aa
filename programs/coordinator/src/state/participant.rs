//! A participant's cold data, which no round reads.
//!
//! Owns unbonding tickets and announcements. Never holds stake: the roster entry does.
//! Next: `entry`.

use anchor_lang::prelude::*;

use crate::constants::*;
use crate::errors::{refuse, CoordinatorError};
use crate::math::{add, sub};
use crate::state::{Entry, Roster, Run};

/// Stake on its way out.
#[derive(
    AnchorSerialize, AnchorDeserialize, InitSpace, Clone, Copy, Debug, Default, PartialEq, Eq,
)]
pub struct Ticket {
    /// Amount; zero in a free place.
    pub lamports: u64,
    /// First slot in which it is paid.
    pub matures_slot: u64,
}

/// The past of a participant, which the run remembers after it has left.
#[derive(AnchorSerialize, AnchorDeserialize, InitSpace, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Convictions for work.
    pub work_faults: u8,
    /// Duties missed on a seat since the last jail for them.
    pub seat_faults: u8,
    /// Strikes in all.
    pub strikes: u8,
    /// Times that openings were missing and are still remembered.
    pub openings_step: u8,
    /// Rounds of the last strikes, or NONE.
    pub strike_rounds: [u64; 3],
    /// Rounds of the last audits that ended unproven, or NONE.
    pub unproven_rounds: [u64; 3],
    /// Round under way at the last conviction of each kind, or NONE.
    pub decided_round: [u64; 4],
    /// `included_total` when openings last were missing.
    pub openings_mark: u64,
    /// Included rounds.
    pub included_total: u64,
    /// Round under way when openings last were missing, or NONE.
    pub openings_fault_round: u64,
    /// Round under way when a missing reveal was fined last, or NONE.
    pub reveal_fault_round: u64,
    /// Round of the last inactivity, or NONE.
    pub inactive_round: u64,
    /// First round in which the participant may return.
    pub return_round: u64,
    /// First round after jail.
    pub jailed_until_round: u64,
}

impl Record {
    /// The record of somebody that nothing is known of.
    pub const CLEAN: Record = Record {
        work_faults: 0,
        seat_faults: 0,
        strikes: 0,
        openings_step: 0,
        strike_rounds: [NONE; 3],
        unproven_rounds: [NONE; 3],
        decided_round: [NONE; 4],
        openings_mark: 0,
        included_total: 0,
        openings_fault_round: NONE,
        reveal_fault_round: NONE,
        inactive_round: NONE,
        return_round: 0,
        jailed_until_round: 0,
    };
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

    /// Whether the account may be closed: nothing is owed and no index is held.
    pub fn is_closable(&self, roster: &Roster) -> Result<bool> {
        for entry in roster.entries_of(self.owner) {
            if !entry.is_spent()? {
                return Ok(false);
            }
        }
        Ok(self.claimable == 0 && self.num_tickets() == 0)
    }

    /// Whether every ticket was opened longer ago than the round under way then can be judged.
    #[must_use]
    pub fn is_past_cases(&self, run: &Run, slot: u64) -> bool {
        let params = &run.params;
        let moment = slot.saturating_sub(run.lengthened_by(slot));
        let mut tickets = self.tickets.iter().filter(|ticket| ticket.lamports > 0);
        tickets.all(|ticket| {
            let opened = ticket.matures_slot.saturating_sub(params.unbond_slots);
            opened.saturating_add(params.longest_path_slots()) < moment
        })
    }

    /// Tickets in use.
    #[must_use]
    pub fn num_tickets(&self) -> usize {
        self.tickets.iter().filter(|t| t.lamports > 0).count()
    }

    /// Opens a ticket; `max` places may be in use afterwards, else `TicketsFull`.
    pub fn open_ticket(&mut self, ticket: Ticket, max: usize) -> Result<()> {
        ensure!(self.num_tickets() < max, CoordinatorError::TicketsFull);
        let place = self
            .tickets
            .iter_mut()
            .find(|t| t.lamports == 0)
            .ok_or_else(|| refuse(CoordinatorError::TicketsFull))?;
        *place = ticket;
        Ok(())
    }

    /// Empties every ticket that has matured by `slot`. Returns the sum.
    pub fn take_matured(&mut self, slot: u64) -> Result<u64> {
        let mut sum = 0;
        for ticket in &mut self.tickets {
            if ticket.lamports > 0 && ticket.matures_slot <= slot {
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
            let Some(ticket) = used.min_by_key(|t| t.matures_slot) else {
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
