//! Sketches (protocol §7, T3): 64 projections that a seat reveals with its verdict.
//!
//! Owns the hash of a sketch, when two differ, and which of a report are compared. Never makes one:
//! that needs the gradient.
//! Next: `quorum`, which looks for a majority among them.

use super::hashing::{digest, Digest, TAG_SKETCH};
use super::verdict::Verdict;
use crate::constants::SKETCH_LEN;

/// The projections.
pub type Sketch = [i32; SKETCH_LEN];

/// `H("troth:sketch", 64 little-endian int32)`.
#[must_use]
pub fn hash(sketch: &Sketch) -> Digest {
    digest(&[TAG_SKETCH, sketch.map(i32::to_le_bytes).as_flattened()])
}

/// Whether a sketch proves no work: all zeros.
#[must_use]
pub fn is_zero(sketch: &Sketch) -> bool {
    sketch.iter().all(|&value| value == 0)
}

/// Whether `verdict` may be shown with `sketch`: `ok` and `mismatch` speak of a gradient.
#[must_use]
pub fn proves(verdict: Verdict, sketch: &Sketch) -> bool {
    let needs_work = matches!(verdict, Verdict::Ok | Verdict::Mismatch);
    !(needs_work && is_zero(sketch))
}

/// Whether factor * sum (a - b)^2 > max(sum a^2, sum b^2); both sides stay below 2^102.
///
/// 100 says beyond a tenth of the larger norm.
#[must_use]
pub fn differ(first: &Sketch, second: &Sketch, factor: u32) -> bool {
    let pairs = first.iter().zip(second);
    let distance = sum_of_squares(pairs.map(|(a, b)| a.abs_diff(*b)));
    distance.saturating_mul(u128::from(factor)) > norm(first).max(norm(second))
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

/// The report of a judge; verdict and sketch only once they are revealed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report<'a> {
    /// Whether it committed a verdict.
    pub has_committed: bool,
    /// The revealed verdict.
    pub verdict: Option<Verdict>,
    /// The revealed sketch; that of a judge that says `unavailable` is ignored.
    pub sketch: Option<&'a Sketch>,
}

impl Report<'_> {
    /// The sketch, if its verdict needs one.
    #[must_use]
    pub fn shown(&self) -> Option<&Sketch> {
        self.sketch
            .filter(|_| self.verdict != Some(Verdict::Unavailable))
    }

    /// The sketch, if it takes part in comparisons: zeros prove no work.
    #[must_use]
    pub fn compared(&self) -> Option<&Sketch> {
        self.shown().filter(|sketch| !is_zero(sketch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ok_and_mismatch_need_work_behind_them() {
        let (zeros, mut some) = ([0; SKETCH_LEN], [0; SKETCH_LEN]);
        some[63] = -1;
        for (verdict, needs_work) in [
            (Verdict::Ok, true),
            (Verdict::Mismatch, true),
            (Verdict::Unavailable, false),
            (Verdict::Inconclusive, false),
        ] {
            assert_eq!(proves(verdict, &zeros), !needs_work);
            assert!(proves(verdict, &some));
        }
    }

    #[test]
    fn the_extremes_do_not_overflow() {
        let (low, high) = ([i32::MIN; SKETCH_LEN], [i32::MAX; SKETCH_LEN]);
        for factor in [1, 100, u32::MAX] {
            assert!(differ(&low, &high, factor) && differ(&high, &low, factor));
            assert!(!differ(&low, &low, factor));
            assert!(!differ(&[0; SKETCH_LEN], &[0; SKETCH_LEN], factor));
        }
    }

    #[test]
    fn the_factor_tells_which_part_of_the_larger_norm_still_agrees() {
        let sketch = |value| [value; SKETCH_LEN];
        for (factor, agrees) in [(25, 800), (100, 900), (2_500, 980)] {
            let norm = sketch(1_000);
            assert!(!differ(&norm, &sketch(agrees), factor));
            assert!(differ(&norm, &sketch(agrees - 1), factor));
            assert!(!differ(&sketch(-agrees), &sketch(-1_000), factor));
            assert!(differ(&sketch(0), &sketch(1), factor));
        }
    }
}
