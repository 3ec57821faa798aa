//! Takes the price of a fault from a participant, and places it.
//!
//! Owns what a slash does to a participant: lamports, strike, bar.
//! Never decides what a fault costs: `crate::rules::slashing` does. Small penalties (P5, P6, P7)
//! are split at once; those of cases wait in escrow. Next: `crate::round::penalties`.

use anchor_lang::prelude::*;

use super::probation::Ended;
use super::AuditContext;
use crate::constants::{AUDIT_REQUESTED, SEAT_FAULTY};
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Penalised};
use crate::math::{add, sub};
use crate::round::penalties::{jail, strike};
use crate::rules::bitmap::bit;
use crate::rules::outage::{hidden_verdict, Hidden};
use crate::rules::quorum::SeatFault;
use crate::rules::refusal::{Refusals, LAST_STEP};
use crate::rules::slashing::{fine, no_openings, seat, Fault, Prices, SlashIntent, Split, Taken};
use crate::state::{Entry, Participant, Round};

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
            let mut ended = Ended::default();
            ended.add(self.run, entry, bit(usize::from(index)))?;
            entry.bar(self.run.round);
            self.run
                .expect(self.run.expected().without(bit(usize::from(index))));
            ended.report(self.run, self.journal, &self.key, self.slot)?;
        }
        let is_jailed = intent.is_strike && strike(self.run, entry, self.run.round)?;
        entry.invariant()?;
        if is_jailed && index == self.audit.target {
            self.audit.jailed_until = entry.jailed_until_round;
        }
        Ok(taken)
    }

    /// The prices of this audit's penalties, with the reward that held at the open of its round.
    #[must_use]
    pub fn prices(&self) -> Prices {
        self.run.prices(self.audit.reward_price)
    }

    /// Slashes at once. The lamports are burned; a target that was wrongly accused gets a part.
    pub fn penalise(&mut self, index: u16, intent: &SlashIntent) -> Result<()> {
        let taken = self.slash(index, intent)?;
        let rewards = add(taken.claimable, taken.unvested)?;
        let total = add(add(taken.stake, taken.unbonding)?, rewards)?;
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
        let (index, ended) = (judge.index, self.audit.commit_end(place));
        self.penalise_judge(index, fault, ended)
    }

    /// Penalises a judge that failed, on a seat or in a jury, whose commits ended at `ended`.
    ///
    /// One outage is one fine for missing commits. A missing reveal always costs; reveals of rounds
    /// opened before the first was decided count as one for jail.
    pub fn penalise_judge(&mut self, index: u16, fault: SeatFault, ended: u64) -> Result<()> {
        let (newest, prices) = (self.run.newest_round(), self.prices());
        let entry = self.roster.entry_mut(index)?;
        let (mut counts, mut is_second) = (false, false);
        match fault {
            SeatFault::NoCommit => {
                counts = entry.miss(ended);
                if !counts {
                    return Ok(());
                }
            }
            SeatFault::NoReveal => {
                let hidden = hidden_verdict(self.audit.round, entry.reveal_fault_round);
                counts = hidden != Hidden::Again;
                is_second = hidden == Hidden::Second;
                if counts {
                    entry.reveal_fault_round = newest;
                }
            }
            SeatFault::WrongOk | SeatFault::FalseMismatch | SeatFault::OutvotedSketch => {}
        }
        let intent = seat(fault, is_second, &entry.funds()?, &prices);
        self.penalise(index, &intent)?;
        if counts {
            self.note_silence(index)?;
        }
        Ok(())
    }

    /// Counts a missed duty (P6) of participant `index`; the third one jails.
    fn note_silence(&mut self, index: u16) -> Result<()> {
        let entry = self.roster.entry_mut(index)?;
        entry.seat_faults = entry.seat_faults.saturating_add(1);
        if entry.seat_faults >= SEAT_FAULTS_TO_JAIL {
            entry.seat_faults = 0;
            jail(self.run, entry, self.run.round)?;
        }
        entry.invariant()
    }

    /// P5: the target showed no openings, as the program saw or a jury found. Returns the reward
    /// that went back to the pool.
    ///
    /// An audit that was only requested takes no more: anybody could ask for one of a target that
    /// it sees fall silent.
    pub fn penalise_no_openings(&mut self, ring: &mut Round) -> Result<u64> {
        let reward = self.take_back_reward(ring)?;
        if self.audit.has_flag(AUDIT_REQUESTED) {
            return Ok(reward);
        }
        let (index, newest) = (self.audit.target, self.run.newest_round());
        let entry = self.roster.entry_mut(index)?;
        let mut refusals = entry.refusals();
        let is_step = refusals.add(self.audit.round, newest, entry.included_total);
        entry.remember(&refusals);
        let price = self.audit.openings_price;
        let intent = no_openings(&entry.funds()?, price, refusals.doublings());
        self.penalise(index, &intent)?;
        let entry = self.roster.entry_mut(index)?;
        if is_step && refusals.step == LAST_STEP {
            jail(self.run, entry, self.run.round)?;
        }
        entry.invariant()?;
        if is_step {
            self.begin_probation()?;
        }
        Ok(reward)
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
            claimable: taken.claimable,
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

impl Entry {
    fn refusals(&self) -> Refusals {
        Refusals {
            step: self.openings_step,
            mark: self.openings_mark,
            decided_round: self.openings_fault_round,
        }
    }

    fn remember(&mut self, refusals: &Refusals) {
        self.openings_step = refusals.step;
        self.openings_mark = refusals.mark;
        self.openings_fault_round = refusals.decided_round;
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
