//! Who judges (protocol §7, §8): the seats of a target and the second committee of a case.
//!
//! Owns the order in which a seed seats witnesses. Never decides who is eligible.
//! Next: `quorum` for what they decide.

use super::bits::{bit, count};
use super::hash::{digest, Digest, TAG_CASE, TAG_COMMITTEE, TAG_SEAT};
use super::sampling::{draw, drawn_index, indices_of, keep_lowest, score, UNDRAWN};
use crate::constants::{FIRST_SEATS, NUM_JURORS, NUM_SEATS};

/// The first seats sit out a second committee where at least so many others remain.
pub const KEEP_WITHOUT_SEATS: u64 = 5;

/// Up to `N` participants in the order in which they were drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn<const N: usize> {
    indices: [u16; N],
    count: usize,
}

impl<const N: usize> Drawn<N> {
    /// Their indices; none where fewer than three are eligible.
    #[must_use]
    pub fn indices(&self) -> &[u16] {
        self.indices.get(..self.count).unwrap_or_default()
    }

    /// Sorts the `pool` by score; empty where it has fewer than three.
    fn from_pool(pool: u64, score_of: impl Fn(&[u8]) -> u64) -> Self {
        let mut lowest = [UNDRAWN; N];
        let found = usize::try_from(count(pool)).unwrap_or(0);
        if found >= FIRST_SEATS {
            for (_, index) in indices_of(pool) {
                let order = u128::from(score_of(&index.to_le_bytes()));
                keep_lowest(&mut lowest, draw(order, index));
            }
        }
        Self {
            indices: lowest.map(drawn_index),
            count: lowest.iter().filter(|draw| **draw != UNDRAWN).count(),
        }
    }
}

/// The seats of a target in order: three, then up to two for the extension.
///
/// `eligible` is the bitmap of the round's eligible witnesses; the target never judges itself.
#[must_use]
pub fn seats_of(sigma: &Digest, target: u16, eligible: u64) -> Drawn<NUM_SEATS> {
    let others = eligible & !bit(usize::from(target));
    let target = target.to_le_bytes();
    Drawn::from_pool(others, |index| score(&[TAG_SEAT, sigma, &target, index]))
}

/// `H("troth:case", slot hash, run, round, target, kind)`: the seed of one second committee.
///
/// Target and kind are in it, so that two cases that take the same slot draw different people.
#[must_use]
pub fn case_seed(slot_hash: &Digest, run: &Digest, round: u64, target: u16, kind: u8) -> Digest {
    let (round, target) = (round.to_le_bytes(), target.to_le_bytes());
    digest(&[TAG_CASE, slot_hash, run, &round, &target, &[kind]])
}

/// The second committee in order.
///
/// `eligible` are the witnesses eligible at the open of the round and still active, `barred` the
/// accused and the challenger, `seats` the first seats: they sit out where five others remain.
#[must_use]
pub fn committee(seed: &Digest, eligible: u64, barred: u64, seats: u64) -> Drawn<NUM_JURORS> {
    let all = eligible & !barred;
    let without_seats = all & !seats;
    let pool = if count(without_seats) >= KEEP_WITHOUT_SEATS {
        without_seats
    } else {
        all
    };
    Drawn::from_pool(pool, |index| score(&[TAG_COMMITTEE, seed, index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_witnesses_are_no_audit() {
        assert!(seats_of(&[1; 32], 0, 0b111).indices().is_empty());
        assert_eq!(seats_of(&[1; 32], 0, 0b1111).indices().len(), 3);
        assert_eq!(seats_of(&[1; 32], 9, 0b111).indices().len(), 3);
    }

    #[test]
    fn nobody_judges_itself_and_nobody_sits_twice() {
        for seed in 0..20_u8 {
            let seats = seats_of(&[seed; 32], 5, u64::MAX);
            let bitmap = seats.indices().iter().fold(0, |all, index| {
                let one = bit(usize::from(*index));
                assert_eq!(all & one, 0);
                all | one
            });
            assert_eq!((bitmap.count_ones(), bitmap & bit(5)), (5, 0));
        }
    }

    #[test]
    fn the_first_seats_sit_out_where_five_others_remain() {
        let drawn = |eligible| committee(&[7; 32], eligible, 0b1, 0b1110);
        assert_eq!(drawn(0b1_1111_1111).indices().len(), 5);
        assert!(drawn(0b1_1111_1111).indices().iter().all(|j| *j >= 4));
        assert_eq!(drawn(0b1111_1111).indices().len(), 7);
        assert!(drawn(0b111).indices().is_empty());
    }
}
