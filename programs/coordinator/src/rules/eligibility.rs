//! Witnesses that may be seated in a round (protocol §7), by the rounds that they served.
//!
//! Owns the service that earns a seat and the fill of small runs. Never looks at the status or at
//! the roles of a participant: the caller passes the witnesses that may judge at all.
//! Next: `sampling`, which draws among the eligible.

use super::bitmap::{bit, contains, count};
use super::MAX_PARTICIPANTS;

/// A run with fewer eligible witnesses than this takes in those that served most.
pub const FULL_BENCH: u64 = 5;

/// Whether a witness has earned a seat: after `seat_after` rounds served, or as many as there were
/// before it joined. Those that were there before the first round are eligible at once.
#[must_use]
pub fn has_earned_seat(rounds_served: u64, joined_round: u64, seat_after: u64) -> bool {
    rounds_served >= seat_after.min(joined_round)
}

/// The eligible witnesses of a round: those that `earned` a seat. Where they are fewer than five,
/// those of the `witnesses` that served most are added (equal ones by lower index).
#[must_use]
pub fn fill_bench(earned: u64, witnesses: u64, rounds_served: impl Fn(usize) -> u64) -> u64 {
    let mut bench = earned & witnesses;
    while count(bench) < FULL_BENCH {
        let waiting = (0..MAX_PARTICIPANTS).filter(|&i| contains(witnesses & !bench, i));
        let Some(next) = waiting.rev().max_by_key(|&index| rounds_served(index)) else {
            return bench;
        };
        bench |= bit(next);
    }
    bench
}

/// Whether three eligible witnesses other than `one`, the bitmap of one participant, could judge
/// its work.
#[must_use]
pub fn can_be_audited(eligible: u64, one: u64) -> bool {
    count(eligible & !one) >= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_is_owed_only_for_rounds_that_there_were() {
        assert!(has_earned_seat(0, 0, 20) && has_earned_seat(0, 9, 0));
        assert!(!has_earned_seat(6, 7, 20) && has_earned_seat(7, 7, 20));
        assert!(!has_earned_seat(19, 400, 20) && has_earned_seat(20, 400, 20));
    }

    #[test]
    fn a_short_bench_is_filled_by_service_then_by_index() {
        let served = |index: usize| [9, 4, 7, 7, 0, 7, 3, 1][index];
        assert_eq!(fill_bench(0b1, 0b1111_1111, served), 0b0010_1111);
        assert_eq!(fill_bench(0b11_1110, 0b1111_1111, served), 0b11_1110);
        assert_eq!(fill_bench(0b1, 0b111, served), 0b111);
        assert_eq!(fill_bench(0b1000, 0b111, served), 0b111);
    }

    #[test]
    fn nobody_counts_as_its_own_judge() {
        assert!(!can_be_audited(0b111, 0b10) && can_be_audited(0b111, 0b1000));
        assert!(can_be_audited(0b1111, 0b10) && !can_be_audited(0b11, 0b1000));
    }
}
