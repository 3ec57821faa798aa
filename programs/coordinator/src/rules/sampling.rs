//! Who is audited (protocol §7): all from the round's seed, in exact integers.
//!
//! Owns the scores x(tag, ...), the sample of a round and its cap. Never rounds, so that Python
//! draws the same. Next: `seats`, which draws who judges.

use super::bits::with_bits;
use super::hash::{digest, Digest, TAG_SAMPLE};
use super::MAX_PARTICIPANTS;
use crate::constants::PPM;

/// How much of a round is sampled.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Probability of an established participant in ppm.
    pub base_ppm: u32,
    /// Probability of a new one, or of one with a recent strike.
    pub new_ppm: u32,
    /// Most targets of a round.
    pub cap: u16,
    /// The seed of the round before was lost: probabilities double (at most 1), the cap stays.
    pub is_doubled: bool,
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

/// x(tag, ...): the first 8 bytes, little-endian, of `H(tag, seed, fields)`.
#[must_use]
pub fn score(tag: &[u8], seed: &Digest, fields: &[u8]) -> u64 {
    let hash = digest(&[tag, seed, fields]);
    hash.first_chunk().copied().map_or(0, u64::from_le_bytes)
}

/// Whether x * 10^6 < p * 2^64: a probability of 10^6 samples always, 0 never.
#[must_use]
pub fn is_sampled(x: u64, p_ppm: u64) -> bool {
    product(x, PPM) < u128::from(p_ppm) << u64::BITS
}

/// The sampled targets among the `included`, at most `rates.cap`, as a bitmap.
///
/// Those in `is_new` are sampled with `new_ppm`. Over the cap those with the smallest x / p stay,
/// equal ones by lower index.
#[must_use]
pub fn sampled_targets(sigma: &Digest, included: u64, is_new: u64, rates: &Rates) -> u64 {
    let mut ranked = [UNDRAWN; MAX_PARTICIPANTS];
    let kept = usize::from(rates.cap).min(MAX_PARTICIPANTS);
    let kept = ranked.get_mut(..kept).unwrap_or_default();
    for (bit, target) in members(included) {
        let new = is_new & bit != 0;
        let x = score(TAG_SAMPLE, sigma, &target.to_le_bytes());
        if is_sampled(x, rates.ppm(new)) {
            // There are two probabilities, so x / p orders as x times the other one. Where that
            // is 0 it samples nobody, and 1 does as well.
            keep_lowest(kept, rank(product(x, rates.ppm(!new).max(1)), target));
        }
    }
    let drawn = drawn(kept);
    members(u64::MAX)
        .filter(|(_, target)| drawn.clone().any(|other| other == *target))
        .fold(0, |bitmap, (bit, _)| bitmap | bit)
}
