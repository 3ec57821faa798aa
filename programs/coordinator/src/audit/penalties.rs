//! Takes the price of a fault from a participant, and places it.
//!
//! Owns what a slash does to a participant: lamports, strike, bar, inactivity below the minimum.
//! Never decides what a fault costs: `crate::rules::slashing` does. Small penalties (P5, P6, P7)
//! are split at once; those of cases wait in escrow. Next: `crate::round::penalties`.

use anchor_lang::prelude::*;

use super::AuditContext;
use crate::constants::{NONE, SEAT_FAULTY};
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Penalised};
use crate::math::{add, sub};
use crate::round::penalties::{jail, strike};
use crate::rules::quorum::SeatFault;
use crate::rules::slashing::{fine, no_openings, seat, Fault, SlashIntent, Split, Taken};
use crate::state::{Change, Entry, Participant, Round, Run};

/// Duties missed on seats (P6) that jail.
const SEAT_FAULTS_TO_JAIL: u8 = 3;
/// Bytes of a Participant account before its run, and before its owner.
const RUN_OFFSET: usize = 10;
const OWNER_OFFSET: usize = RUN_OFFSET + 32;

impl AuditContext<'_, '_> {
    /// Slashes participant `index` as `intent` says: lamports, strike, bar. The caller places the
    /// lamports.
    #[inline(never)]
    pub fn slash(&mut self, index: u16, intent: &SlashIntent) -> Result<Taken> {
        let entry = self.roster.entry_mut(index)?;
        let needs_tickets = intent.take(&entry.funds()?).unbonding > 0;
        let mut found = if needs_tickets || intent.is_barred {
            find(self.participants, &self.key, &entry.owner)?
        } else {
            None
        };
        let tickets = found.as_mut().map(|(_, participant)| &mut **participant);
        let taken = self.run.take(entry, tickets, intent)?;
        if let Some((account, mut participant)) = found {
            participant.barred |= intent.is_barred;
            participant.save(account)?;
        } else {
            ensure!(!intent.is_barred, CoordinatorError::ParticipantMissing);
        }
        if intent.is_barred {
            entry.bar(self.run.round);
        }
        if intent.is_strike {
            strike(self.run, entry, self.run.round)?;
        }
        require_minimum(self.run, entry);
        entry.invariant()?;
        Ok(taken)
    }

    /// Slashes at once. The lamports are burned; a target that was wrongly accused gets a part.
    pub fn penalise(&mut self, index: u16, intent: &SlashIntent) -> Result<()> {
        let taken = self.slash(index, intent)?;
        let total = add(add(taken.stake, taken.unbonding)?, taken.unvested)?;
        let most = if intent.pays_acquitted {
            self.acquittal
        } else {
            0
        };
        let parts = fine(total, most);
        self.acquittal = sub(self.acquittal, parts.acquitted)?;
        let target = self.roster.entry_mut(self.audit.target)?;
        self.run.place_claimable(target, parts.acquitted)?;
        self.burned = add(self.burned, parts.burned)?;
        self.report(index, intent.fault, &taken, &parts)
    }

    /// P6 or P7 of the seat at `place`, once.
    pub fn penalise_seat(&mut self, place: usize, fault: SeatFault) -> Result<()> {
        let Some(judge) = self.audit.seats.get_mut(place) else {
            return Err(refuse(CoordinatorError::NotSeated));
        };
        if judge.flags & SEAT_FAULTY != 0 {
            return Ok(());
        }
        judge.flags |= SEAT_FAULTY;
        let index = judge.index;
        let is_silent = matches!(fault, SeatFault::NoCommit | SeatFault::NoReveal);
        self.penalise_judge(index, fault)?;
        if is_silent {
            self.note_silence(index)?;
        }
        Ok(())
    }

    /// Penalises a judge that failed, on a seat or in a jury.
    pub fn penalise_judge(&mut self, index: u16, fault: SeatFault) -> Result<()> {
        let funds = self.roster.entry(index)?.funds()?;
        let intent = seat(fault, &funds, &self.run.prices());
        self.penalise(index, &intent)
    }

    /// Counts a missed duty (P6) of participant `index`; the third one jails.
    pub fn note_silence(&mut self, index: u16) -> Result<()> {
        let entry = self.roster.entry_mut(index)?;
        entry.seat_faults = entry.seat_faults.saturating_add(1);
        if entry.seat_faults >= SEAT_FAULTS_TO_JAIL {
            entry.seat_faults = 0;
            jail(self.run, entry, self.run.round)?;
        }
        entry.invariant()
    }

    /// P5: the target showed no openings; its reward is withheld too. A decision of the judges
    /// alone never counts as a repetition, nor makes the next one a repetition: nobody can check
    /// it.
    pub fn penalise_no_openings(&mut self, ring: &mut Round) -> Result<()> {
        let (index, round) = (self.audit.target, self.audit.round);
        ring.mark_unpaid(round, index);
        let is_by_judges = self.audit.openings_root != [0; 32];
        let prices = self.run.prices();
        let entry = self.roster.entry_mut(index)?;
        let (mut last, is_convicted) = (entry.openings_fault_round, entry.work_faults > 0);
        if is_by_judges {
            last = NONE;
        } else {
            entry.openings_fault_round = self.run.round;
        }
        let intent = no_openings(&entry.funds()?, &prices, round, last, is_convicted);
        if intent.fault == Fault::Work {
            entry.work_faults = entry.work_faults.saturating_add(1);
        }
        self.audit.reward_paid = 0;
        self.penalise(index, &intent)
    }

    fn report(&mut self, index: u16, fault: Fault, taken: &Taken, parts: &Split) -> Result<()> {
        let event = Penalised {
            run: self.key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            round: self.audit.round,
            target: self.audit.target,
            index,
            fault: fault as u8,
            stake: taken.stake,
            unbonding: taken.unbonding,
            unvested: taken.unvested,
            shortfall: taken.shortfall,
            acquitted: parts.acquitted,
            burned: parts.burned,
            status: self.roster.entry(index)?.status,
        };
        record(self.run, self.journal, &event)
    }
}

/// Makes a participant whose stake is below the minimum inactive at once, until it tops up.
fn require_minimum(run: &Run, entry: &mut Entry) {
    let is_short = entry.stake < run.params.min_stake_lamports;
    if is_short && entry.may(Change::Deactivate) && !entry.is_leaving() {
        entry.clear_ready();
        entry.change(Change::Deactivate);
    }
}

/// The Participant account of `owner` among those passed, read.
pub fn find<'a, 'info>(
    participants: &'a [AccountInfo<'info>],
    run: &Pubkey,
    owner: &Pubkey,
) -> Result<Option<(&'a AccountInfo<'info>, Box<Participant>)>> {
    for account in participants {
        let data = account.try_borrow_data()?;
        let is_theirs = data.get(RUN_OFFSET..OWNER_OFFSET) == Some(run.as_ref())
            && data.get(OWNER_OFFSET..OWNER_OFFSET + 32) == Some(owner.as_ref());
        drop(data);
        if is_theirs && account.owner == &crate::ID {
            return Ok(Some((account, Box::new(Participant::load(account, *run)?))));
        }
    }
    Ok(None)
}
