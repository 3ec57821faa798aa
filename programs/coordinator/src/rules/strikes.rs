//! Three strikes within a hundred rounds: jailed (protocol §8, P4).
//!
//! Owns the ring of the three newest strikes of one participant. Never jails by itself.
//! Next: `crate::round::settle` and the report of a missing payload.

use super::NONE;

/// Strikes that jail a participant.
pub const STRIKES_TO_JAIL: usize = 3;
/// Rounds within which they must fall, the newest one's round included.
pub const STRIKE_ROUNDS: u64 = 100;

/// Records a strike of `round`; true when it is the third within the window, which empties the
/// ring, so that a jailed participant starts afresh.
pub fn add(ring: &mut [u64; STRIKES_TO_JAIL], round: u64) -> bool {
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

    fn jailed_by(rounds: &[u64]) -> Vec<bool> {
        let mut ring = [NONE; 3];
        rounds.iter().map(|&round| add(&mut ring, round)).collect()
    }

    #[test]
    fn the_third_strike_within_a_hundred_rounds_jails() {
        assert_eq!(jailed_by(&[10, 50, 109]), [false, false, true]);
        assert_eq!(jailed_by(&[10, 50, 110]), [false, false, false]);
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
