//! The judges of an audit, or of a jury, with their sketches compared (protocol §7, §8).
//!
//! Owns the outcome of an audit, which sketches are outvoted, who is paid or at fault. Never counts
//! lamports or looks at evidence. Sets of judges are bitmaps of places: bit 0 is the first one.
//! Next: `slashing` for what the outcomes cost.

use super::quorum::{AuditOutcome, CaseOutcome, SeatFault};
use super::sketch::{differ, Report};
use super::verdict::Verdict;
use crate::constants::{FIRST_SEATS, NUM_SEATS, SECOND_SEATS};

/// Equal verdicts that decide an audit, where no other verdict has as many.
const QUORUM: u32 = 3;
/// The bit of each place.
const PLACES: [u8; NUM_SEATS] = [1, 2, 4, 8, 16, 32, 64];
/// The first three places.
const FIRST_PLACES: u8 = 0b111;

/// The reports of an audit in seat order, or those of a jury, with their sketches compared once.
#[derive(Clone, Copy, Debug)]
pub struct Panel<'a> {
    reports: &'a [Report<'a>],
    compared: u8,
    /// Of each place those whose sketch differs from its own.
    apart: [u8; NUM_SEATS],
    outvoted: u8,
}

impl<'a> Panel<'a> {
    /// Compares the sketches of the first seven `reports`, each pair once; no audit has more.
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

    /// How the audit stands; `None` unless the reports are the first three, the first five or all
    /// of the `num_available` (3 to 7) seats that the target has.
    ///
    /// Three seats, all ok with sketches that agree: cleared. Anything else extends to five seats.
    /// Then at least three equal verdicts decide, more than of any other and without those of
    /// outvoted sketches. Undecided, it extends once more. Where all have judged, mismatch and
    /// unavailable count together: serving a part of the seats brings the work before a jury.
    #[must_use]
    pub fn outcome(&self, num_available: usize) -> Option<AuditOutcome> {
        let num_reports = self.reports.len();
        let second = num_available.min(SECOND_SEATS);
        let is_known = (FIRST_SEATS..=NUM_SEATS).contains(&num_available)
            && [FIRST_SEATS, second, num_available].contains(&num_reports);
        if !is_known {
            return None;
        }
        Some(if num_reports == FIRST_SEATS && self.is_unanimous() {
            AuditOutcome::Cleared
        } else if num_reports < second {
            AuditOutcome::Extend
        } else if let Some(decided) = self.decided() {
            decided
        } else if num_reports < num_available {
            AuditOutcome::Extend
        } else {
            self.decided_together().unwrap_or(AuditOutcome::Unproven)
        })
    }

    /// The places whose sketch the others contradict. It agrees with no other while two others
    /// agree, or it differs from a group of agreeing ones that is more than half of all compared.
    /// `inconclusive` forms neither pair nor group.
    #[must_use]
    pub fn outvoted(&self) -> u8 {
        self.outvoted
    }

    /// The places of an audit that earn the witness fee.
    ///
    /// `ok` and `mismatch` with a sketch that agrees with more than half of the compared ones, its
    /// own included; `inconclusive` where more than half of all verdicts say so with agreeing
    /// sketches. A seat that said `unavailable` is paid once a jury says so too.
    #[must_use]
    pub fn paid_seats(&self) -> u8 {
        self.paid(|verdict| verdict != Verdict::Unavailable)
    }

    /// The places of a jury that earn the witness fee.
    ///
    /// Right is the verdict of the majority; where nothing is proven `ok` and `mismatch`, and in a
    /// case of work `inconclusive`. In a case of work the sketch must agree as that of a seat.
    #[must_use]
    pub fn paid_jurors(&self, outcome: CaseOutcome, is_work: bool) -> u8 {
        let is_right = |verdict| match outcome {
            CaseOutcome::Convicted => verdict == Verdict::Mismatch,
            CaseOutcome::Acquitted => verdict == Verdict::Ok,
            CaseOutcome::NoOpenings => {
                matches!(verdict, Verdict::Mismatch | Verdict::Unavailable)
            }
            CaseOutcome::NotProven => match verdict {
                Verdict::Ok | Verdict::Mismatch => true,
                Verdict::Inconclusive => is_work,
                Verdict::Unavailable => false,
            },
            CaseOutcome::Excluded => false,
        };
        if is_work {
            return self.paid(is_right);
        }
        let jurors = PLACES.iter().zip(self.reports);
        let right = jurors.filter(|(_, report)| report.verdict.is_some_and(is_right));
        right.fold(0, |all, (place, _)| all | place)
    }

    /// The places that earn among verdicts that `is_right` pays, by their sketches.
    fn paid(&self, is_right: impl Fn(Verdict) -> bool) -> u8 {
        let revealed = self.reports.iter().filter(|r| r.verdict.is_some());
        let revealed = u32::try_from(revealed.count()).unwrap_or(0);
        let unsure = self.saying(Verdict::Inconclusive);
        let seats = PLACES.iter().zip(self.reports);
        let is_paid = |place: &u8, verdict: Verdict| match verdict {
            Verdict::Unavailable => true,
            Verdict::Inconclusive => (self.agreeing(*place) & unsure).count_ones() > revealed >> 1,
            Verdict::Ok | Verdict::Mismatch => {
                let agreeing = self.agreeing(*place).count_ones();
                agreeing > self.compared.count_ones() >> 1
            }
        };
        let earning = seats.filter(|(place, report)| {
            let verdict = report.verdict.filter(|verdict| is_right(*verdict));
            verdict.is_some_and(|verdict| is_paid(place, verdict))
        });
        earning.fold(0, |paid, (place, _)| paid | place)
    }

    /// The fault of the seat at `place`; `case` is the outcome of the jury, if any.
    ///
    /// `unavailable` and `inconclusive` alone are never a fault. An outvoted sketch is named before
    /// a wrong verdict.
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
        if self.outvoted & bit != 0 {
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
        self.saying(Verdict::Ok) == FIRST_PLACES && self.agree(FIRST_PLACES)
    }

    /// The outcome that at least three seats want, and more than want any other.
    fn decided(&self) -> Option<AuditOutcome> {
        self.leading(&[
            (self.saying(Verdict::Ok), Some(AuditOutcome::Cleared)),
            (self.saying(Verdict::Mismatch), Some(AuditOutcome::Accused)),
            (
                self.saying(Verdict::Unavailable),
                Some(AuditOutcome::Unavailable),
            ),
            (self.saying(Verdict::Inconclusive), None),
        ])
    }

    /// The same with mismatch and unavailable as one side.
    fn decided_together(&self) -> Option<AuditOutcome> {
        let accusing = self.saying(Verdict::Mismatch) | self.saying(Verdict::Unavailable);
        self.leading(&[
            (self.saying(Verdict::Ok), None),
            (accusing, Some(AuditOutcome::Unavailable)),
            (self.saying(Verdict::Inconclusive), None),
        ])
    }

    fn leading(&self, sides: &[(u8, Option<AuditOutcome>)]) -> Option<AuditOutcome> {
        let count = |places: u8| (places & !self.outvoted).count_ones();
        let most = sides.iter().map(|(places, _)| count(*places)).max()?;
        let mut leading = sides.iter().filter(|(places, _)| count(*places) == most);
        let (_, outcome) = leading.next().filter(|_| most >= QUORUM)?;
        outcome.filter(|_| leading.next().is_none())
    }

    /// The places that say `verdict`.
    fn saying(&self, verdict: Verdict) -> u8 {
        let seats = PLACES.iter().zip(self.reports);
        let saying = seats.filter(|(_, report)| report.verdict == Some(verdict));
        saying.fold(0, |all, (place, _)| all | place)
    }

    /// The compared places whose sketch agrees with that of `place`, its own included.
    fn agreeing(&self, place: u8) -> u8 {
        let mut places = PLACES.iter().zip(&self.apart);
        let apart = places.find(|(other, _)| **other == place);
        apart
            .filter(|_| self.compared & place != 0)
            .map_or(0, |(_, apart)| self.compared & !apart)
    }

    /// Whether all of `group` revealed sketches that agree pairwise.
    fn agree(&self, group: u8) -> bool {
        let mut members = PLACES.iter().zip(&self.apart);
        group & !self.compared == 0
            && members.all(|(place, apart)| group & place == 0 || group & apart == 0)
    }

    fn find_outvoted(&self) -> u8 {
        let speaking = self.compared & !self.saying(Verdict::Inconclusive);
        let pairs = PLACES
            .map(|place| speaking & place != 0 && self.agreeing(place) & speaking & !place != 0);
        let has_pair = pairs.contains(&true);
        let half = self.compared.count_ones() >> 1;
        let is_majority =
            |group: &u8| group & !speaking == 0 && group.count_ones() > half && self.agree(*group);
        let alone = PLACES.iter().zip(self.reports).filter(|(place, report)| {
            has_pair && report.shown().is_some() && self.agreeing(**place) & !**place == 0
        });
        let alone = alone.fold(0, |all, (place, _)| all | place);
        let groups = (0..1_u8 << NUM_SEATS).filter(is_majority);
        groups.fold(alone, |all, group| {
            let seats = PLACES.iter().zip(&self.apart);
            let outvoted = seats.filter(|(_, apart)| **apart & group == group);
            outvoted.fold(all, |all, (place, _)| all | place)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sketch::Sketch;
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
        let reports = [said(Verdict::Ok, &TRUE); 8];
        for (given, available) in [(2, 5), (4, 5), (6, 7), (8, 8), (3, 2), (5, 4), (0, 3)] {
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
        assert_eq!(panel.outcome(7), Some(AuditOutcome::Extend));
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
    fn idle_seats_without_a_claim_are_found_out_by_two_that_work() {
        let ok = said(Verdict::Ok, &TRUE);
        let other = [301; 64];
        let zeros = [0; 64];
        let seats = [
            said(Verdict::Inconclusive, &LAZY),
            ok,
            said(Verdict::Inconclusive, &zeros),
            ok,
            said(Verdict::Inconclusive, &other),
        ];
        let panel = Panel::new(&seats, 100);
        assert_eq!(panel.outvoted(), 0b10101);
        assert_eq!(panel.fault(0, None), Some(SeatFault::OutvotedSketch));
        assert_eq!(panel.outcome(7), Some(AuditOutcome::Extend));
        assert_eq!(panel.paid_seats(), 0);
        let more = [seats[0], ok, seats[2], ok, seats[4], ok, ok];
        let panel = Panel::new(&more, 100);
        assert_eq!(panel.outcome(7), Some(AuditOutcome::Cleared));
        assert_eq!(panel.paid_seats(), 0b110_1010);
    }

    #[test]
    fn doubt_outvotes_nobody_and_is_paid_only_as_the_majority() {
        let (ok, unsure) = (said(Verdict::Ok, &LAZY), said(Verdict::Inconclusive, &TRUE));
        let panel_of = [unsure, unsure, ok, unsure, unsure];
        let panel = Panel::new(&panel_of, 100);
        let unproven = Some(AuditOutcome::Unproven);
        assert_eq!((panel.outvoted(), panel.outcome(5)), (0, unproven));
        assert_eq!(panel.paid_seats(), 0b11011);
        let two = [
            unsure,
            unsure,
            said(Verdict::Ok, &TRUE),
            said(Verdict::Ok, &TRUE),
        ];
        let panel = Panel::new(&two, 100);
        assert_eq!(panel.paid_seats(), 0b1100);
    }

    #[test]
    fn among_seven_the_leading_verdict_decides_and_a_tie_does_not() {
        let says = |verdicts: [Verdict; 7]| {
            let reports = verdicts.map(|verdict| said(verdict, &TRUE));
            Panel::new(&reports, 100).outcome(7)
        };
        use Verdict::{Inconclusive as I, Mismatch as M, Ok as O, Unavailable as U};
        assert_eq!(says([O, O, O, M, M, I, I]), Some(AuditOutcome::Cleared));
        assert_eq!(says([O, O, O, M, M, M, I]), Some(AuditOutcome::Unproven));
        assert_eq!(says([M, M, M, I, I, I, O]), Some(AuditOutcome::Unproven));
        assert_eq!(says([U, U, U, O, O, M, M]), Some(AuditOutcome::Unavailable));
        assert_eq!(says([I, I, I, I, O, O, O]), Some(AuditOutcome::Unproven));
        assert_eq!(says([M, M, M, U, U, U, O]), Some(AuditOutcome::Unavailable));
        assert_eq!(says([M, M, U, O, O, I, I]), Some(AuditOutcome::Unavailable));
        assert_eq!(says([M, M, U, O, O, O, I]), Some(AuditOutcome::Cleared));
        assert_eq!(says([M, U, O, O, I, I, I]), Some(AuditOutcome::Unproven));
    }
}
