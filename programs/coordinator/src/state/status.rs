//! The status of a participant, and every way in which it changes.
//!
//! Owns the table of changes: `Entry::change` is the only code that writes `Entry::status`. Never
//! decides when a change is due: its callers do, and refuse with errors of their own.
//! Next: `entry`.

use anchor_lang::prelude::*;

use crate::constants::{ENTRY_LEAVING, NONE};
use crate::errors::{refuse, CoordinatorError};
use crate::state::entry::Entry;

/// Status of a roster entry.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Never used.
    Empty = 0,
    /// Joined, not a member yet.
    Pending = 1,
    /// A member of the rounds that open.
    Active = 2,
    /// Missed too much, or below the stake to keep.
    Inactive = 3,
    /// Struck too often.
    Jailed = 4,
    /// Convicted for good; the index becomes free as if it had left.
    Barred = 5,
    /// Left; the index becomes free after `ring` rounds.
    Left = 6,
}

impl Status {
    /// Every status in the order of its number.
    pub const ALL: [Status; 7] = [
        Status::Empty,
        Status::Pending,
        Status::Active,
        Status::Inactive,
        Status::Jailed,
        Status::Barred,
        Status::Left,
    ];

    /// The status with this number, or `InvariantViolated`.
    pub fn from_number(number: u8) -> Result<Status> {
        Status::ALL
            .get(usize::from(number))
            .copied()
            .ok_or_else(|| refuse(CoordinatorError::InvariantViolated))
    }
}

/// Why a status changes. The table:
///
/// | change       | from                                            | to       |
/// |--------------|-------------------------------------------------|----------|
/// | `Join`       | Empty                                           | Pending  |
/// | `Return`     | Pending, Inactive, Jailed                       | Pending  |
/// | `Activate`   | Pending, Inactive, Jailed                       | Active   |
/// | `Dismiss`    | Active                                          | Pending  |
/// | `Deactivate` | Pending, Active                                 | Inactive |
/// | `Jail`       | Pending, Active, Inactive                       | Jailed   |
/// | `Leave`      | Pending, Active, Inactive, Jailed               | Left     |
/// | `Bar`        | Pending, Active, Inactive, Jailed, Barred, Left | Barred   |
/// | `LiftBar`    | Barred                                          | Left     |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `join_run` gives an index to a new owner.
    Join,
    /// `post_ready` while no round is open takes a participant back.
    Return,
    /// `activate`, or the end of a Warmup, makes a participant a member.
    Activate,
    /// The rounds stop: every member waits for the next Warmup.
    Dismiss,
    /// Misses, an absent `post_ready` in Warmup, or at an open a stake below the one to keep.
    Deactivate,
    /// A third strike, the third missed duty on a seat, or a case that nobody may judge.
    Jail,
    /// The owner asked to leave.
    Leave,
    /// A second conviction for work.
    Bar,
    /// The council reversed a conviction that had led to the bar.
    LiftBar,
}

impl Change {
    /// Every change in the order of the table.
    pub const ALL: [Change; 9] = [
        Change::Join,
        Change::Return,
        Change::Activate,
        Change::Dismiss,
        Change::Deactivate,
        Change::Jail,
        Change::Leave,
        Change::Bar,
        Change::LiftBar,
    ];

    /// Whether the table has this change from `status`.
    #[must_use]
    pub fn starts_from(self, status: Status) -> bool {
        use Status::{Active, Barred, Empty, Inactive, Jailed, Left, Pending};
        match self {
            Self::Join => matches!(status, Empty),
            Self::Return | Self::Activate => matches!(status, Pending | Inactive | Jailed),
            Self::Dismiss => matches!(status, Active),
            Self::Deactivate => matches!(status, Pending | Active),
            Self::Jail => matches!(status, Pending | Active | Inactive),
            Self::Leave => matches!(status, Pending | Active | Inactive | Jailed),
            Self::Bar => matches!(status, Pending | Active | Inactive | Jailed | Barred | Left),
            Self::LiftBar => matches!(status, Barred),
        }
    }

    /// The status that the change leads to.
    #[must_use]
    pub fn leads_to(self) -> Status {
        match self {
            Self::Join | Self::Return | Self::Dismiss => Status::Pending,
            Self::Activate => Status::Active,
            Self::Deactivate => Status::Inactive,
            Self::Jail => Status::Jailed,
            Self::Bar => Status::Barred,
            Self::Leave | Self::LiftBar => Status::Left,
        }
    }
}

impl Entry {
    /// The status as a name.
    pub fn status(&self) -> Result<Status> {
        Status::from_number(self.status)
    }

    /// Whether the entry has this status.
    #[must_use]
    pub fn is(&self, status: Status) -> bool {
        self.status == status as u8
    }

    /// Whether the table knows this change from the present status.
    #[must_use]
    pub fn may(&self, change: Change) -> bool {
        self.status().is_ok_and(|status| change.starts_from(status))
    }

    /// Changes the status. Callers have refused every change that the table does not know; tests
    /// assert that, the image spares the compute units.
    pub fn change(&mut self, change: Change) {
        debug_assert!(self.may(change), "{change:?} from {}", self.status);
        self.status = change.leads_to() as u8;
    }

    /// Whether a participant lives at this index (joined, and neither left nor barred).
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.is(Status::Pending)
            || self.is(Status::Active)
            || self.is(Status::Inactive)
            || self.is(Status::Jailed)
    }

    /// Whether the membership has ended for good: left or barred.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.is(Status::Left) || self.is(Status::Barred)
    }

    /// Whether the entry asked to leave and still serves the open round.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.flags & ENTRY_LEAVING != 0
    }

    /// Ends the membership in `round`; the index becomes free `ring` rounds later.
    pub fn leave(&mut self, round: u64) {
        self.end(Change::Leave, round);
    }

    /// Ends the membership of somebody convicted for good, as `leave` does.
    pub fn bar(&mut self, round: u64) {
        self.end(Change::Bar, round);
    }

    fn end(&mut self, change: Change, round: u64) {
        self.change(change);
        self.flags &= !ENTRY_LEAVING;
        if self.left_round == NONE {
            self.left_round = round;
        }
        self.clear_ready();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    fn entry_with(status: Status) -> Box<Entry> {
        let mut entry = Box::new(Entry::zeroed());
        entry.left_round = NONE;
        entry.status = status as u8;
        entry
    }

    #[test]
    fn each_change_leads_to_its_status_from_those_of_the_table() {
        for status in Status::ALL {
            for change in Change::ALL {
                let mut entry = entry_with(status);
                assert_eq!(entry.may(change), change.starts_from(status));
                if entry.may(change) {
                    entry.change(change);
                    assert!(entry.is(change.leads_to()));
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "Jail from 6")]
    fn tests_refuse_a_change_outside_the_table() {
        entry_with(Status::Left).change(Change::Jail);
    }

    #[test]
    fn an_empty_index_is_only_joined_and_nobody_comes_back_from_left() {
        let from = |status| {
            let changes = Change::ALL.into_iter();
            changes.filter(move |change| entry_with(status).may(*change))
        };
        assert!(from(Status::Empty).eq([Change::Join]));
        assert!(from(Status::Left).eq([Change::Bar]));
        assert!(from(Status::Barred).eq([Change::Bar, Change::LiftBar]));
    }

    #[test]
    fn present_is_whoever_may_leave() {
        for status in Status::ALL {
            let entry = entry_with(status);
            assert_eq!(entry.is_present(), entry.may(Change::Leave));
        }
    }

    #[test]
    fn a_bar_after_leaving_keeps_the_round_of_leaving() {
        let mut entry = entry_with(Status::Jailed);
        entry.flags = ENTRY_LEAVING;
        entry.leave(10);
        entry.bar(20);
        assert!(entry.is(Status::Barred) && entry.left_round == 10 && !entry.is_leaving());
        entry.change(Change::LiftBar);
        assert!(entry.is(Status::Left));
    }
}
