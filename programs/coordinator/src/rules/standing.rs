//! Misses, strikes and the way back (protocol §3, §8 P4).
//!
//! Owns the two counters of misses in a row, when they make a participant inactive, when the next
//! `post_ready` may come, and the ring of the three newest strikes. Never takes the fee and never
//! jails by itself. Next: `crate::round::settle` and `crate::round::penalties`.

use super::NONE;

/// Misses in a row, in phases that ran to the deadline, that make a participant inactive.
pub const DEADLINE_MISSES: u16 = 3;
/// Misses in a row, of any kind, that make a participant inactive.
pub const ANY_MISSES: u16 = 12;
/// A second inactivity within so many rounds waits for the next epoch.
pub const REPEAT_ROUNDS: u64 = 500;
/// Strikes that jail a participant.
pub const STRIKES_TO_JAIL: usize = 3;
/// Rounds within which they must fall, the newest one's round included.
pub const STRIKE_ROUNDS: u64 = 100;

/// The stake below which a participant is inactive from the next open on: that to keep or, after a
/// conviction for work, that to join with.
#[must_use]
pub fn stake_to_stay(keep: u64, min: u64, work_faults: u8) -> u64 {
    if work_faults > 0 {
        min
    } else {
        keep
    }
}

/// One phase in which a participant had to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duty {
    /// Whether it did.
    pub has_acted: bool,
    /// Whether the phase gave it the full time.
    pub ran_to_deadline: bool,
}

/// Misses in a row of one participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    /// In phases of any length.
    pub in_row: u16,
    /// In phases that ran to the deadline.
    pub deadline_in_row: u16,
}

impl Misses {
    /// The counters after one more round with these duties.
    ///
    /// A row ends only with a round in which the participant did all that it had to: otherwise
    /// one who attests but never commits would hold up every round for nothing.
    #[must_use]
    pub fn after_round(self, duties: &[Duty]) -> Self {
        if duties.iter().all(|duty| duty.has_acted) {
            return Self::default();
        }
        duties
            .iter()
            .filter(|duty| !duty.has_acted)
            .fold(self, |misses, duty| Self {
                in_row: misses.in_row.saturating_add(1),
                deadline_in_row: misses
                    .deadline_in_row
                    .saturating_add(u16::from(duty.ran_to_deadline)),
            })
    }

    /// Whether so many misses make the participant inactive.
    #[must_use]
    pub fn is_inactive(self) -> bool {
        self.is_fined() || self.in_row >= ANY_MISSES
    }

    /// Whether that costs the fee, and a second time the rest of the epoch: only misses in phases
    /// that gave the full time do. The others may be ended early by those who are fast.
    #[must_use]
    pub fn is_fined(self) -> bool {
        self.deadline_in_row >= DEADLINE_MISSES
    }
}

/// First round in which `post_ready` is accepted again from one who became inactive in `round`.
///
/// `inactive_round` is the round of the inactivity before, or `NONE`. `None` on overflow.
#[must_use]
pub fn return_round(inactive_round: u64, round: u64, rounds_per_epoch: u64) -> Option<u64> {
    if inactive_round == NONE || round.saturating_sub(inactive_round) > REPEAT_ROUNDS {
        return Some(round);
    }
    first_round_of_next_epoch(round, rounds_per_epoch)
}

/// First round of the epoch after the one of `round`; `None` on overflow.
#[must_use]
pub fn first_round_of_next_epoch(round: u64, rounds_per_epoch: u64) -> Option<u64> {
    round
        .checked_div(rounds_per_epoch)?
        .checked_add(1)?
        .checked_mul(rounds_per_epoch)
}

/// Records a strike of `round`; true when it is the third within the window, which empties the
/// ring, so that a jailed participant starts afresh.
pub fn add_strike(ring: &mut [u64; STRIKES_TO_JAIL], round: u64) -> bool {
    let newest_first = |a: &u64, b: &u64| age(*a, round).cmp(&age(*b, round));
    ring.sort_unstable_by(newest_first);
    if let Some(oldest) = ring.last_mut() {
        *oldest = round;
    }
    let is_third = ring
        .iter()
        .all(|&strike| age(strike, round) < STRIKE_ROUNDS);
    if is_third {
        *ring = [NONE; STRIKES_TO_JAIL];
    }
    is_third
}

/// Takes the newest strike back.
pub fn remove_strike(ring: &mut [u64; STRIKES_TO_JAIL]) {
    let newest = ring.iter_mut().filter(|one| **one != NONE).max();
    if let Some(one) = newest {
        *one = NONE;
    }
}

/// How many of `ring` lie within a hundred rounds of `round`, its own included.
#[must_use]
pub fn count_within(ring: &[u64; STRIKES_TO_JAIL], round: u64) -> usize {
    let recent = ring.iter().filter(|&&one| age(one, round) < STRIKE_ROUNDS);
    recent.count()
}

/// Rounds since `strike`; the largest age for an empty place.
fn age(strike: u64, round: u64) -> u64 {
    if strike == NONE {
        NONE
    } else {
        round.saturating_sub(strike)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conviction_raises_the_stake_to_stay() {
        let needed = [0, 1, 2].map(|faults| stake_to_stay(60, 100, faults));
        assert_eq!(needed, [60, 100, 100]);
    }

    fn after(rounds: &[&[(bool, bool)]]) -> Misses {
        rounds.iter().fold(Misses::default(), |misses, duties| {
            let duties: Vec<Duty> = duties
                .iter()
                .map(|&(has_acted, ran_to_deadline)| Duty {
                    has_acted,
                    ran_to_deadline,
                })
                .collect();
            misses.after_round(&duties)
        })
    }

    const SILENT: &[(bool, bool)] = &[(false, true), (false, true)];
    const HALF: &[(bool, bool)] = &[(false, true), (true, true)];
    const QUICK: &[(bool, bool)] = &[(false, false), (false, false)];
    const DONE: &[(bool, bool)] = &[(true, true), (true, false)];

    #[test]
    fn three_deadline_misses_in_a_row_suffice() {
        assert!(!after(&[SILENT]).is_inactive());
        assert!(after(&[SILENT, SILENT]).is_inactive() && after(&[SILENT, SILENT]).is_fined());
        assert!(after(&[SILENT, HALF]).is_inactive());
    }

    #[test]
    fn twelve_misses_of_any_kind_suffice() {
        assert!(!after(&[QUICK; 5]).is_inactive());
        assert!(after(&[QUICK; 6]).is_inactive() && !after(&[QUICK; 6]).is_fined());
    }

    #[test]
    fn who_attests_but_never_commits_is_absent() {
        assert!(!after(&[HALF; 2]).is_inactive());
        assert!(after(&[HALF; 3]).is_inactive());
    }

    #[test]
    fn a_short_phase_neither_counts_nor_resets_deadline_misses() {
        let misses = after(&[HALF, QUICK, HALF]);
        assert_eq!((misses.in_row, misses.deadline_in_row), (4, 2));
    }

    #[test]
    fn a_round_done_in_full_resets_both() {
        assert_eq!(after(&[SILENT, DONE]), Misses::default());
        assert_eq!(after(&[HALF, DONE, HALF]).in_row, 1);
    }

    #[test]
    fn only_a_repeated_inactivity_waits_for_the_next_epoch() {
        assert_eq!(return_round(NONE, 70, 50), Some(70));
        assert_eq!(return_round(60, 70, 50), Some(100));
        assert_eq!(return_round(60, 560, 50), Some(600));
        assert_eq!(return_round(60, 561, 50), Some(561));
        assert_eq!(return_round(60, 70, 0), None);
    }

    fn jailed_by(rounds: &[u64]) -> Vec<bool> {
        let mut ring = [NONE; 3];
        rounds
            .iter()
            .map(|&round| add_strike(&mut ring, round))
            .collect()
    }

    #[test]
    fn the_third_strike_within_a_hundred_rounds_jails() {
        assert_eq!(jailed_by(&[10, 50, 109]), [false, false, true]);
        assert_eq!(jailed_by(&[10, 50, 110]), [false, false, false]);
    }

    #[test]
    fn a_strike_that_is_taken_back_does_not_count() {
        let mut ring = [NONE, 10, 50];
        remove_strike(&mut ring);
        assert_eq!(ring, [NONE, 10, NONE]);
        assert!(!add_strike(&mut ring, 60));
        assert!(add_strike(&mut ring, 70));
        remove_strike(&mut ring);
        assert_eq!(ring, [NONE; 3]);
    }

    #[test]
    fn an_old_strike_makes_room_for_a_new_one() {
        assert_eq!(jailed_by(&[0, 100, 150, 180]), [false, false, false, true]);
    }

    #[test]
    fn jail_empties_the_ring() {
        assert_eq!(
            jailed_by(&[1, 2, 3, 4, 5, 6]),
            [false, false, true, false, false, true]
        );
    }

    #[test]
    fn two_strikes_of_one_round_count_twice() {
        assert_eq!(jailed_by(&[7, 7, 7]), [false, false, true]);
    }
}
