//! Appeal, reversal, and the end of every audit: the escrow is paid, the account is closed.
//!
//! Owns when the council may act and where the escrow goes. Never slashes.

use anchor_lang::prelude::*;

use super::settle::Payout;
use crate::audit::penalties::find;
use crate::audit::AuditContext;
use crate::constants::*;
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, AuditClosed};
use crate::math::{add, sub};
use crate::round::penalties::end_jail;
use crate::rules::quorum::CaseOutcome;
use crate::rules::standing::remove_strike;

use crate::state::{Audit, AuditKind, Change, Stage, Status};

/// Where the escrow went.
#[derive(Default)]
struct Released {
    returned: u64,
    challenger: u64,
    pool: u64,
    burned: u64,
    shortfall: u64,
}

impl Audit {
    /// Whether the target was convicted.
    #[must_use]
    pub fn is_conviction(&self) -> bool {
        self.is(Stage::Decided) && self.case_outcome == CaseOutcome::Convicted as u8
    }

    /// The convicted owner asks the council: the escrow waits as long again.
    pub fn appeal(&mut self, owner: &Pubkey, clock: u64, slots: u64) -> Result<()> {
        ensure!(self.is_conviction(), CoordinatorError::NotConvicted);
        ensure!(self.owner == *owner, CoordinatorError::WrongOwner);
        let is_first = !self.has_flag(AUDIT_APPEALED);
        ensure!(is_first, CoordinatorError::AlreadyAppealed);
        ensure!(clock <= self.appeal_end, CoordinatorError::WindowOver);
        self.flags |= AUDIT_APPEALED;
        self.stage_end = add(self.stage_end, slots)?;
        self.invariant()
    }

    /// The council reverses: what was taken goes back at the release, which need not wait.
    pub fn reverse(&mut self, clock: u64) -> Result<()> {
        ensure!(self.is_conviction(), CoordinatorError::NotConvicted);
        let is_first = !self.has_flag(AUDIT_REVERSED);
        ensure!(is_first, CoordinatorError::AlreadyReversed);
        let may_act = self.has_flag(AUDIT_APPEALED | AUDIT_BREAKER);
        ensure!(may_act, CoordinatorError::NotReversible);
        ensure!(clock > self.appeal_end, CoordinatorError::WindowOpen);
        ensure!(clock <= self.stage_end, CoordinatorError::WindowOver);
        self.flags |= AUDIT_REVERSED;
        self.stage_end = clock;
        self.invariant()
    }

    /// Refuses while anything may still happen to the audit.
    fn require_over(&self, clock: u64) -> Result<()> {
        let is_decided = self.is(Stage::Decided);
        let is_over = is_decided || self.is(Stage::Settled);
        ensure!(is_over, CoordinatorError::WrongStage);
        ensure!(clock > self.stage_end, CoordinatorError::WindowOpen);
        // Until then the same case could be opened anew.
        let is_past = !is_decided || clock > self.case_end;
        ensure!(is_past, CoordinatorError::WindowOpen);
        Ok(())
    }
}

impl AuditContext<'_, '_> {
    /// Pays the escrow and releases every index that the audit names; the instruction closes the
    /// account, whose rent goes to `payer`.
    #[inline(never)]
    pub fn release(&mut self, payout: &Payout, payer: Pubkey) -> Result<()> {
        self.audit.require_over(self.clock)?;
        let mut released = Released::default();
        if self.audit.is_conviction() {
            released = if self.audit.has_flag(AUDIT_REVERSED) {
                self.give_back()?
            } else {
                self.divide(payout)?
            };
            self.end_pending()?;
            self.unfreeze()?;
        }
        self.release_indices()?;
        self.run.num_audits = sub(self.run.num_audits, 1)?;
        let audit: &Audit = self.audit;
        let event = AuditClosed {
            run: self.key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            round: audit.round,
            target: audit.target,
            audit_kind: audit.kind,
            returned: released.returned,
            challenger: released.challenger,
            pool: released.pool,
            burned: released.burned,
            shortfall: released.shortfall,
            status: self.roster.entry(audit.target)?.status,
            payer,
        };
        record(self.run, self.journal, &event)
    }

    /// A conviction stands: the escrow pays the bounty, and what the jurors did not get is burned.
    fn divide(&mut self, payout: &Payout) -> Result<Released> {
        let (parts, fees) = (self.audit.parts()?, self.audit.juror_fees);
        self.empty_escrow()?;
        let challenger = self.pay_challenger(payout, parts.challenger)?;
        let burned = sub(parts.burned, fees)?;
        self.burned = add(self.burned, burned)?;
        Ok(Released {
            challenger,
            pool: sub(parts.challenger, challenger)?,
            burned,
            ..Released::default()
        })
    }

    /// A conviction was reversed: the target may claim everything, and what the jurors got of it
    /// comes from the pool, as far as that goes. A bar rests on two convictions for work, so it
    /// ends with one of them. The strike of a false possession goes, and so does the jail that it
    /// began. A further conviction took only a reward, and only that comes back.
    fn give_back(&mut self) -> Result<Released> {
        let fees = self.audit.juror_fees;
        let fees_back = fees.min(self.run.reward_pool);
        self.run.reward_pool = sub(self.run.reward_pool, fees_back)?;
        let returned = add(self.empty_escrow()?, fees_back)?;
        let is_full = !self.audit.has_flag(AUDIT_FURTHER);
        let is_work = is_full && self.audit.kind == AuditKind::Work as u8;
        let is_possession = self.audit.kind == AuditKind::Possession as u8;
        let entry = self.roster.entry_mut(self.audit.target)?;
        self.run.place_claimable(entry, returned)?;
        if is_work {
            entry.work_faults = entry.work_faults.saturating_sub(1);
        }
        if is_possession {
            entry.strikes = entry.strikes.saturating_sub(1);
            remove_strike(&mut entry.strike_rounds);
        }
        end_jail(entry, self.audit.jailed_until, self.run.round);
        if is_work && entry.work_faults < 2 && entry.is(Status::Barred) {
            let owner = entry.owner;
            entry.change(Change::LiftBar);
            let Some((account, mut participant)) = find(self.participants, &self.key, &owner)?
            else {
                return Err(refuse(CoordinatorError::ParticipantMissing));
            };
            participant.barred = false;
            participant.save(account)?;
        }
        Ok(Released {
            returned,
            shortfall: sub(fees, fees_back)?,
            ..Released::default()
        })
    }

    /// The conviction can no longer be reversed, or was. A further one of its kind need not wait.
    fn end_pending(&mut self) -> Result<()> {
        let kind = AuditKind::from_number(self.audit.kind)?;
        let entry = self.roster.entry_mut(self.audit.target)?;
        let Some(decided) = entry.decided_round.get_mut(kind.place()) else {
            return Err(refuse(CoordinatorError::InvariantViolated));
        };
        if self.audit.has_flag(AUDIT_FURTHER) {
            return Ok(());
        }
        if self.audit.has_flag(AUDIT_REVERSED) {
            *decided = self.audit.decided_before;
        }
        entry.pending_kinds &= !kind.bit();
        Ok(())
    }

    /// Lamports in escrow stop being so. Returns how many.
    fn empty_escrow(&mut self) -> Result<u64> {
        let audit = &mut *self.audit;
        let total = audit.escrow()?;
        audit.escrow_stake = 0;
        audit.escrow_unbonding = 0;
        audit.escrow_unvested = 0;
        audit.juror_fees = 0;
        self.run.release_escrow(total)?;
        Ok(total)
    }

    /// Releases every index that this audit names.
    fn release_indices(&mut self) -> Result<()> {
        let audit: &Audit = self.audit;
        let target = self.roster.entry_mut(audit.target)?;
        target.targets = target.targets.saturating_sub(1);
        let seats = audit.seats.iter().take(usize::from(audit.num_available));
        let seats = seats.map(|seat| seat.index);
        let jurors = audit.jury().iter().map(|juror| juror.index);
        let parties = [audit.target, audit.challenger_index];
        let named = parties.into_iter().filter(|&index| index != NO_INDEX);
        for index in named.chain(seats).chain(jurors) {
            let entry = self.roster.entry_mut(index)?;
            entry.audits = sub(entry.audits.into(), 1)?.try_into().unwrap_or(u16::MAX);
            entry.invariant()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    const OWNER: Pubkey = Pubkey::new_from_array([7; 32]);

    /// A conviction that may be appealed until 100; a new case could be opened until 40.
    fn convicted(flags: u16) -> Box<Audit> {
        let mut audit = Box::new(Audit::zeroed());
        audit.owner = OWNER;
        audit.stage = Stage::Decided as u8;
        audit.case_outcome = CaseOutcome::Convicted as u8;
        audit.flags = flags;
        audit.case_end = 40;
        audit.appeal_end = 100;
        audit.stage_end = if flags & AUDIT_BREAKER != 0 { 150 } else { 100 };
        audit
    }

    #[test]
    fn an_appeal_comes_in_time_once_and_from_the_owner() {
        let mut audit = convicted(0);
        assert!(audit.appeal(&Pubkey::default(), 100, 60).is_err());
        assert!(audit.appeal(&OWNER, 101, 60).is_err());
        audit.appeal(&OWNER, 100, 60).unwrap();
        assert_eq!((audit.appeal_end, audit.stage_end), (100, 160));
        assert!(audit.appeal(&OWNER, 100, 60).is_err());
    }

    #[test]
    fn the_council_acts_between_appeal_and_release_where_it_may_act_at_all() {
        assert!(convicted(0).reverse(101).is_err());
        for flags in [AUDIT_BREAKER, AUDIT_APPEALED | AUDIT_BREAKER] {
            assert!(convicted(flags).reverse(100).is_err());
            assert!(convicted(flags).reverse(151).is_err());
            let mut audit = convicted(flags);
            audit.reverse(101).unwrap();
            assert!(audit.reverse(101).is_err());
            assert!(audit.require_over(101).is_err() && audit.require_over(102).is_ok());
        }
    }

    #[test]
    fn an_acquittal_knows_neither_appeal_nor_reversal() {
        let mut audit = convicted(AUDIT_BREAKER);
        audit.case_outcome = CaseOutcome::Acquitted as u8;
        assert!(audit.appeal(&OWNER, 10, 60).is_err() && audit.reverse(101).is_err());
    }

    #[test]
    fn an_account_closes_only_when_nothing_may_follow() {
        let mut audit = convicted(0);
        assert!(audit.require_over(100).is_err() && audit.require_over(101).is_ok());
        audit.case_end = 200;
        assert!(audit.require_over(200).is_err() && audit.require_over(201).is_ok());
        audit.stage = Stage::Settled as u8;
        assert!(audit.require_over(101).is_ok());
        for stage in [
            Stage::Accused,
            Stage::CaseCommit,
            Stage::CaseReveal,
            Stage::Reveal,
        ] {
            audit.stage = stage as u8;
            assert!(audit.require_over(1_000).is_err());
        }
    }
}
