//! Ends a case: outcome, fees of the jurors, penalties of the judges, the bond.
//!
//! Owns the fees and the end of the bond. Never counts votes: `crate::rules::quorum`
//! does. Next: `sentence` for what the outcome does to the target.

use anchor_lang::prelude::*;

use super::jury::JURY_COMMITS;
use super::sentence::Sentence;
use crate::audit::fees::{Paid, Source};
use crate::audit::probation::Test;
use crate::audit::AuditContext;
use crate::constants::*;
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, CaseSettled};
use crate::math::{add, sub};
use crate::pda;
use crate::rules::bitmap::{bit, contains};
use crate::rules::quorum::{CaseOutcome, SeatFault};
use crate::rules::slashing::{acquittal, failed_case};
use crate::rules::verdict::Verdict;
use crate::state::{Audit, Round, Stage};

/// Where lamports leave the run, and their receiver.
pub struct Payout<'a, 'info> {
    /// The vault of the run.
    pub vault: &'a AccountInfo<'info>,
    /// Challenger that posted the bond.
    pub challenger: Option<&'a AccountInfo<'info>>,
}

/// Where the rest of the bond went.
#[derive(Default)]
struct BondEnd {
    returned: u64,
    acquitted: u64,
    burned: u64,
    pool: u64,
}

impl AuditContext<'_, '_> {
    /// Ends the case as the jury decided. `round` is the ring account at the position of the
    /// case's round, whatever round it holds.
    #[inline(never)]
    pub fn settle_case(&mut self, round: &mut Round, payout: &Payout) -> Result<()> {
        let outcome = self.audit.decide(self.clock)?;
        let jailed_before = self.jailed();
        let sentence = self.sentence(outcome, round)?;
        let paid = self.pay_jurors(outcome)?;
        let seats = self.pay_unavailable(outcome)?;
        self.penalise_jurors()?;
        self.acquittal = acquittal(&self.prices());
        self.penalise_contradicted(outcome)?;
        self.end_test(Test::of_jury(outcome))?;
        let bond = self.end_bond(outcome, payout)?;
        self.audit.stage = Stage::Decided as u8;
        self.audit.case_outcome = outcome as u8;
        let jailed = self.jailed() & !jailed_before;
        self.report_settled(&sentence, [&paid, &seats], &bond, jailed)
    }

    /// Pays each juror that the outcome agrees with: after a conviction from what would burn of the
    /// slash, else from the bond; then from the pool. A further conviction takes so little that its
    /// challenger pays: friends could empty the pool with them.
    fn pay_jurors(&mut self, outcome: CaseOutcome) -> Result<Paid> {
        let factor = self.run.params.sketch_factor;
        let places = u64::from(self.audit.paid_jurors(outcome, factor));
        let mut judges = 0;
        for (place, juror) in self.audit.jurors.iter_mut().enumerate() {
            if contains(places, place) {
                juror.flags |= SEAT_PAID;
                judges |= bit(usize::from(juror.index));
            }
        }
        let is_further = self.audit.has_flag(AUDIT_FURTHER);
        let is_bonded = self.audit.has_flag(AUDIT_BONDED);
        if outcome == CaseOutcome::Convicted && !(is_further && is_bonded) {
            let source = Source::Escrow(self.audit.parts()?.burned);
            let paid = self.pay_judges(judges, source, true)?;
            self.audit.juror_fees = paid.from_source;
            return Ok(paid);
        }
        let paid = self.pay_judges(judges, Source::Bond(self.audit.bond), true)?;
        self.audit.bond = sub(self.audit.bond, paid.from_source)?;
        Ok(paid)
    }

    /// Pays the seats that said unavailable once a jury has said so too: from the pool.
    fn pay_unavailable(&mut self, outcome: CaseOutcome) -> Result<Paid> {
        let has_agreed =
            outcome == CaseOutcome::NoOpenings && self.audit.has_flag(AUDIT_UNAVAILABLE);
        let mut judges = 0;
        for seat in &mut self.audit.seats {
            if has_agreed && seat.verdict == Verdict::Unavailable.number() {
                seat.flags |= SEAT_PAID;
                judges |= bit(usize::from(seat.index));
            }
        }
        self.pay_judges(judges, Source::Empty, true)
    }

    /// P6: jurors that stayed silent.
    fn penalise_jurors(&mut self) -> Result<()> {
        for place in 0..usize::from(self.audit.num_jurors) {
            let Some(juror) = self.audit.jurors.get_mut(place) else {
                continue;
            };
            if juror.flags & SEAT_REVEALED != 0 {
                continue;
            }
            let fault = if juror.flags & SEAT_COMMITTED != 0 {
                SeatFault::NoReveal
            } else {
                SeatFault::NoCommit
            };
            juror.flags |= SEAT_FAULTY;
            let (index, ended) = (juror.index, self.audit.commit_ends[JURY_COMMITS]);
            self.penalise_judge(index, fault, ended)?;
        }
        Ok(())
    }

    /// P7: seats of the audit that the outcome contradicts.
    fn penalise_contradicted(&mut self, outcome: CaseOutcome) -> Result<()> {
        let (wrong, fault) = match outcome {
            CaseOutcome::Convicted => (Verdict::Ok, SeatFault::WrongOk),
            CaseOutcome::Acquitted => (Verdict::Mismatch, SeatFault::FalseMismatch),
            // The work was not seen: a verdict of ok is not shown to be false.
            CaseOutcome::NotProven | CaseOutcome::Excluded | CaseOutcome::NoOpenings => {
                return Ok(());
            }
        };
        for place in 0..usize::from(self.audit.num_seats) {
            let verdict = self.audit.seats.get(place).map_or(0, |seat| seat.verdict);
            if verdict == wrong.number() {
                self.penalise_seat(place, fault)?;
            }
        }
        Ok(())
    }

    /// Ends the rest of the bond: half to the acquitted and half burned (P9), or back.
    fn end_bond(&mut self, outcome: CaseOutcome, payout: &Payout) -> Result<BondEnd> {
        let bond = std::mem::take(&mut self.audit.bond);
        self.run.release_bond(bond)?;
        if outcome != CaseOutcome::Acquitted {
            let returned = self.pay_challenger(payout, bond)?;
            return Ok(BondEnd {
                returned,
                pool: sub(bond, returned)?,
                ..BondEnd::default()
            });
        }
        let parts = failed_case(bond);
        let target = self.roster.entry_mut(self.audit.target)?;
        self.run.place_claimable(target, parts.acquitted)?;
        self.burned = add(self.burned, parts.burned)?;
        Ok(BondEnd {
            acquitted: parts.acquitted,
            burned: parts.burned,
            ..BondEnd::default()
        })
    }

    /// Pays lamports that have left the totals to the challenger, or to the pool where that account
    /// cannot hold them. Returns what the challenger received.
    pub fn pay_challenger(&mut self, payout: &Payout, lamports: u64) -> Result<u64> {
        if lamports == 0 {
            return Ok(0);
        }
        let Some(to) = payout.challenger else {
            return Err(refuse(CoordinatorError::AccountMissing));
        };
        let is_theirs = *to.key == self.audit.challenger;
        ensure!(is_theirs, CoordinatorError::WrongChallenger);
        if pda::refund(payout.vault, to, lamports)? {
            return Ok(lamports);
        }
        self.run.place_pool(lamports)?;
        Ok(0)
    }

    fn report_settled(
        &mut self,
        sentence: &Sentence,
        [paid, seats]: [&Paid; 2],
        bond: &BondEnd,
        jailed: u64,
    ) -> Result<()> {
        let audit: &Audit = self.audit;
        let event = CaseSettled {
            run: self.key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            round: audit.round,
            target: audit.target,
            audit_kind: audit.kind,
            outcome: audit.case_outcome,
            flags: audit.flags,
            fault: sentence.fault,
            stake: audit.escrow_stake,
            unbonding: audit.escrow_unbonding,
            unvested: audit.escrow_unvested,
            shortfall: audit.shortfall,
            appeal_end: audit.appeal_end,
            stage_end: audit.stage_end,
            fee: paid.fee,
            paid: paid.judges,
            seats_paid: seats.judges,
            seats_fee: seats.fee,
            vested: add(paid.vested, seats.vested)?,
            bond_spent: sub(paid.from_source, audit.juror_fees)?,
            juror_fees: audit.juror_fees,
            bond_returned: bond.returned,
            bond_acquitted: bond.acquitted,
            bond_burned: bond.burned,
            bond_pool: bond.pool,
            reward_undone: sentence.reward_undone,
            is_strike: sentence.is_strike,
            vouchers: sentence.vouchers,
            jailed,
            status: self.roster.entry(audit.target)?.status,
        };
        record(self.run, self.journal, &event)
    }
}
