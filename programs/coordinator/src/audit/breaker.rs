//! The breaker (protocol §8): how many are accused or convicted in one epoch.
//!
//! Owns the counts of the epoch. Never delays a slash: the case does.

use crate::rules::bitmap::{bit, count};
use crate::state::Run;

/// The breaker holds only where at least so many were sampled, or are present.
const MIN_PEOPLE: u64 = 8;
/// It holds above this part of them, or from it where the cap allows no more.
const PART: u64 = 3;

/// Starts the counts anew in a new epoch.
pub fn turn_epoch(run: &mut Run) {
    if run.audit_epoch != run.epoch {
        run.audit_epoch = run.epoch;
        run.sampled = 0;
        run.accused = 0;
        run.convicted = [0; 4];
    }
}

/// These participants have an audit that the seed drew.
pub fn note_sampled(run: &mut Run, targets: u64) {
    turn_epoch(run);
    run.sampled |= targets;
}

/// An audit that the seed drew accuses `target`; it counts as sampled in the epoch of this too.
pub fn note_accused(run: &mut Run, target: u16) {
    let one = bit(usize::from(target));
    note_sampled(run, one);
    run.accused |= one;
}

/// Whether more than a third of at least eight sampled participants are accused.
#[must_use]
pub fn holds(run: &Run) -> bool {
    let sampled = count(run.sampled);
    let is_of_now = run.audit_epoch == run.epoch;
    is_of_now && sampled >= MIN_PEOPLE && count(run.accused).saturating_mul(PART) > sampled
}

/// Whether a third of at least eight stand `convicted` of one exact kind, `present` in the run or
/// gone since. It is the last conviction that the cap allows, and the council may look at it.
#[must_use]
pub fn holds_exact(convicted: u64, present: u64) -> bool {
    let people = count(present | convicted);
    people >= MIN_PEOPLE && count(convicted).saturating_mul(PART) >= people
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    #[test]
    fn the_breaker_needs_eight_sampled_and_more_than_a_third_accused() {
        let mut run = Box::new(Run::zeroed());
        note_sampled(&mut run, 0x7f);
        for target in 0..3 {
            note_accused(&mut run, target);
        }
        assert!(!holds(&run));
        note_sampled(&mut run, 0x1ff);
        assert!(!holds(&run));
        note_accused(&mut run, 2);
        assert!(!holds(&run));
        note_accused(&mut run, 3);
        assert!(holds(&run));
    }

    #[test]
    fn an_exact_kind_holds_from_a_third_of_eight_and_counts_those_who_left() {
        assert!(!holds_exact(0b111, 0x7f));
        assert!(!holds_exact(0b11, 0xff) && holds_exact(0b111, 0xff));
        assert!(!holds_exact(0b111, 0xfff) && holds_exact(0b1111, 0xfff));
        assert!(
            !holds_exact(0b11, 0xfc),
            "two of six present and two gone are a quarter"
        );
        assert!(holds_exact(0b111, 0xf8));
    }

    #[test]
    fn an_accusation_of_a_new_epoch_starts_new_counts() {
        let mut run = Box::new(Run::zeroed());
        note_sampled(&mut run, 0xff);
        run.accused = 0xff;
        run.convicted[0] = 2;
        assert!(holds(&run));
        run.epoch = 1;
        assert!(!holds(&run));
        note_accused(&mut run, 9);
        assert_eq!(
            (run.sampled, run.accused, run.convicted),
            (1 << 9, 1 << 9, [0; 4])
        );
    }
}
