//! Sketches (protocol §7, T3): 64 projections that a seat reveals with its verdict.
//!
//! Owns the hash of a sketch and when two differ. Never makes one: that needs the gradient.
//! Next: `quorum`, which looks for a majority among them.

use super::hashing::{digest, Digest, TAG_SKETCH};
use crate::constants::SKETCH_LEN;

/// Two sketches differ beyond a tenth of the larger norm: a hundredth of its square.
const DIFFERENCE_FACTOR: u128 = 100;

/// The projections.
pub type Sketch = [i32; SKETCH_LEN];

/// `H("troth:sketch", 64 little-endian int32)`.
#[must_use]
pub fn hash(sketch: &Sketch) -> Digest {
    digest(&[TAG_SKETCH, sketch.map(i32::to_le_bytes).as_flattened()])
}

/// Whether 100 * sum (a - b)^2 > max(sum a^2, sum b^2); both sides stay below 2^77.
#[must_use]
pub fn differ(first: &Sketch, second: &Sketch) -> bool {
    let pairs = first.iter().zip(second);
    let distance = sum_of_squares(pairs.map(|(a, b)| a.abs_diff(*b)));
    distance.saturating_mul(DIFFERENCE_FACTOR) > norm(first).max(norm(second))
}

/// Sum of the squares of a sketch.
fn norm(sketch: &Sketch) -> u128 {
    sum_of_squares(sketch.iter().map(|value| value.unsigned_abs()))
}

/// Sum of squares; 64 of them stay below 2^70.
fn sum_of_squares(values: impl Iterator<Item = u32>) -> u128 {
    values
        .map(|value| u128::from(u64::from(value).wrapping_mul(u64::from(value))))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extremes_do_not_overflow() {
        let (low, high) = ([i32::MIN; SKETCH_LEN], [i32::MAX; SKETCH_LEN]);
        assert!(differ(&low, &high) && differ(&high, &low));
        assert!(!differ(&low, &low) && !differ(&[0; SKETCH_LEN], &[0; SKETCH_LEN]));
    }

    #[test]
    fn a_tenth_of_the_larger_norm_still_agrees() {
        let sketch = |value| [value; SKETCH_LEN];
        assert!(!differ(&sketch(1_000), &sketch(900)));
        assert!(differ(&sketch(1_000), &sketch(899)));
        assert!(!differ(&sketch(-900), &sketch(-1_000)));
        assert!(differ(&sketch(0), &sketch(1)));
    }
}
