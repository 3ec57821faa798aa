//! Bitmaps of participants: bit i of a `u64` stands for participant index i.
//!
//! Owns the three operations that every rule needs. Never knows what a bitmap means.
//! Next: `root`, which counts many bitmaps at once.

/// The bitmap that holds only `index`; empty when the index is 64 or more.
#[must_use]
pub fn bit(index: usize) -> u64 {
    u32::try_from(index)
        .ok()
        .and_then(|shift| 1_u64.checked_shl(shift))
        .unwrap_or(0)
}

/// Whether `bitmap` holds `index`.
#[must_use]
pub fn contains(bitmap: u64, index: usize) -> bool {
    bitmap & bit(index) != 0
}

/// How many participants `bitmap` holds.
#[must_use]
pub fn count(bitmap: u64) -> u64 {
    u64::from(bitmap.count_ones())
}

/// Pairs each element with its one-bit bitmap, in ascending index, for at most 64 elements.
pub fn with_bits<I: IntoIterator>(items: I) -> impl Iterator<Item = (u64, I::Item)> {
    std::iter::successors(Some(1_u64), |bit| bit.checked_mul(2)).zip(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_is_empty_beyond_the_capacity() {
        assert_eq!(
            (bit(0), bit(63), bit(64), bit(usize::MAX)),
            (1, 1 << 63, 0, 0)
        );
    }

    #[test]
    fn with_bits_stops_after_sixty_four() {
        let pairs: Vec<(u64, usize)> = with_bits(0..70).collect();
        assert_eq!(pairs.len(), 64);
        assert!(pairs.iter().all(|&(one, index)| one == bit(index)));
    }

    #[test]
    fn count_and_contains_agree() {
        let bitmap = 0b1011;
        assert_eq!(count(bitmap), 3);
        assert!(contains(bitmap, 3) && !contains(bitmap, 2) && !contains(bitmap, 64));
    }
}
