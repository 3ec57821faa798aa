//! Decisions of seats and juries (protocol §7, §8).
//!
//! Owns the outcome of an audit, which sketches are outvoted, which seats are paid or at fault, the
//! outcome of a jury. Never counts lamports or looks at evidence. Sets of seats are
//! bitmaps of places: bit 0 is the first seat. Next: `slashing` for what the outcomes cost.

use super::sketch::{differ, Sketch};
use super::verdict::Verdict;
use crate::constants::{FIRST_SEATS, NUM_SEATS};

/// Equal verdicts that decide an audit, and agreeing sketches that exclude another.
const QUORUM: usize = 3;
/// The bit of each place.
const PLACES: [u8; NUM_SEATS] = [1, 2, 4, 8, 16];
/// The first three places.
const FIRST_PLACES: u8 = 0b111;

/// How an audit stands after its reveals.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditOutcome {
    /// The work is there.
    Cleared = 1,
    /// More seats must judge.
    Extend = 2,
    /// A jury must decide.
    Accused = 3,
    /// The program saw no openings (P5).
    NoOpenings = 4,
    /// No majority: no reward, and no fault.
    Unproven = 5,
    /// Seats say that nothing was served: a jury judges the work, as after a mismatch.
    Unavailable = 7,
}

/// The decision of a jury.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseOutcome {
    /// The fault is there.
    Convicted = 1,
    /// The fault is not there.
    Acquitted = 2,
    /// Neither has two thirds.
    NotProven = 3,
    /// Too few jurors to decide anything.
    Excluded = 4,
    /// The target served nothing to judge its work by (P5).
    NoOpenings = 5,
}

/// What a seat did wrong.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeatFault {
    /// P6: no verdict.
    NoCommit = 1,
    /// P6: a hidden verdict that was never shown.
    NoReveal = 2,
    /// P7: ok before a conviction.
    WrongOk = 3,
    /// P7: mismatch before an acquittal.
    FalseMismatch = 4,
    /// P7: a sketch that three agreeing ones contradict.
    OutvotedSketch = 5,
}

/// What a seat delivered; verdict and sketch only once they are revealed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report<'a> {
    /// Whether it committed a verdict.
    pub has_committed: bool,
    /// The revealed verdict.
    pub verdict: Option<Verdict>,
    /// The revealed sketch; that of a seat that says `unavailable` is not compared.
    pub sketch: Option<&'a Sketch>,
}

impl Report<'_> {
    /// The sketch, if it takes part in comparisons.
    fn compared(&self) -> Option<&Sketch> {
        self.sketch
            .filter(|_| self.verdict != Some(Verdict::Unavailable))
    }
}

/// The reports of an audit in seat order, with their sketches compared once.
#[derive(Clone, Copy, Debug)]
pub struct Panel<'a> {
    reports: &'a [Report<'a>],
    compared: u8,
    /// Of each place those whose sketch differs from its own.
    apart: [u8; NUM_SEATS],
    outvoted: u8,
}

impl<'a> Panel<'a> {
    /// Compares the sketches of the first five `reports`, each pair once; no audit has more.
    /// `sketch_factor` is that of `sketch::differ`.
    #[must_use]
    pub fn new(reports: &'a [Report<'a>], sketch_factor: u32) -> Self {
        let mut panel = Self {
            reports,
            compared: 0,
            apart: [0; NUM_SEATS],
            outvoted: 0,
        };
        let mut rest = PLACES.iter().zip(reports);
        while let Some((place, report)) = rest.next() {
            let Some(own) = report.compared() else {
                continue;
            };
            panel.compared |= place;
            for (other, report) in rest.clone() {
                let theirs = report.compared();
                if theirs.is_some_and(|theirs| differ(own, theirs, sketch_factor)) {
                    panel.set_apart(*place, *other);
                }
            }
        }
        panel.outvoted = panel.find_outvoted();
        panel
    }

    fn set_apart(&mut self, first: u8, second: u8) {
        for (place, apart) in PLACES.iter().zip(&mut self.apart) {
            if *place == first {
                *apart |= second;
            } else if *place == second {
                *apart |= first;
            }
        }
    }

    /// How the audit stands; `None` unless the reports are the first three or all of the
    /// `num_available` (3 to 5) seats that the target has.
    ///
    /// Three seats, all ok with sketches that agree: cleared. Anything else extends once to the
    /// seats available. Then three equal verdicts decide, without those of outvoted sketches.
    #[must_use]
    pub fn outcome(&self, num_available: usize) -> Option<AuditOutcome> {
        let num_reports = self.reports.len();
        let is_known = (FIRST_SEATS..=NUM_SEATS).contains(&num_available)
            && (num_reports == FIRST_SEATS || num_reports == num_available);
        if !is_known {
            return None;
        }
        Some(if num_reports == FIRST_SEATS && self.is_unanimous() {
            AuditOutcome::Cleared
        } else if num_reports < num_available {
            AuditOutcome::Extend
        } else if self.has_quorum(Verdict::Ok) {
            AuditOutcome::Cleared
        } else if self.has_quorum(Verdict::Mismatch) {
            AuditOutcome::Accused
        } else if self.has_quorum(Verdict::Unavailable) {
            AuditOutcome::Unavailable
        } else {
            AuditOutcome::Unproven
        })
    }

    /// The places whose sketch differs from three others that agree pairwise.
    #[must_use]
    pub fn outvoted(&self) -> u8 {
        self.outvoted
    }

    /// The places that earn the witness fee.
    ///
    /// Those with a verdict and a sketch that agrees with more than half of the compared ones, its
    /// own included. A seat that said unavailable is paid once a jury says so too.
    #[must_use]
    pub fn paid_seats(&self) -> u8 {
        let seats = PLACES.iter().zip(&self.apart).zip(self.reports);
        seats.fold(0, |paid, ((place, apart), report)| {
            let agreeing = self.compared & !apart;
            let is_paid = if report.verdict == Some(Verdict::Unavailable) {
                false
            } else {
                self.compared & place != 0
                    && agreeing.count_ones() > self.compared.count_ones() >> 1
            };
            if is_paid {
                paid | place
            } else {
                paid
            }
        })
    }

    /// The fault of the seat at `place`; `case` is the outcome of the jury, if any.
    ///
    /// `unavailable` and `inconclusive` are never a fault. An outvoted sketch is named before a
    /// wrong verdict.
    #[must_use]
    pub fn fault(&self, place: usize, case: Option<CaseOutcome>) -> Option<SeatFault> {
        let (bit, report) = PLACES.get(place).zip(self.reports.get(place))?;
        let Some(verdict) = report.verdict else {
            return Some(if report.has_committed {
                SeatFault::NoReveal
            } else {
                SeatFault::NoCommit
            });
        };
        // A seat without a claim made no false one; such a sketch is only not paid.
        if self.outvoted & bit != 0 && verdict != Verdict::Inconclusive {
            return Some(SeatFault::OutvotedSketch);
        }
        match (verdict, case) {
            (Verdict::Ok, Some(CaseOutcome::Convicted)) => Some(SeatFault::WrongOk),
            (Verdict::Mismatch, Some(CaseOutcome::Acquitted)) => Some(SeatFault::FalseMismatch),
            _ => None,
        }
    }

    /// Whether the first three all say ok with sketches that agree.
    fn is_unanimous(&self) -> bool {
        let all_ok = self.reports.iter().all(|r| r.verdict == Some(Verdict::Ok));
        all_ok && self.agree(FIRST_PLACES)
    }

    /// Whether three seats that are not outvoted say `verdict`.
    fn has_quorum(&self, verdict: Verdict) -> bool {
        let seats = PLACES.iter().zip(self.reports);
        let saying = seats.filter(|(place, report)| {
            self.outvoted & **place == 0 && report.verdict == Some(verdict)
        });
        saying.count() >= QUORUM
    }

    /// Whether all of `group` revealed sketches that agree pairwise.
    fn agree(&self, group: u8) -> bool {
        let mut members = PLACES.iter().zip(&self.apart);
        group & !self.compared == 0
            && members.all(|(place, apart)| group & place == 0 || group & apart == 0)
    }

    fn find_outvoted(&self) -> u8 {
        let groups = (0..1_u8 << NUM_SEATS).filter(|g| g.count_ones() == 3 && self.agree(*g));
        groups.fold(0, |all, group| {
            let seats = PLACES.iter().zip(&self.apart);
            let outvoted = seats.filter(|(_, apart)| **apart & group == group);
            outvoted.fold(all, |all, (place, _)| all | place)
        })
    }
}

/// The decision of a jury; `None` is a juror that did not reveal.
///
/// `votes` has one entry per member, so that silence counts against every side: conviction needs
/// mismatch from two thirds, rounded up, acquittal ok from as many, and in a case of work a refusal
/// of openings unavailable. In the exact cases mismatch stands for "the fault is there", ok for "it
/// is not", and nobody owes the evidence.
#[must_use]
pub fn case_outcome(votes: &[Option<Verdict>], is_work: bool) -> CaseOutcome {
    if votes.len() < FIRST_SEATS {
        return CaseOutcome::Excluded;
    }
    let needed = votes.len().saturating_mul(2).div_ceil(3);
    let saying = |verdict| votes.iter().filter(|v| **v == Some(verdict)).count();
    if saying(Verdict::Mismatch) >= needed {
        CaseOutcome::Convicted
    } else if saying(Verdict::Ok) >= needed {
        CaseOutcome::Acquitted
    } else if is_work && saying(Verdict::Unavailable) >= needed {
        CaseOutcome::NoOpenings
    } else {
        CaseOutcome::NotProven
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUE: Sketch = [1_000; 64];
    const CLOSE: Sketch = [1_001; 64];
    const LAZY: Sketch = [-700; 64];

    fn said(verdict: Verdict, sketch: &Sketch) -> Report<'_> {
        Report {
            has_committed: true,
            verdict: Some(verdict),
            sketch: Some(sketch),
        }
    }

    #[test]
    fn three_that_agree_clear_and_anything_else_extends() {
        let mut reports = [said(Verdict::Ok, &TRUE); 3];
        assert_eq!(
            Panel::new(&reports, 100).outcome(5),
            Some(AuditOutcome::Cleared)
        );
        for odd in [
            Report::default(),
            said(Verdict::Inconclusive, &TRUE),
            said(Verdict::Ok, &LAZY),
        ] {
            reports[1] = odd;
            assert_eq!(
                Panel::new(&reports, 100).outcome(4),
                Some(AuditOutcome::Extend)
            );
        }
    }

    #[test]
    fn other_numbers_of_reports_are_refused() {
        let reports = [said(Verdict::Ok, &TRUE); 6];
        for (given, available) in [(2, 5), (4, 5), (6, 6), (3, 2), (5, 4), (0, 3)] {
            assert_eq!(Panel::new(&reports[..given], 100).outcome(available), None);
        }
    }

    #[test]
    fn a_lazy_seat_is_outvoted_unpaid_and_its_verdict_does_not_count() {
        let ok = said(Verdict::Ok, &TRUE);
        let reports = [
            ok,
            said(Verdict::Ok, &LAZY),
            said(Verdict::Ok, &CLOSE),
            said(Verdict::Mismatch, &TRUE),
            Report::default(),
        ];
        let panel = Panel::new(&reports, 100);
        assert_eq!(panel.outvoted(), 0b00010);
        assert_eq!(panel.outcome(5), Some(AuditOutcome::Unproven));
        assert_eq!(panel.paid_seats(), 0b01101);
        let convicted = Some(CaseOutcome::Convicted);
        let faults = [0, 1, 2, 3, 4, 5].map(|place| panel.fault(place, convicted));
        let wrong = Some(SeatFault::WrongOk);
        let lazy = Some(SeatFault::OutvotedSketch);
        assert_eq!(
            faults,
            [wrong, lazy, wrong, None, Some(SeatFault::NoCommit), None]
        );
    }

    #[test]
    fn who_makes_no_claim_is_not_fined_for_its_sketch() {
        let ok = said(Verdict::Ok, &TRUE);
        let unsure = said(Verdict::Inconclusive, &LAZY);
        let panel_of = [ok, unsure, ok, ok];
        let panel = Panel::new(&panel_of, 100);
        assert_eq!(panel.outvoted(), 0b0010);
        assert_eq!(panel.paid_seats(), 0b1101);
        assert_eq!(panel.fault(1, None), None);
    }

    #[test]
    fn two_thirds_of_all_members_decide_a_case() {
        let votes = |verdict, saying, all, is_work| {
            let mut votes = [None; 7];
            votes[..saying].fill(Some(verdict));
            case_outcome(&votes[..all], is_work)
        };
        for (verdict, is_work, outcome) in [
            (Verdict::Mismatch, false, CaseOutcome::Convicted),
            (Verdict::Ok, true, CaseOutcome::Acquitted),
            (Verdict::Unavailable, true, CaseOutcome::NoOpenings),
            (Verdict::Unavailable, false, CaseOutcome::NotProven),
            (Verdict::Inconclusive, true, CaseOutcome::NotProven),
        ] {
            for (all, needed) in [(3, 2), (4, 3), (5, 4), (6, 4), (7, 5)] {
                assert_eq!(votes(verdict, needed, all, is_work), outcome);
                let fewer = votes(verdict, needed - 1, all, is_work);
                assert_eq!(fewer, CaseOutcome::NotProven);
            }
            assert_eq!(votes(verdict, 2, 2, is_work), CaseOutcome::Excluded);
        }
    }
}
