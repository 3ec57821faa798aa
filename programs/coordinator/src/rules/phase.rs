//! When a phase may end (protocol §1).
//!
//! Owns the three conditions (a) deadline, (b) all acted, (c) four fifths acted and a grace for
//! stragglers. Never knows which phase it is or who must act: the caller counts.
//! Next: `crate::round::waiting` and `crate::round::close`, which end phases.

use super::NONE;

/// Shortest time that stragglers are given once four fifths have acted, in slots.
pub const STRAGGLER_SLOTS: u64 = 8;

/// The time limits of the running phase, in slots.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Slot in which the phase began.
    pub start: u64,
    /// Last slot in which actions are accepted.
    pub end: u64,
    /// Slot in which four fifths had acted for the first time, or `NONE`.
    pub quorum_slot: u64,
}

impl Window {
    /// Whether an action that lands in `slot` still counts.
    #[must_use]
    pub fn accepts(&self, slot: u64) -> bool {
        slot <= self.end
    }

    /// Whether a transition that lands in `slot` ends a phase that ran to its deadline.
    #[must_use]
    pub fn ran_to_deadline(&self, slot: u64) -> bool {
        slot > self.end
    }

    /// Whether a transition may end the phase in `slot`, `acted` of `all` having acted.
    #[must_use]
    pub fn is_due(&self, acted: u64, all: u64, slot: u64) -> bool {
        self.ran_to_deadline(slot) || acted >= all || slot >= self.quorum_end()
    }

    /// First slot in which condition (c) holds; `NONE` while the quorum is missing.
    fn quorum_end(&self) -> u64 {
        if self.quorum_slot == NONE {
            return NONE;
        }
        let taken = self.quorum_slot.saturating_sub(self.start);
        self.quorum_slot
            .saturating_add((taken >> 2).max(STRAGGLER_SLOTS))
    }
}

/// Whether `acted` of `all` is at least four fifths.
#[must_use]
pub fn has_quorum(acted: u64, all: u64) -> bool {
    acted.saturating_mul(5) >= all.saturating_mul(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Window = Window {
        start: 100,
        end: 220,
        quorum_slot: NONE,
    };

    #[test]
    fn the_last_slot_still_accepts_and_is_not_due() {
        assert!(OPEN.accepts(220) && !OPEN.accepts(221));
        assert!(!OPEN.is_due(3, 10, 220) && OPEN.is_due(3, 10, 221));
    }

    #[test]
    fn everybody_having_acted_ends_it_at_once() {
        assert!(OPEN.is_due(10, 10, 101));
        assert!(OPEN.is_due(0, 0, 101));
        assert!(!OPEN.is_due(9, 10, 101));
    }

    #[test]
    fn stragglers_get_eight_slots_or_a_quarter_of_the_time_taken() {
        let early = Window {
            quorum_slot: 110,
            ..OPEN
        };
        assert!(!early.is_due(8, 10, 117) && early.is_due(8, 10, 118));
        let late = Window {
            quorum_slot: 163,
            ..OPEN
        };
        assert!(!late.is_due(8, 10, 177) && late.is_due(8, 10, 178));
    }

    #[test]
    fn quorum_is_four_fifths_rounded_up() {
        assert!(has_quorum(4, 5) && has_quorum(6, 7) && has_quorum(1, 1));
        assert!(!has_quorum(3, 5) && !has_quorum(5, 7));
    }
}
