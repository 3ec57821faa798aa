//! Consequences of the outcome of a case, for the target and for those that vouched.
//!
//! Owns the slash into escrow, the cap of the epoch and the exclusion. Never decides what a
//! fault costs: `crate::rules::slashing` does. Next: `escrow`.

use anchor_lang::prelude::*;

use crate::audit::{breaker, AuditContext};
use crate::constants::{
    AUDIT_BONDED, AUDIT_BREAKER, AUDIT_FURTHER, AUDIT_UNAVAILABLE, MAX_PARTICIPANTS, NONE,
};
use crate::errors::{refuse, CoordinatorError};
use crate::math::{add, sub};
use crate::round::penalties::{jail, strike};
use crate::rules::bitmap::{bit, count, with_bits};
use crate::rules::quorum::CaseOutcome;
use crate::rules::slashing::{
    false_possession, false_root, malformed, vouched_for_malformed, work, Fault, SlashIntent,
};
use crate::state::{AuditKind, Phase, Round, Status};

/// At most this part of the present participants is convicted of one kind in an epoch.
const CONVICTED_PART: u64 = 3;

/// Consequences beside the lamports that the audit holds in escrow.
#[derive(Default)]
pub struct Sentence {
    /// Number of the fault, or 0.
    pub fault: u8,
    /// Reward of the target that went back to the pool.
    pub reward_undone: u64,
    /// Whether this was the third unproven audit of the target in a hundred rounds.
    pub is_strike: bool,
    /// A strike each, for vouching.
    pub vouchers: u64,
}

/// The fault that a conviction of `kind` names.
fn fault_of(kind: AuditKind) -> Fault {
    match kind {
        AuditKind::Work => Fault::Work,
        AuditKind::Payload => Fault::Malformed,
        AuditKind::Root => Fault::FalseRoot,
        AuditKind::Possession => Fault::FalsePossession,
    }
}

impl AuditContext<'_, '_> {
    /// Does what `outcome` means for the target.
    pub fn sentence(&mut self, outcome: CaseOutcome, round: &mut Round) -> Result<Sentence> {
        self.audit.stage_end = self.clock;
        self.audit.appeal_end = self.clock;
        if outcome == CaseOutcome::Convicted {
            return self.convict(round);
        }
        if !self.audit.has_flag(AUDIT_UNAVAILABLE) {
            self.unfreeze()?;
        }
        match outcome {
            CaseOutcome::Excluded => self.exclude(round),
            CaseOutcome::NoOpenings => self.fine(round),
            CaseOutcome::NotProven => self.doubt(round),
            CaseOutcome::Acquitted | CaseOutcome::Convicted => Ok(Sentence::default()),
        }
    }

    /// An accusation by seats that nobody could prove is an audit that ended unproven. A bond is
    /// no evidence: what a challenger could not prove changes nothing.
    fn doubt(&mut self, round: &mut Round) -> Result<Sentence> {
        if self.audit.has_flag(AUDIT_BONDED) {
            return Ok(Sentence::default());
        }
        let undone = self.leave_unproven(round)?;
        Ok(Sentence {
            reward_undone: undone.reward,
            is_strike: undone.is_strike,
            ..Sentence::default()
        })
    }

    /// Slashes into escrow. The target stays frozen until that is released.
    ///
    /// While an earlier conviction of the kind may still be reversed, this one waits: what it costs
    /// depends on that. A round opened before that one was decided costs its reward and no more.
    fn convict(&mut self, round: &mut Round) -> Result<Sentence> {
        let kind = AuditKind::from_number(self.audit.kind)?;
        let entry = self.roster.entry(self.audit.target)?;
        let is_pending = entry.pending_kinds & kind.bit() != 0;
        ensure!(!is_pending, CoordinatorError::ConvictionPending);
        let decided = entry.decided_round.get(kind.place()).copied();
        let decided = decided.unwrap_or(NONE);
        let is_further = entry.is_convicted(kind, self.audit.round);
        if self.audit.has_flag(AUDIT_UNAVAILABLE) {
            // Serving nothing counts only now that a jury has convicted. Its votes have frozen
            // the target already.
            self.note_accused();
        }
        let (fault, reward_undone) = if is_further {
            (fault_of(kind), self.hold_reward(kind, round)?)
        } else {
            self.count_conviction(kind)?;
            (self.slash_for(kind, decided)?, 0)
        };
        let audit = &mut *self.audit;
        let params = &self.run.params;
        audit.appeal_end = add(self.clock, params.appeal_slots)?;
        audit.stage_end = if audit.has_flag(AUDIT_BREAKER) {
            add(audit.appeal_end, params.breaker_slots)?
        } else {
            audit.appeal_end
        };
        self.run.place_escrow(audit.escrow()?)?;
        let vouchers = if kind == AuditKind::Payload {
            self.strike_vouchers()?
        } else {
            0
        };
        Ok(Sentence {
            fault: fault as u8,
            reward_undone,
            vouchers,
            ..Sentence::default()
        })
    }

    /// Takes what a conviction costs in full, and remembers when it was decided. `before` is the
    /// round in which the last one of the kind was.
    fn slash_for(&mut self, kind: AuditKind, before: u64) -> Result<Fault> {
        let intent = self.intent(kind)?;
        let target = self.audit.target;
        let withheld = self.take_withheld(kind)?;
        let taken = self.slash(target, &intent)?;
        let audit = &mut *self.audit;
        audit.escrow_stake = taken.stake;
        audit.escrow_unbonding = taken.unbonding;
        audit.escrow_unvested = add(taken.unvested, withheld)?;
        audit.shortfall = taken.shortfall;
        audit.decided_before = before;
        let entry = self.roster.entry_mut(target)?;
        entry.pending_kinds |= kind.bit();
        if let Some(decided) = entry.decided_round.get_mut(kind.place()) {
            *decided = self.run.newest_round();
        }
        if kind == AuditKind::Work {
            entry.work_faults = entry.work_faults.saturating_add(1);
        }
        Ok(intent.fault)
    }

    /// Rewards that wait for the end of a probation are unvested too. Returns what was there.
    fn take_withheld(&mut self, kind: AuditKind) -> Result<u64> {
        if kind != AuditKind::Work {
            return Ok(0);
        }
        let entry = self.roster.entry_mut(self.audit.target)?;
        let withheld = self.run.return_withheld(entry)?;
        self.run.reward_pool = sub(self.run.reward_pool, withheld)?;
        Ok(withheld)
    }

    /// A further conviction: the reward of that round waits in escrow. Returns it. A false
    /// possession is a strike all the same, or the third one would never jail.
    fn hold_reward(&mut self, kind: AuditKind, round: &mut Round) -> Result<u64> {
        self.audit.flags |= AUDIT_FURTHER;
        if kind == AuditKind::Possession {
            let entry = self.roster.entry_mut(self.audit.target)?;
            if strike(self.run, entry, self.run.round)? {
                self.audit.jailed_until = entry.jailed_until_round;
            }
            entry.invariant()?;
        }
        let reward = self.take_back_reward(round)?;
        self.run.reward_pool = sub(self.run.reward_pool, reward)?;
        self.audit.escrow_unvested = reward;
        Ok(reward)
    }

    /// The price of a conviction: of the first one, and of any later offence.
    fn intent(&self, kind: AuditKind) -> Result<SlashIntent> {
        let entry = self.roster.entry(self.audit.target)?;
        let funds = entry.funds()?;
        Ok(match kind {
            AuditKind::Work => work(&funds, entry.work_faults > 0),
            AuditKind::Payload => malformed(&funds),
            AuditKind::Root => false_root(&funds),
            AuditKind::Possession => false_possession(&funds),
        })
    }

    /// Counts a conviction of `kind`, or refuses it until the next epoch; a finished run has no
    /// cap. Each kind has its own, and counts participants.
    fn count_conviction(&mut self, kind: AuditKind) -> Result<()> {
        breaker::turn_epoch(self.run);
        let present = with_bits(&self.roster.entries)
            .filter(|(_, entry)| entry.is_present())
            .fold(0, |all, (one, _)| all | one);
        let cap = count(present).div_euclid(CONVICTED_PART).max(1);
        let has_no_cap = self.run.is(Phase::Finished);
        let is_barred = self.roster.entry(self.audit.target)?.is(Status::Barred);
        let one = bit(usize::from(self.audit.target));
        let Some(convicted) = self.run.convicted.get_mut(kind.place()) else {
            return Err(refuse(CoordinatorError::InvariantViolated));
        };
        // A barred participant has nothing left to lose: it uses up none.
        if !is_barred && *convicted & one == 0 {
            let may_count = has_no_cap || count(*convicted) < cap;
            ensure!(may_count, CoordinatorError::SlashCapReached);
            *convicted |= one;
        }
        let convicted = *convicted;
        let holds = if kind == AuditKind::Work {
            breaker::holds(self.run)
        } else {
            breaker::holds_exact(convicted, present)
        };
        if holds {
            self.audit.flags |= AUDIT_BREAKER;
        }
        Ok(())
    }

    /// P2: a strike for each voucher that still holds its index. Returns them.
    fn strike_vouchers(&mut self) -> Result<u64> {
        let mut struck = 0;
        for index in 0..u16::try_from(MAX_PARTICIPANTS).unwrap_or(0) {
            let one = bit(usize::from(index));
            let is_same = self.roster.entry(index)?.joined_round <= self.audit.round;
            if self.audit.vouchers & one != 0 && is_same {
                self.slash(index, &vouched_for_malformed())?;
                struck |= one;
            }
        }
        Ok(struck)
    }

    /// Without a jury: jail for one epoch and no reward for that round, but no slash.
    fn exclude(&mut self, round: &mut Round) -> Result<Sentence> {
        let reward_undone = self.take_back_reward(round)?;
        let entry = self.roster.entry_mut(self.audit.target)?;
        jail(self.run, entry, self.run.round)?;
        entry.invariant()?;
        Ok(Sentence {
            reward_undone,
            ..Sentence::default()
        })
    }

    /// P5: the target withheld its openings from the jury.
    fn fine(&mut self, round: &mut Round) -> Result<Sentence> {
        Ok(Sentence {
            fault: Fault::NoOpenings as u8,
            reward_undone: self.penalise_no_openings(round)?,
            ..Sentence::default()
        })
    }

    /// This case no longer freezes the target.
    pub fn unfreeze(&mut self) -> Result<()> {
        let entry = self.roster.entry_mut(self.audit.target)?;
        entry.frozen = entry.frozen.saturating_sub(1);
        entry.invariant()
    }

    /// The participants in jail now.
    pub fn jailed(&self) -> u64 {
        with_bits(&self.roster.entries)
            .filter(|(_, entry)| entry.is(Status::Jailed))
            .fold(0, |all, (one, _)| all | one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Journal;
    use crate::state::{Audit, Roster, Run};
    use bytemuck::Zeroable;

    /// A run with so many present participants, and an audit of the first one.
    struct Setup(Box<Run>, Box<Roster>, Box<Audit>, Journal);

    impl Setup {
        fn new(present: usize) -> Self {
            let mut roster = Box::new(Roster::zeroed());
            for entry in roster.entries.iter_mut().take(present) {
                entry.status = Status::Active as u8;
            }
            let mut run = Box::new(Run::zeroed());
            run.phase = Phase::Commit as u8;
            Self(run, roster, Box::new(Audit::zeroed()), Journal::default())
        }

        fn context(&mut self) -> AuditContext<'_, 'static> {
            AuditContext {
                key: Pubkey::default(),
                slot: 0,
                clock: 0,
                run: &mut self.0,
                roster: &mut self.1,
                audit: &mut self.2,
                participants: &[],
                burned: 0,
                journal: &mut self.3,
                acquittal: 0,
            }
        }
    }

    fn convictions_until_the_cap(present: usize, kind: AuditKind) -> u64 {
        let mut setup = Setup::new(present);
        let mut context = setup.context();
        while context.count_conviction(kind).is_ok() {
            context.audit.target = context.audit.target.saturating_add(1);
        }
        count(context.run.convicted[kind.place()])
    }

    #[test]
    fn a_third_of_the_present_is_convicted_in_an_epoch_and_at_least_one() {
        for kind in [AuditKind::Work, AuditKind::Root] {
            let most = |present| convictions_until_the_cap(present, kind);
            let caps = [1, 2, 3, 5, 6, 12, 64].map(most);
            assert_eq!(caps, [1, 1, 1, 1, 2, 4, 21]);
        }
    }

    #[test]
    fn a_new_epoch_starts_a_new_count_and_a_finished_run_has_no_cap() {
        let mut setup = Setup::new(3);
        let mut context = setup.context();
        context.run.convicted[0] = 0b100;
        assert!(context.count_conviction(AuditKind::Work).is_err());
        context.run.epoch = 1;
        assert!(context.count_conviction(AuditKind::Work).is_ok() && context.run.convicted[0] == 1);
        context.audit.target = 1;
        assert!(context.count_conviction(AuditKind::Work).is_err());
        context.roster.entries[1].status = Status::Barred as u8;
        assert!(context.count_conviction(AuditKind::Work).is_ok() && context.run.convicted[0] == 1);
        context.roster.entries[1].status = Status::Active as u8;
        assert!(context.count_conviction(AuditKind::Work).is_err());
        context.run.phase = Phase::Finished as u8;
        assert!(context.count_conviction(AuditKind::Work).is_ok());
    }

    #[test]
    fn who_was_convicted_in_this_epoch_is_not_counted_twice() {
        let mut setup = Setup::new(3);
        let mut context = setup.context();
        assert!(
            context.count_conviction(AuditKind::Work).is_ok()
                && context.count_conviction(AuditKind::Work).is_ok()
        );
        assert_eq!(context.run.convicted, [1, 0, 0, 0]);
    }

    #[test]
    fn each_kind_has_a_cap_and_a_breaker_of_its_own() {
        let mut setup = Setup::new(9);
        let mut context = setup.context();
        for kind in [AuditKind::Work, AuditKind::Payload, AuditKind::Root] {
            for target in 0..3 {
                context.audit.target = target;
                context.audit.flags = 0;
                context.count_conviction(kind).unwrap();
                let holds = context.audit.has_flag(AUDIT_BREAKER);
                assert_eq!(holds, target == 2 && kind != AuditKind::Work);
            }
            context.audit.target = 3;
            assert!(context.count_conviction(kind).is_err());
        }
        assert_eq!(context.run.convicted, [7, 7, 7, 0]);
    }
}
