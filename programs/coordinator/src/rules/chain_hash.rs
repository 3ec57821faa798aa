//! The chain hash (protocol §11): one digest that commits to the whole history of a run.
//!
//! Owns how a closed round and an event are folded in. Never copies a list: the digests are taken
//! over slices that point into the accounts. Little-endian hosts only, like the chain.
//! Next: `crate::round::close` folds rounds, `crate::events` folds events.

use super::hashing::{digest, Digest, TAG_ATTESTS, TAG_CHAIN, TAG_COMMITS, TAG_EVENT};
use super::MAX_PARTICIPANTS;

/// One commit of a round.
#[derive(Clone, Copy, Debug)]
pub struct Commit<'a> {
    /// Participant index, below 64.
    pub index: usize,
    /// Header hash, zeros in a root-only step.
    pub header_hash: &'a Digest,
    /// Root vote.
    pub root_vote: &'a Digest,
}

/// One attestation of a round.
#[derive(Clone, Copy, Debug)]
pub struct Attestation<'a> {
    /// Participant index, below 64.
    pub index: usize,
    /// The participants whose payloads it holds.
    pub bitmap: &'a u64,
    /// First byte of each possession hash.
    pub possession: &'a [u8; 64],
}

/// The sets and the result of a closed round.
#[derive(Clone, Copy, Debug)]
pub struct Closed<'a> {
    /// Round number.
    pub round: u64,
    /// Members fixed at the open.
    pub members: u64,
    /// Trainers fixed at the open.
    pub trainers: u64,
    /// Included payloads.
    pub included: u64,
    /// Canonical root, zeros if void.
    pub canonical_root: &'a Digest,
}

/// `H("troth:commits", ...)` over the commits in ascending index.
pub fn commits_digest<'a>(commits: impl Iterator<Item = Commit<'a>>) -> Digest {
    let indices = index_bytes();
    let mut slices: Vec<&[u8]> = Vec::with_capacity(1 + 3 * MAX_PARTICIPANTS);
    slices.push(TAG_COMMITS);
    for commit in commits {
        slices.push(
            indices
                .get(commit.index)
                .map_or(&[], |index| index.as_slice()),
        );
        slices.push(commit.header_hash);
        slices.push(commit.root_vote);
    }
    digest(&slices)
}

/// `H("troth:attests", ...)` over the attestations in ascending index.
pub fn attests_digest<'a>(attestations: impl Iterator<Item = Attestation<'a>>) -> Digest {
    let indices = index_bytes();
    let mut slices: Vec<&[u8]> = Vec::with_capacity(1 + 3 * MAX_PARTICIPANTS);
    slices.push(TAG_ATTESTS);
    for attestation in attestations {
        slices.push(
            indices
                .get(attestation.index)
                .map_or(&[], |index| index.as_slice()),
        );
        slices.push(bytemuck::bytes_of(attestation.bitmap));
        slices.push(attestation.possession);
    }
    digest(&slices)
}

/// The chain hash after a round closed.
#[must_use]
pub fn after_close(
    previous: &Digest,
    closed: &Closed<'_>,
    commits: &Digest,
    attests: &Digest,
) -> Digest {
    digest(&[
        TAG_CHAIN,
        previous,
        &closed.round.to_le_bytes(),
        &closed.members.to_le_bytes(),
        &closed.trainers.to_le_bytes(),
        commits,
        attests,
        &closed.included.to_le_bytes(),
        closed.canonical_root,
    ])
}

/// The chain hash after an event; `None` when the body is longer than a u32 can tell.
#[must_use]
pub fn after_event(previous: &Digest, sequence: u64, kind: u8, body: &[u8]) -> Option<Digest> {
    let length = u32::try_from(body.len()).ok()?.to_le_bytes();
    Some(digest(&[
        TAG_EVENT,
        previous,
        &sequence.to_le_bytes(),
        &[kind],
        &length,
        body,
    ]))
}

/// Every index as u16 little-endian, so that slices have something to point at.
fn index_bytes() -> [[u8; 2]; MAX_PARTICIPANTS] {
    let mut bytes = [[0; 2]; MAX_PARTICIPANTS];
    for (index, cell) in (0_u16..).zip(&mut bytes) {
        *cell = index.to_le_bytes();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_plain_concatenations() {
        let (header, vote, possession, bitmap) = ([1; 32], [2; 32], [3; 64], 0x0102_0304_u64);
        let commit = Commit {
            index: 63,
            header_hash: &header,
            root_vote: &vote,
        };
        let flat = [TAG_COMMITS, &63_u16.to_le_bytes(), &header, &vote].concat();
        assert_eq!(commits_digest([commit].into_iter()), digest(&[&flat]));
        let attestation = Attestation {
            index: 5,
            bitmap: &bitmap,
            possession: &possession,
        };
        let flat = [TAG_ATTESTS, &[5, 0], &[4, 3, 2, 1, 0, 0, 0, 0], &possession].concat();
        assert_eq!(attests_digest([attestation].into_iter()), digest(&[&flat]));
    }

    #[test]
    fn an_event_is_bound_to_its_place_and_kind() {
        let at = |sequence, kind, body: &[u8]| after_event(&[0; 32], sequence, kind, body);
        assert_ne!(at(1, 2, b"x"), at(2, 2, b"x"));
        assert_ne!(at(1, 2, b"x"), at(1, 3, b"x"));
        assert_ne!(at(1, 2, b"x"), at(1, 2, b"y"));
    }
}
