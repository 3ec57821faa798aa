//! The draws of targets, seats and juries (protocol §7, §8): from a seed, in exact integers.
//!
//! Owns the scores x(tag, ...), the order that they give, the sample of a round with its cap, the
//! seats of a target and the jury of a case. Never rounds, so that Python draws the same, and never
//! decides who is eligible. Next: `quorum` for what the judges decide.

use super::bitmap::{bit, count, with_bits};
use super::hashing::{digest, Digest, TAG_CASE, TAG_JURY, TAG_SAMPLE, TAG_SEAT};
use crate::constants::{FIRST_SEATS, MAX_PARTICIPANTS, NUM_JURORS, NUM_SEATS, PPM};

/// The seats of the audit sit out its jury where at least so many others remain; else they fill it
/// up to so many.
pub const KEEP_WITHOUT_SEATS: usize = 5;

/// How much of a round is sampled.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Probability of an established participant in ppm.
    pub base_ppm: u32,
    /// Probability of a new one, or of one with a recent strike.
    pub new_ppm: u32,
    /// Most targets of the round: see `limit`.
    pub limit: u16,
    /// The seed of the round before was lost: probabilities double (at most 1), the limit stays.
    pub is_doubled: bool,
}

/// The payloads that a round draws from, as bitmaps.
#[derive(Clone, Copy, Debug)]
pub struct Payloads {
    /// All that count.
    pub included: u64,
    /// Those of participants sampled with `new_ppm`.
    pub is_new: u64,
    /// Those of participants on probation whose audit is due: drawn before all others.
    pub on_probation: u64,
}

/// The most audits of a round: `cap`, twice as many while more than half of the trainers are new.
/// Never more than the `eligible` witnesses can judge, with three seats an audit and `seat_load`
/// seats each, but one at least.
#[must_use]
pub fn limit(cap: u16, seat_load: u8, trainers: u64, is_new: u64, eligible: u64) -> u16 {
    let are_most_new = count(trainers & is_new).saturating_mul(2) > count(trainers);
    let cap = if are_most_new {
        cap.saturating_mul(2)
    } else {
        cap
    };
    let seats = count(eligible).saturating_mul(seat_load.into());
    let judged = u16::try_from(seats.div_euclid(3)).unwrap_or(u16::MAX);
    cap.min(judged.max(1))
}

impl Rates {
    /// The probability of one participant in ppm.
    #[must_use]
    pub fn ppm(&self, is_new: bool) -> u64 {
        let rate = u64::from(if is_new { self.new_ppm } else { self.base_ppm });
        if self.is_doubled {
            rate.saturating_mul(2).min(PPM)
        } else {
            rate
        }
    }
}

/// x(tag, ...): the first 8 bytes, little-endian, of the hash over `slices`, a tag first.
#[must_use]
pub fn score(slices: &[&[u8]]) -> u64 {
    let hash: Digest = digest(slices);
    hash.first_chunk().copied().map_or(0, u64::from_le_bytes)
}

/// Whether x * 10^6 < p * 2^64: a probability of 10^6 samples always, 0 never.
#[must_use]
pub fn is_sampled(x: u64, p_ppm: u64) -> bool {
    product(x, PPM) < u128::from(p_ppm) << u64::BITS
}

/// The targets of a round among the included payloads, at most `rates.limit`, as a bitmap.
///
/// Payloads that are due on probation come first, by x. Of the others those that the rates sample
/// follow, by x / p. Equal ones go by lower index.
#[must_use]
pub fn sampled_targets(sigma: &Digest, payloads: &Payloads, rates: &Rates) -> u64 {
    let mut lowest = [UNDRAWN; MAX_PARTICIPANTS];
    let limit = usize::from(rates.limit).min(MAX_PARTICIPANTS);
    let lowest = lowest.get_mut(..limit).unwrap_or_default();
    for (one, target) in indices_of(payloads.included) {
        let new = payloads.is_new & one != 0;
        let x = score(&[TAG_SAMPLE, sigma, &target.to_le_bytes()]);
        if payloads.on_probation & one != 0 {
            keep_lowest(lowest, draw(u128::from(x), target));
        } else if is_sampled(x, rates.ppm(new)) {
            // There are but two probabilities, so x times the other one orders like x / p. The
            // other one is 0 only where it samples nobody; then any constant does.
            let order = product(x, rates.ppm(!new).max(1));
            keep_lowest(lowest, draw(AFTER_PROBATION.saturating_add(order), target));
        }
    }
    let drawn = lowest.iter().filter(|draw| **draw != UNDRAWN);
    drawn.fold(0, |bitmap, draw| {
        bitmap | bit(usize::from(drawn_index(*draw)))
    })
}

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
        let found = usize::try_from(count(pool)).unwrap_or(0);
        let is_drawn = found >= FIRST_SEATS;
        let lowest = lowest_scores(if is_drawn { pool } else { 0 }, score_of);
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

/// `H("troth:case", slot hash, run, round, target, kind)`: the seed of one jury.
///
/// Target and kind are in it, so that two cases that take the same slot draw different
/// participants.
#[must_use]
pub fn case_seed(slot_hash: &Digest, run: &Digest, round: u64, target: u16, kind: u8) -> Digest {
    let (round, target) = (round.to_le_bytes(), target.to_le_bytes());
    digest(&[TAG_CASE, slot_hash, run, &round, &target, &[kind]])
}

/// The jury in order.
///
/// `eligible` are the witnesses of the round who may judge, `barred` the accused and the
/// challenger. `seats` sat in the audit, `accusers` among them spoke against the target. The seats
/// sit out. Where fewer than five others remain, seats by
/// ascending score make it five, and of those first the ones that did not accuse.
#[must_use]
pub fn jury(
    seed: &Digest,
    eligible: u64,
    barred: u64,
    seats: u64,
    accusers: u64,
) -> Drawn<NUM_JURORS> {
    let score_of = |index: &[u8]| score(&[TAG_JURY, seed, index]);
    let all = eligible & !barred;
    let sat = all & seats;
    let pool = [sat & !accusers, sat & accusers]
        .iter()
        .fold(all & !seats, |pool, group| {
            let found = usize::try_from(count(pool)).unwrap_or(KEEP_WITHOUT_SEATS);
            let missing = KEEP_WITHOUT_SEATS.saturating_sub(found);
            let lowest: [u128; KEEP_WITHOUT_SEATS] = lowest_scores(*group, score_of);
            let added = lowest.iter().take(missing).filter(|draw| **draw != UNDRAWN);
            added.fold(pool, |pool, draw| {
                pool | bit(usize::from(drawn_index(*draw)))
            })
        });
    Drawn::from_pool(pool, score_of)
}

/// The draws of the `pool` with the `N` lowest scores, ascending.
fn lowest_scores<const N: usize>(pool: u64, score_of: impl Fn(&[u8]) -> u64) -> [u128; N] {
    let mut lowest = [UNDRAWN; N];
    for (_, index) in indices_of(pool) {
        let order = u128::from(score_of(&index.to_le_bytes()));
        keep_lowest(&mut lowest, draw(order, index));
    }
    lowest
}

/// Orders of samples start here: above every score, so that probation comes first.
const AFTER_PROBATION: u128 = 1 << 100;

/// A place that no draw has taken.
const UNDRAWN: u128 = u128::MAX;

/// A draw: sorts by `order` (below 2^112), equal ones by lower index.
fn draw(order: u128, index: u16) -> u128 {
    order << u16::BITS | u128::from(index)
}

/// The index that a draw chose.
fn drawn_index(draw: u128) -> u16 {
    let [low, high, ..] = draw.to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// Puts a draw in its place among the `lowest` so far, ascending; the highest falls out.
fn keep_lowest(lowest: &mut [u128], draw: u128) {
    let mut moved = draw;
    for place in lowest {
        if moved < *place {
            std::mem::swap(place, &mut moved);
        }
        if moved == UNDRAWN {
            return;
        }
    }
}

/// The participants of a bitmap, ascending, each with its one-bit bitmap.
fn indices_of(bitmap: u64) -> impl Iterator<Item = (u64, u16)> {
    with_bits(0_u16..).filter(move |(one, _)| bitmap & one != 0)
}

/// `a * b`, which always fits.
fn product(a: u64, b: u64) -> u128 {
    u128::from(a).wrapping_mul(u128::from(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates {
        base_ppm: 300_000,
        new_ppm: 700_000,
        limit: 15,
        is_doubled: false,
    };
    const PAYLOADS: Payloads = Payloads {
        included: 0xFFFF_FFFF,
        is_new: 0xFFF0_0000,
        on_probation: 0,
    };

    #[test]
    fn certainty_samples_the_highest_score_and_zero_not_even_the_lowest() {
        assert!(is_sampled(u64::MAX, PPM));
        assert!(!is_sampled(0, 0));
        // 2^64 / 10^6 = 18446744073709.55...
        assert!(is_sampled(18_446_744_073_709, 1));
        assert!(!is_sampled(18_446_744_073_710, 1));
    }

    #[test]
    fn probabilities_double_up_to_one() {
        let doubled = Rates {
            is_doubled: true,
            ..RATES
        };
        assert_eq!((doubled.ppm(false), doubled.ppm(true)), (600_000, PPM));
        assert_eq!((RATES.ppm(false), RATES.ppm(true)), (300_000, 700_000));
    }

    #[test]
    fn only_the_included_are_sampled_and_never_more_than_the_cap() {
        for seed in 0..50_u8 {
            let all = Rates {
                base_ppm: 1_000_000,
                new_ppm: 0,
                ..RATES
            };
            let sampled = sampled_targets(&[seed; 32], &PAYLOADS, &all);
            assert_eq!(sampled & !0x000F_FFFF, 0);
            assert_eq!(sampled.count_ones(), 15);
            let none = Rates { limit: 0, ..all };
            assert_eq!(sampled_targets(&[seed; 32], &PAYLOADS, &none), 0);
        }
    }

    #[test]
    fn whoever_is_on_probation_is_drawn_before_all_others() {
        let payloads = Payloads {
            on_probation: 0xF000_0000_0000_0007,
            ..PAYLOADS
        };
        for seed in 0..20_u8 {
            let drawn = |limit| {
                let rates = Rates { limit, ..RATES };
                sampled_targets(&[seed; 32], &payloads, &rates)
            };
            assert_eq!(drawn(15) & 0b111, 0b111);
            assert_eq!((drawn(2) & 0b111).count_ones(), 2);
            assert_eq!(drawn(2) & !0b111, 0, "only included ones are drawn");
        }
    }

    #[test]
    fn the_limit_follows_the_cap_the_newcomers_and_the_witnesses() {
        let wide = u64::MAX;
        assert_eq!(limit(4, 1, 0b1111, 0b0011, wide), 4);
        assert_eq!(limit(4, 1, 0b1111, 0b0111, wide), 8);
        assert_eq!(limit(4, 1, 0b1111, !0b1111, wide), 4);
        let of_eligible = [0, 3, 5, 6, 12, 15].map(|n| limit(4, 1, 1, 0, (1 << n) - 1));
        assert_eq!(of_eligible, [1, 1, 1, 2, 4, 4]);
        assert_eq!(limit(u16::MAX, 1, 1, 1, wide), 21);
        assert_eq!(limit(u16::MAX, 3, 1, 1, 0b1_1111), 5);
    }

    #[test]
    fn equal_orders_go_by_lower_index() {
        let mut lowest = [UNDRAWN; 2];
        for (order, index) in [(7, 9), (7, 3), (8, 0), (7, 5)] {
            keep_lowest(&mut lowest, draw(order, index));
        }
        assert_eq!(lowest.map(drawn_index), [3, 5]);
    }

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
            assert_eq!((bitmap.count_ones(), bitmap & bit(5)), (7, 0));
        }
    }

    #[test]
    fn the_seats_sit_out_where_five_others_remain_and_else_make_it_five() {
        let drawn = |eligible| jury(&[7; 32], eligible, 0b1, 0b1110, 0b0110);
        assert_eq!(drawn(0b1_1111_1111).indices().len(), 5);
        assert!(drawn(0b1_1111_1111).indices().iter().all(|j| *j >= 4));
        let four_others = drawn(0b1111_1111);
        assert_eq!(four_others.indices().len(), 5);
        assert!(four_others.indices().iter().all(|j| *j >= 3));
        assert_eq!(drawn(0b1_1111).indices().len(), 4);
        assert!(drawn(0b111).indices().is_empty());
    }
}
