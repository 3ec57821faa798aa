//! Ends an audit: outcome, consequences for the target, fees and penalties of the seats.
//!
//! Owns the consequences. Never counts verdicts: `crate::rules::panel` does.
//! Next: `penalties`; `crate::case` for what follows an accusation.

use anchor_lang::prelude::*;

use super::fees::{Paid, Source};
use super::probation::Test;
use super::{breaker, AuditContext};
use crate::constants::*;
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, AuditSettled, PrepaidRefunded};
use crate::math::{add, sub};
use crate::pda;
use crate::round::penalties::strike;
use crate::rules::bitmap::{bit, contains};
use crate::rules::quorum::{AuditOutcome, SeatFault};
use crate::rules::standing;
use crate::state::{Round, SeedStatus, Stage};

/// Number of the outcome of an audit that never took place.
pub const NOT_AUDITED: u8 = 6;

/// The decision of the seats, and its consequences for each of them.
pub struct Findings {
    /// Of the audit; none if it never took place.
    pub outcome: Option<AuditOutcome>,
    /// Places that earn a fee, as a bitmap.
    pub paid: u8,
    /// Faults by place.
    pub faults: [Option<SeatFault>; NUM_SEATS],
}

/// Losses of the target that are no penalty.
#[derive(Default)]
pub struct Undone {
    /// Reward that went back to the pool.
    pub reward: u64,
    /// Whether it was the third unproven audit in a hundred rounds.
    pub is_strike: bool,
}

impl AuditContext<'_, '_> {
    /// How the audit ends now, or why it does not end yet. `round` is the ring account at the
    /// position of the audit's round, whatever round it holds.
    pub fn find(&self, round: &Round) -> Result<Findings> {
        let audit = &*self.audit;
        let factor = self.run.params.sketch_factor;
        let nothing = |outcome| Findings {
            outcome,
            paid: 0,
            faults: [None; NUM_SEATS],
        };
        let is_held = round.round == audit.round;
        let is_struck = is_held && contains(round.struck, usize::from(audit.target));
        match audit.stage()? {
            Stage::Requested => {
                self.require_forgone(round)?;
                Ok(nothing(None))
            }
            Stage::Openings | Stage::Commit | Stage::Reveal if is_struck => Ok(Findings {
                paid: audit.with_panel(factor, |panel, _| panel.paid_seats()),
                ..nothing(None)
            }),
            Stage::Openings => {
                let is_over = self.clock > audit.stage_end;
                ensure!(is_over, CoordinatorError::WindowOpen);
                Ok(nothing(Some(AuditOutcome::NoOpenings)))
            }
            _ => {
                audit.require_all_shown(self.clock)?;
                self.count_verdicts()
            }
        }
    }

    /// Refuses a requested audit that may still be opened.
    fn require_forgone(&self, round: &Round) -> Result<()> {
        let audit = &*self.audit;
        if round.round != audit.round {
            // The ring has moved on; the round cannot lie ahead, for it was open at the request.
            return Ok(());
        }
        let closed = round.has_flag(ROUND_CLOSED);
        ensure!(closed, CoordinatorError::WindowOpen);
        let is_lost = round.seed_status == SeedStatus::Lost as u8;
        if is_lost || !contains(round.included, usize::from(audit.target)) {
            return Ok(());
        }
        let is_frozen = round.seed_status == SeedStatus::Frozen as u8;
        ensure!(is_frozen, CoordinatorError::SeedNotFrozen);
        let ends = add(round.freeze_clock, self.run.params.openings_slots)?;
        ensure!(self.clock > ends, CoordinatorError::WindowOpen);
        Ok(())
    }

    fn count_verdicts(&self) -> Result<Findings> {
        let factor = self.run.params.sketch_factor;
        self.audit.with_panel(factor, |panel, available| {
            let outcome = panel.outcome(available);
            let Some(known) = outcome else {
                return Err(refuse(CoordinatorError::InvariantViolated));
            };
            let is_final = known != AuditOutcome::Extend;
            ensure!(is_final, CoordinatorError::ExtensionDue);
            let mut faults = [None; NUM_SEATS];
            for (place, fault) in faults.iter_mut().enumerate() {
                *fault = panel.fault(place, None);
            }
            Ok(Findings {
                outcome,
                paid: panel.paid_seats(),
                faults,
            })
        })
    }

    /// Ends the audit as found; `refund_prepaid` follows.
    #[inline(never)]
    pub fn settle(&mut self, round: &mut Round, found: &Findings) -> Result<()> {
        let jailed_before = self.jailed();
        let undone = self.settle_target(round, found.outcome)?;
        for (place, fault) in found.faults.iter().enumerate() {
            if let Some(fault) = fault {
                self.penalise_seat(place, *fault)?;
            }
        }
        if let Some(test) = Test::of_seats(found.outcome) {
            self.end_test(test)?;
        }
        let paid = self.pay_seats(found.paid)?;
        self.audit.outcome = found.outcome.map_or(NOT_AUDITED, |outcome| outcome as u8);
        self.leave_seats(found.outcome)?;
        let event = AuditSettled {
            run: self.key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            round: self.audit.round,
            target: self.audit.target,
            outcome: self.audit.outcome,
            stage_end: self.audit.stage_end,
            case_seed_slot: self.audit.case_seed_slot,
            fee: paid.fee,
            paid: paid.judges,
            vested: paid.vested,
            reward_undone: undone.reward,
            is_strike: undone.is_strike,
            jailed: self.jailed() & !jailed_before,
            status: self.roster.entry(self.audit.target)?.status,
        };
        record(self.run, self.journal, &event)
    }

    fn settle_target(
        &mut self,
        round: &mut Round,
        outcome: Option<AuditOutcome>,
    ) -> Result<Undone> {
        match outcome {
            Some(AuditOutcome::NoOpenings) => Ok(Undone {
                reward: self.penalise_no_openings(round)?,
                is_strike: false,
            }),
            Some(AuditOutcome::Unproven) => self.leave_unproven(round),
            Some(AuditOutcome::Accused) => {
                self.roster.entry_mut(self.audit.target)?.freeze()?;
                self.note_accused();
                Ok(Undone::default())
            }
            Some(AuditOutcome::Unavailable) => {
                self.audit.flags |= AUDIT_UNAVAILABLE;
                Ok(Undone::default())
            }
            _ => Ok(Undone::default()),
        }
    }

    /// Counts the target for the breaker if the seed drew the audit.
    pub fn note_accused(&mut self) {
        if !self.audit.has_flag(AUDIT_REQUESTED) {
            breaker::note_accused(self.run, self.audit.target);
        }
    }

    /// No reward for that round. From the second time within a hundred rounds the target is sampled
    /// as a new participant again; the third time is a strike.
    pub fn leave_unproven(&mut self, round: &mut Round) -> Result<Undone> {
        let reward = self.take_back_reward(round)?;
        let entry = self.roster.entry_mut(self.audit.target)?;
        let is_strike = standing::add_strike(&mut entry.unproven_rounds, self.audit.round);
        if is_strike {
            strike(self.run, entry, self.run.round)?;
        } else if standing::count_within(&entry.unproven_rounds, self.audit.round) > 1 {
            entry.included_since_strike = 0;
        }
        entry.invariant()?;
        Ok(Undone { reward, is_strike })
    }

    /// The reward of the judged payload goes back to the pool, once: its bucket holds rewards of
    /// other rounds too. Returns what was there.
    pub fn take_back_reward(&mut self, round: &mut Round) -> Result<u64> {
        let lamports = std::mem::take(&mut self.audit.reward_paid);
        let is_held = round.round == self.audit.round;
        if is_held && contains(round.struck | round.unpaid, usize::from(self.audit.target)) {
            return Ok(0);
        }
        round.mark_unpaid(self.audit.round, self.audit.target);
        let (number, window) = (self.audit.round, self.audit.reward_window);
        let entry = self.roster.entry_mut(self.audit.target)?;
        if self.audit.has_flag(AUDIT_WITHHELD) {
            return self.run.undo_withheld(entry, number, window, lamports);
        }
        self.run.undo_reward(entry, window, lamports)
    }

    /// Pays the places in `places`: from what was paid in advance, else from the pool.
    fn pay_seats(&mut self, places: u8) -> Result<Paid> {
        let mut judges = 0;
        for (place, seat) in self.audit.seats.iter_mut().enumerate() {
            if contains(u64::from(places), place) {
                seat.flags |= SEAT_PAID;
                judges |= bit(usize::from(seat.index));
            }
        }
        if !self.audit.has_flag(AUDIT_REQUESTED) {
            return self.pay_judges(judges, Source::Empty, true);
        }
        let paid = self.pay_judges(judges, Source::Bond(self.audit.prepaid), false)?;
        self.audit.prepaid = sub(self.audit.prepaid, paid.from_source)?;
        Ok(paid)
    }

    /// Starts what follows: the wait for the seed of the case, or for the end of the case window.
    fn leave_seats(&mut self, outcome: Option<AuditOutcome>) -> Result<()> {
        let audit = &mut *self.audit;
        let accusations = [AuditOutcome::Accused, AuditOutcome::Unavailable];
        if outcome.is_some_and(|outcome| accusations.contains(&outcome)) {
            audit.accuse(self.run.params.jury_seed_slot(self.slot)?);
            return Ok(());
        }
        let may_follow = matches!(
            outcome,
            Some(AuditOutcome::Cleared | AuditOutcome::Unproven)
        );
        audit.stage = Stage::Settled as u8;
        audit.stage_end = if may_follow {
            audit.case_end.max(self.clock)
        } else {
            self.clock
        };
        Ok(())
    }

    /// Returns the rest of the fees paid in advance to their payer, or to the pool where that
    /// account cannot hold them. The pool keeps them where no openings came: else asking for audits
    /// of those that fall silent would cost nothing.
    pub fn refund_prepaid(&mut self, vault: &AccountInfo, to: Option<&AccountInfo>) -> Result<()> {
        let lamports = std::mem::take(&mut self.audit.prepaid);
        if lamports == 0 {
            return Ok(());
        }
        self.run.release_bond(lamports)?;
        let unheard = [AuditOutcome::NoOpenings, AuditOutcome::Unavailable];
        let is_kept = unheard.map(|end| end as u8).contains(&self.audit.outcome);
        let is_back = !is_kept && self.pay_back(vault, to, lamports)?;
        let part = |goes_there: bool| if goes_there { lamports } else { 0 };
        let event = PrepaidRefunded {
            run: self.key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            round: self.audit.round,
            target: self.audit.target,
            challenger: self.audit.challenger,
            refunded: part(is_back),
            kept: part(is_kept),
            pool: part(!is_kept && !is_back),
        };
        self.run.place_pool(part(!is_back))?;
        record(self.run, self.journal, &event)
    }

    /// Pays fees in advance back. Returns whether the payer's account could hold them.
    fn pay_back(
        &self,
        vault: &AccountInfo,
        to: Option<&AccountInfo>,
        lamports: u64,
    ) -> Result<bool> {
        let to = to.ok_or_else(|| refuse(CoordinatorError::AccountMissing))?;
        let is_theirs = *to.key == self.audit.challenger;
        ensure!(is_theirs, CoordinatorError::WrongChallenger);
        pda::refund(vault, to, lamports)
    }
}

impl Round {
    /// Remembers that an audit took the reward of `target` back, if this is still that round.
    pub fn mark_unpaid(&mut self, number: u64, target: u16) {
        if self.round == number {
            self.unpaid |= bit(usize::from(target));
        }
    }
}
