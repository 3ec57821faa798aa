//! One outage is one fine (protocol §8): which silences of a judge belong together.
//!
//! Owns the newest outage of one participant, in moments of the run clock. An outage is a gap
//! between two of its actions that is longer than the shortest window in which a judge commits, or
//! any gap that is still running. Never prices a fine. Next: `slashing`.

use super::NONE;

/// The known actions of one participant; moments of the run clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence {
    /// Of the last action; 0 before the first.
    pub last_action: u64,
    /// Of the last action before the newest outage that ended, or `NONE`.
    pub outage_start: u64,
    /// Of the first action after that outage, or `NONE`.
    pub outage_end: u64,
    /// Start of the last outage that cost a fine, or `NONE`.
    pub fined_outage: u64,
}

impl Presence {
    /// Notes an action at `now`: a gap longer than `shortest` before it was an outage.
    pub fn act(&mut self, now: u64, shortest: u64) {
        if now.saturating_sub(self.last_action) > shortest {
            self.outage_start = self.last_action;
            self.outage_end = now;
        }
        self.last_action = now;
    }

    /// Start of the outage in which a window ended at `ended`; none where the participant was
    /// there.
    #[must_use]
    pub fn outage_of(&self, ended: u64) -> Option<u64> {
        if self.is_silent_since(ended) {
            return Some(self.last_action);
        }
        let is_in =
            self.outage_start != NONE && self.outage_start < ended && ended <= self.outage_end;
        is_in.then_some(self.outage_start)
    }

    /// Notes silence in a window that ended at `ended`. Returns whether it costs a fine: every one
    /// outside an outage does, and the first one of each outage.
    pub fn miss(&mut self, ended: u64) -> bool {
        let Some(start) = self.outage_of(ended) else {
            return true;
        };
        let is_first = start != self.fined_outage;
        self.fined_outage = start;
        is_first
    }

    /// Whether the participant has not acted since the moment `ended`.
    #[must_use]
    pub fn is_silent_since(&self, ended: u64) -> bool {
        self.last_action < ended
    }
}

/// A second hidden verdict within so many rounds costs more.
pub const REPEAT_ROUNDS: u64 = 500;

/// The kinds of a verdict or vote that was committed and never shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hidden {
    /// The first one for a long time.
    First,
    /// Of a round opened before the last one was decided: it is part of the same silence.
    Again,
    /// Of a round opened after that, within 500 rounds.
    Second,
}

/// Classifies a hidden verdict about `round`; `decided_round` is the round under way when the last
/// one was counted, or `NONE`.
#[must_use]
pub fn hidden_verdict(round: u64, decided_round: u64) -> Hidden {
    if decided_round == NONE || round.saturating_sub(decided_round) > REPEAT_ROUNDS {
        Hidden::First
    } else if round <= decided_round {
        Hidden::Again
    } else {
        Hidden::Second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_verdicts_of_one_silence_belong_together() {
        assert_eq!(hidden_verdict(5, NONE), Hidden::First);
        assert_eq!(hidden_verdict(7, 7), Hidden::Again);
        assert_eq!(hidden_verdict(8, 7), Hidden::Second);
        assert_eq!(hidden_verdict(507, 7), Hidden::Second);
        assert_eq!(hidden_verdict(508, 7), Hidden::First);
    }

    const SHORTEST: u64 = 80;

    fn seen_at(now: u64) -> Presence {
        Presence {
            last_action: now,
            outage_start: NONE,
            outage_end: NONE,
            fined_outage: NONE,
        }
    }

    #[test]
    fn all_windows_of_one_outage_are_one_fine() {
        let mut one = seen_at(100);
        assert!(one.miss(180) && !one.miss(190));
        one.act(300, SHORTEST);
        assert!(!one.miss(250) && !one.miss(300));
        assert!(one.miss(301), "it is silent again");
    }

    #[test]
    fn the_next_outage_is_the_next_fine() {
        let mut one = seen_at(100);
        one.act(300, SHORTEST);
        assert!(one.miss(200));
        one.act(500, SHORTEST);
        assert!(one.miss(400) && !one.miss(450));
    }

    #[test]
    fn who_is_there_and_stays_silent_pays_each_time() {
        let mut one = seen_at(100);
        for now in [150, 200, 250, 300] {
            one.act(now, SHORTEST);
            assert!(one.miss(now - 1));
        }
        assert_eq!((one.outage_start, one.fined_outage), (NONE, NONE));
    }

    #[test]
    fn a_gap_as_long_as_the_window_is_no_outage_once_it_is_over() {
        let mut one = seen_at(100);
        assert_eq!((one.outage_of(150), one.outage_of(100)), (Some(100), None));
        one.act(180, SHORTEST);
        assert_eq!((one.outage_of(150), one.outage_start), (None, NONE));
    }

    #[test]
    fn a_gap_that_is_still_short_is_fined_once() {
        let mut one = seen_at(100);
        assert!(one.miss(101) && !one.miss(102) && !one.miss(170));
        one.act(181, SHORTEST);
        assert!(!one.miss(175), "the same outage, which has ended");
    }
}
