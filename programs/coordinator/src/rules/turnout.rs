//! Whether those who are there may go on in the name of a run.
//!
//! Owns the rule of half, and how many members are expected. Never counts anybody: `round` does.
//! Next: `root`, whose majorities are of the members of one round.
//!
//! All majorities are of a round's members. Without this rule a few that stay while the others are
//! cut off would be a majority of themselves.

/// Whether so many are at least half of those that are expected.
#[must_use]
pub fn is_half(there: u64, expected: u64) -> bool {
    there.saturating_mul(2) >= expected
}

/// Members that are expected once a round has opened with `members`: the most of an epoch so far.
#[must_use]
pub fn expected(before: u64, members: u64, starts_epoch: bool) -> u64 {
    if starts_epoch {
        members
    } else {
        before.max(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_is_enough_and_less_is_not() {
        let of_seven = [3, 4].map(|there| is_half(there, 7));
        let of_eight = [3, 4].map(|there| is_half(there, 8));
        assert_eq!((of_seven, of_eight), ([false, true], [false, true]));
        assert!(is_half(0, 0) && is_half(u64::MAX, u64::MAX));
    }

    #[test]
    fn an_epoch_remembers_its_fullest_round() {
        assert_eq!(expected(9, 12, false), 12);
        assert_eq!(expected(9, 5, false), 9);
        assert_eq!(expected(9, 5, true), 5);
    }
}
