//! `H(tag, fields...)`: SHA-256 over a length-prefixed tag and already encoded fields.
//!
//! Owns the tags used on chain. Never concatenates: fields stay slices, so nothing is copied before
//! the syscall. Next: `root` and `chain_hash` for the votes and the chain hash built on it.

use solana_sha256_hasher::hashv;

/// A SHA-256 digest.
pub type Digest = [u8; 32];

/// Tag of a root vote, u32 little-endian length first, as every tag here.
pub const TAG_ROOT: &[u8] = b"\x0a\0\0\0troth:root";
/// Tag of a round's seed.
pub const TAG_SIGMA: &[u8] = b"\x0b\0\0\0troth:sigma";
/// Tag of the chain hash after a close.
pub const TAG_CHAIN: &[u8] = b"\x0b\0\0\0troth:chain";
/// Tag of the list of commits inside the chain hash.
pub const TAG_COMMITS: &[u8] = b"\x0d\0\0\0troth:commits";
/// Tag of the list of attestations inside the chain hash.
pub const TAG_ATTESTS: &[u8] = b"\x0d\0\0\0troth:attests";
/// Tag of an absorbed event.
pub const TAG_EVENT: &[u8] = b"\x0b\0\0\0troth:event";
/// Tag of the score that samples a target.
pub const TAG_SAMPLE: &[u8] = b"\x0c\0\0\0troth:sample";
/// Tag of the score that seats a witness.
pub const TAG_SEAT: &[u8] = b"\x0a\0\0\0troth:seat";
/// Tag of the seed of a case.
pub const TAG_CASE: &[u8] = b"\x0a\0\0\0troth:case";
/// Tag of the score that seats a juror.
pub const TAG_JURY: &[u8] = b"\x0f\0\0\0troth:committee";
/// Tag of the verdict of a seat.
pub const TAG_VERDICT: &[u8] = b"\x0d\0\0\0troth:verdict";
/// Tag of the vote of a juror.
pub const TAG_VOTE: &[u8] = b"\x0a\0\0\0troth:vote";
/// Tag of a sketch.
pub const TAG_SKETCH: &[u8] = b"\x0c\0\0\0troth:sketch";

/// SHA-256 over the concatenation of `slices`; the first one is a tag of this module.
#[must_use]
pub fn digest(slices: &[&[u8]]) -> Digest {
    hashv(slices).to_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tag_carries_its_own_length() {
        for tag in [
            TAG_ROOT,
            TAG_SIGMA,
            TAG_CHAIN,
            TAG_COMMITS,
            TAG_ATTESTS,
            TAG_EVENT,
            TAG_SAMPLE,
            TAG_SEAT,
            TAG_CASE,
            TAG_JURY,
            TAG_VERDICT,
            TAG_VOTE,
            TAG_SKETCH,
        ] {
            let (length, text) = tag.split_at(4);
            assert_eq!(
                u32::from_le_bytes(length.try_into().unwrap()) as usize,
                text.len()
            );
            assert!(text.starts_with(b"troth:") && text.is_ascii());
        }
    }
}
