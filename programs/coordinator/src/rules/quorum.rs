//! Outcomes of audits and cases (protocol §7, §8), and the decision of a jury.
//!
//! Owns their numbers, and what two thirds of a jury decide. Never counts lamports or looks at
//! evidence. Next: `panel` for what the seats decide, `slashing` for what outcomes cost.

use super::verdict::Verdict;
use crate::constants::FIRST_SEATS;

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
    /// The target did not serve all that must judge its work (P5).
    NoOpenings = 5,
}

/// The fault of a seat.
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
    /// P7: a sketch that the others contradict.
    OutvotedSketch = 5,
}

/// The decision of a jury; `None` is a juror that did not reveal.
///
/// `votes` has one entry per member, so that silence counts against every side. Two thirds, rounded
/// up, must agree: mismatch convicts, ok acquits. In a case of work, as many that say mismatch or
/// unavailable find a refusal of openings. Else serving a part of the jury would cost less than
/// serving nobody. In the exact cases mismatch stands for "the fault is there", ok for "it is not",
/// and nobody owes the evidence.
#[must_use]
pub fn case_outcome(votes: &[Option<Verdict>], is_work: bool) -> CaseOutcome {
    if votes.len() < FIRST_SEATS {
        return CaseOutcome::Excluded;
    }
    let needed = votes.len().saturating_mul(2).div_ceil(3);
    let saying = |verdict| votes.iter().filter(|v| **v == Some(verdict)).count();
    let mismatch = saying(Verdict::Mismatch);
    if mismatch >= needed {
        CaseOutcome::Convicted
    } else if saying(Verdict::Ok) >= needed {
        CaseOutcome::Acquitted
    } else if is_work && mismatch.saturating_add(saying(Verdict::Unavailable)) >= needed {
        CaseOutcome::NoOpenings
    } else {
        CaseOutcome::NotProven
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn serving_a_part_of_the_jury_is_a_refusal_in_a_case_of_work() {
        let votes = |mismatch: usize, unavailable: usize, is_work| {
            let mut votes = [Some(Verdict::Ok); 7];
            votes[..mismatch].fill(Some(Verdict::Mismatch));
            votes[mismatch..][..unavailable].fill(Some(Verdict::Unavailable));
            case_outcome(&votes, is_work)
        };
        for (mismatch, unavailable) in [(4, 1), (3, 2), (1, 4), (4, 3)] {
            assert_eq!(votes(mismatch, unavailable, true), CaseOutcome::NoOpenings);
            assert_eq!(votes(mismatch, unavailable, false), CaseOutcome::NotProven);
        }
        assert_eq!(votes(3, 1, true), CaseOutcome::NotProven);
        assert_eq!(votes(5, 2, true), CaseOutcome::Convicted);
    }
}
