//! Which members a run expects, and whether those who are there may go on in its name.
//!
//! Owns the rule of half, and the memory of two epochs. Never decides who is there: `round` does.
//! Next: `root`, whose majorities are of the members of one round.
//!
//! All majorities are of a round's members. Without this rule a few that stay while the others are
//! cut off would be a majority of themselves.

use super::bitmap::count;

/// The members that a run expects, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedMembers {
    /// How many owners were admitted before the first round, when nobody is a member yet.
    pub admitted: u64,
    /// All that were members in `epoch`, without those that have gone since.
    pub of_epoch: u64,
    /// Those of the epoch before.
    pub before: u64,
    /// The epoch of the last open.
    pub epoch: u64,
}

impl ExpectedMembers {
    /// After an open. At the first one of a run nobody is expected from before.
    #[must_use]
    pub fn opened(self, members: u64, epoch: u64, is_first: bool) -> Self {
        let (of_epoch, before) = if is_first {
            (0, 0)
        } else if epoch == self.epoch {
            (self.of_epoch, self.before)
        } else {
            (0, self.of_epoch)
        };
        Self {
            admitted: 0,
            of_epoch: of_epoch | members,
            before,
            epoch,
        }
    }

    /// The authority begins with those who are there: nobody else is expected any more.
    #[must_use]
    pub fn only(self, there: u64) -> Self {
        Self {
            admitted: 0,
            of_epoch: there,
            before: 0,
            ..self
        }
    }

    /// Without members that have left, are barred, or whose stake is short.
    #[must_use]
    pub fn without(self, gone: u64) -> Self {
        Self {
            of_epoch: self.of_epoch & !gone,
            before: self.before & !gone,
            ..self
        }
    }

    /// How many are expected: those of the epoch with more, or before the first round the admitted.
    #[must_use]
    pub fn number(self) -> u64 {
        let of_epochs = count(self.of_epoch).max(count(self.before));
        of_epochs.max(self.admitted)
    }

    /// Whether so many are at least half of them.
    #[must_use]
    pub fn is_half(self, there: u64) -> bool {
        there.saturating_mul(2) >= self.number()
    }

    /// How many must be there before anybody may begin a Warmup.
    #[must_use]
    pub fn least_to_begin(self, min_members: u64) -> u64 {
        min_members.max(self.number().div_ceil(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::bitmap::bit;

    fn expecting(of_epoch: u64, before: u64, epoch: u64) -> ExpectedMembers {
        ExpectedMembers {
            admitted: 0,
            of_epoch,
            before,
            epoch,
        }
    }

    /// So many members, from index 0 on.
    fn first(number: usize) -> u64 {
        (0..number).map(bit).fold(0, |all, one| all | one)
    }

    #[test]
    fn half_is_enough_and_less_is_not() {
        let of_seven = [3, 4].map(|there| expecting(first(7), 0, 0).is_half(there));
        let of_eight = [3, 4].map(|there| expecting(0, first(8), 0).is_half(there));
        assert_eq!((of_seven, of_eight), ([false, true], [false, true]));
        assert!(expecting(0, 0, 0).is_half(0) && expecting(u64::MAX, 0, 0).is_half(u64::MAX));
        let least = [7, 8, 9].map(|now| expecting(first(now), 0, 0).least_to_begin(4));
        assert_eq!(least, [4, 4, 5]);
    }

    #[test]
    fn an_epoch_remembers_all_its_members_and_those_of_the_epoch_before() {
        let full = expecting(first(12), 0, 3);
        assert_eq!(full.opened(first(6), 3, false), full);
        let next = full.opened(first(6), 4, false);
        assert_eq!(next, expecting(first(6), first(12), 4));
        let others = next.opened(bit(20) | bit(21), 4, false);
        assert_eq!(others.of_epoch, first(6) | bit(20) | bit(21));
        assert_eq!(
            (others.number(), next.opened(1, 5, false).number()),
            (12, 6)
        );
    }

    #[test]
    fn before_the_first_round_the_admitted_are_expected() {
        let admitted = ExpectedMembers {
            admitted: 64,
            ..ExpectedMembers::default()
        };
        let begun = admitted.opened(first(40), 0, true);
        assert_eq!((admitted.number(), begun.number()), (64, 40));
        assert_eq!(admitted.only(first(5)), expecting(first(5), 0, 0));
        let twelve = expecting(first(12), first(12), 3);
        assert_eq!(twelve.only(first(5)), expecting(first(5), 0, 3));
    }

    #[test]
    fn those_who_leave_are_not_expected_and_those_who_never_were_change_nothing() {
        let twelve = expecting(first(12), first(9), 3);
        assert_eq!(twelve.without(3), expecting(first(12) - 3, first(9) - 3, 3));
        assert_eq!(twelve.without(first(12)).number(), 0);
        assert_eq!(twelve.without(u64::MAX << 12), twelve);
    }
}
