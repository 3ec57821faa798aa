//! How many members a run expects, and whether those who are there may go on in its name.
//!
//! Owns the rule of half, and the memory of two epochs. Never counts anybody: `round` does.
//! Next: `root`, whose majorities are of the members of one round.
//!
//! All majorities are of a round's members. Without this rule a few that stay while the others are
//! cut off would be a majority of themselves.

/// The members that a run expects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedMembers {
    /// The most members of one round in this epoch and the one before; half of them must be there.
    pub now: u64,
    /// The most of `epoch` alone.
    pub of_epoch: u64,
    /// The epoch of the last open.
    pub epoch: u64,
}

impl ExpectedMembers {
    /// After an open. At the first one of a run nobody is expected from before.
    #[must_use]
    pub fn opened(self, members: u64, epoch: u64, is_first: bool) -> Self {
        let (now, of_epoch) = if is_first {
            (0, 0)
        } else if epoch == self.epoch {
            (self.now, self.of_epoch)
        } else {
            (self.of_epoch, 0)
        };
        Self {
            now: now.max(members),
            of_epoch: of_epoch.max(members),
            epoch,
        }
    }

    /// Without members that have left, or whose stake is short.
    #[must_use]
    pub fn without(self, gone: u64) -> Self {
        Self {
            now: self.now.saturating_sub(gone),
            of_epoch: self.of_epoch.saturating_sub(gone),
            ..self
        }
    }

    /// Whether so many are at least half of them.
    #[must_use]
    pub fn is_half(self, there: u64) -> bool {
        there.saturating_mul(2) >= self.now
    }

    /// How many must be there before anybody may begin a Warmup.
    #[must_use]
    pub fn least_to_begin(self, min_members: u64) -> u64 {
        min_members.max(self.now.div_ceil(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expecting(now: u64, of_epoch: u64, epoch: u64) -> ExpectedMembers {
        ExpectedMembers {
            now,
            of_epoch,
            epoch,
        }
    }

    #[test]
    fn half_is_enough_and_less_is_not() {
        let of_seven = [3, 4].map(|there| expecting(7, 7, 0).is_half(there));
        let of_eight = [3, 4].map(|there| expecting(8, 8, 0).is_half(there));
        assert_eq!((of_seven, of_eight), ([false, true], [false, true]));
        assert!(expecting(0, 0, 0).is_half(0) && expecting(u64::MAX, 0, 0).is_half(u64::MAX));
        let least = [7, 8, 9].map(|now| expecting(now, 0, 0).least_to_begin(4));
        assert_eq!(least, [4, 4, 5]);
    }

    #[test]
    fn an_epoch_remembers_its_fullest_round_and_that_of_the_epoch_before() {
        let before = expecting(12, 12, 3);
        assert_eq!(before.opened(6, 3, false), before);
        let next = before.opened(6, 4, false);
        assert_eq!(next, expecting(12, 6, 4));
        assert_eq!(next.opened(7, 4, false), expecting(12, 7, 4));
        assert_eq!(next.opened(6, 5, false), expecting(6, 6, 5));
    }

    #[test]
    fn the_first_round_expects_those_who_open_it() {
        let admitted = expecting(64, 0, 0);
        assert_eq!(admitted.opened(40, 0, true), expecting(40, 40, 0));
    }

    #[test]
    fn those_who_leave_are_not_expected() {
        assert_eq!(expecting(12, 9, 3).without(2), expecting(10, 7, 3));
        assert_eq!(expecting(1, 0, 3).without(2), expecting(0, 0, 3));
    }
}
