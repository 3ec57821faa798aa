//! Votes about the state root and what a round decides by them (protocol §4).
//!
//! Owns the root vote, the thresholds, and the counting of up to 64 attestations at once, one bit
//! plane per power of two. Never compares votes: the caller says which commits voted for the
//! candidate. Next: `crate::round::close`, which pays and punishes by the result.

use super::bitmap::count;
use super::hashing::{digest, Digest, TAG_ROOT};

/// Enough planes for a count of 64.
const PLANES: usize = 7;

/// How often each of 64 participants was vouched for: plane p holds bit p of every count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    planes: [u64; PLANES],
    attestations: u64,
}

impl Tally {
    /// Adds one attestation; bit i of `bitmap` vouches for participant i.
    pub fn add(&mut self, bitmap: u64) {
        let mut carry = bitmap;
        for plane in &mut self.planes {
            let both = *plane & carry;
            *plane ^= carry;
            carry = both;
        }
        self.attestations = self.attestations.saturating_add(1);
    }

    /// How many attestations were added.
    #[must_use]
    pub fn attestations(&self) -> u64 {
        self.attestations
    }

    /// Those vouched for by at least two thirds of the attestations received (none of none).
    #[must_use]
    pub fn available(&self) -> u64 {
        if self.attestations == 0 {
            return 0;
        }
        self.at_least(self.attestations.saturating_mul(2).div_ceil(3))
    }

    /// Those whose count is at least `threshold`, compared plane by plane from the top.
    fn at_least(&self, threshold: u64) -> u64 {
        let (mut greater, mut equal) = (0, u64::MAX);
        let mut mask = 1_u64 << (PLANES - 1);
        for plane in self.planes.iter().rev() {
            if threshold & mask == 0 {
                greater |= equal & plane;
                equal &= !plane;
            } else {
                equal &= plane;
            }
            mask >>= 1;
        }
        greater | equal
    }
}

/// The sets of a round that its outcome depends on.
#[derive(Clone, Copy, Debug)]
pub struct Turnout {
    /// Trainers fixed at the open.
    pub trainers: u64,
    /// Members fixed at the open.
    pub members: u64,
    /// Trainers that committed.
    pub committed: u64,
}

/// The possible ends of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Too few acted: the round closes void whatever the candidate.
    Void,
    /// The candidate root lacks its majorities: refused, nothing changes.
    NotCanonical,
    /// The candidate root is canonical.
    Closed {
        /// The members whose payloads every client applies.
        included: u64,
        /// Canonical votes left out because too few vouched for their payload.
        unavailable: u64,
    },
}

/// `H("troth:root", run, round, owner, state root)`: a vote that nobody else can copy.
#[must_use]
pub fn root_vote(run: &Digest, round: u64, owner: &Digest, state_root: &Digest) -> Digest {
    digest(&[TAG_ROOT, run, &round.to_le_bytes(), owner, state_root])
}

/// Decides a round with an Attest phase; `votes` are the commits that voted the candidate.
#[must_use]
pub fn decide(turnout: &Turnout, votes: u64, tally: &Tally) -> Outcome {
    if tally.attestations().saturating_mul(2) < count(turnout.members) || turnout.is_too_thin() {
        return Outcome::Void;
    }
    if !turnout.is_canonical(votes) {
        return Outcome::NotCanonical;
    }
    let canonical = turnout.committed & votes;
    let included = canonical & tally.available();
    Outcome::Closed {
        included,
        unavailable: canonical & !included,
    }
}

/// Decides a root-only step, which has neither payloads nor attestations.
#[must_use]
pub fn decide_root_only(turnout: &Turnout, votes: u64) -> Outcome {
    if turnout.is_too_thin() {
        return Outcome::Void;
    }
    if turnout.is_canonical(votes) {
        Outcome::Closed {
            included: 0,
            unavailable: 0,
        }
    } else {
        Outcome::NotCanonical
    }
}

/// Trainers that take the strike P4: the unavailable, where half of the commits were included.
#[must_use]
pub fn unavailable_strikes(committed: u64, included: u64, unavailable: u64) -> u64 {
    if count(included).saturating_mul(2) >= count(committed) {
        unavailable
    } else {
        0
    }
}

impl Turnout {
    /// Fewer than half of the trainers committed, or nobody did.
    fn is_too_thin(&self) -> bool {
        self.committed == 0 || count(self.committed).saturating_mul(2) < count(self.trainers)
    }

    /// More than half of the commits, and no less than half of the trainers, voted for it.
    fn is_canonical(&self, votes: u64) -> bool {
        let votes = count(votes & self.committed);
        votes.saturating_mul(2) > count(self.committed)
            && votes.saturating_mul(2) >= count(self.trainers)
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    fn tally_of(bitmaps: &[u64]) -> Tally {
        let mut tally = Tally::default();
        bitmaps.iter().for_each(|&bitmap| tally.add(bitmap));
        tally
    }

    /// Counting by hand, one participant at a time.
    fn available_by_hand(bitmaps: &[u64]) -> u64 {
        let yes = |i: u32| bitmaps.iter().filter(|b| *b >> i & 1 == 1).count();
        (0..64)
            .filter(|&i| !bitmaps.is_empty() && 3 * yes(i) >= 2 * bitmaps.len())
            .fold(0, |m, i| m | 1 << i)
    }

    #[test]
    fn planes_count_like_a_loop_over_participants() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for size in 0..=64_usize {
            let bitmaps: Vec<u64> = (0..size)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    state | (state >> 13)
                })
                .collect();
            assert_eq!(
                tally_of(&bitmaps).available(),
                available_by_hand(&bitmaps),
                "{size}"
            );
        }
        assert_eq!(tally_of(&[u64::MAX; 64]).available(), u64::MAX);
    }

    const FOUR: Turnout = Turnout {
        trainers: 0b1111,
        members: 0b1111,
        committed: 0b1111,
    };

    #[test]
    fn half_of_the_members_silent_is_not_void_but_fewer_is() {
        let half = tally_of(&[0b1111; 2]);
        assert_eq!(
            decide(&FOUR, 0b1111, &half),
            Outcome::Closed {
                included: 0b1111,
                unavailable: 0
            }
        );
        assert_eq!(decide(&FOUR, 0b1111, &tally_of(&[0b1111])), Outcome::Void);
    }

    #[test]
    fn a_third_of_the_trainers_must_commit() {
        let six = Turnout {
            trainers: 0b11_1111,
            members: 0b11_1111,
            committed: 0b1,
        };
        assert_eq!(decide(&six, 1, &tally_of(&[1; 6])), Outcome::Void);
        let nobody = Turnout {
            committed: 0,
            ..FOUR
        };
        assert_eq!(decide(&nobody, 0, &tally_of(&[0; 4])), Outcome::Void);
    }

    #[test]
    fn canonical_needs_more_than_half_of_the_commits_and_half_of_the_trainers() {
        let all = tally_of(&[0b1111; 4]);
        assert_eq!(decide(&FOUR, 0b0011, &all), Outcome::NotCanonical);
        assert_eq!(
            decide(&FOUR, 0b0111, &all),
            Outcome::Closed {
                included: 0b0111,
                unavailable: 0
            }
        );
        let three_of_six = Turnout {
            trainers: 0b11_1111,
            members: 0b11_1111,
            committed: 0b111,
        };
        let six = tally_of(&[0b111; 6]);
        assert_eq!(decide(&three_of_six, 0b011, &six), Outcome::NotCanonical);
        assert_eq!(
            decide(&three_of_six, 0b111, &six),
            Outcome::Closed {
                included: 0b111,
                unavailable: 0
            }
        );
    }

    #[test]
    fn a_vote_without_a_commit_counts_for_nothing() {
        let two = Turnout {
            committed: 0b0011,
            ..FOUR
        };
        assert_eq!(
            decide(&two, 0b1101, &tally_of(&[0b11; 4])),
            Outcome::NotCanonical
        );
    }

    #[test]
    fn strikes_need_half_of_the_commits_included() {
        assert_eq!(unavailable_strikes(0b1111, 0b0011, 0b1000), 0b1000);
        assert_eq!(unavailable_strikes(0b1111, 0b0001, 0b1000), 0);
    }

    #[test]
    fn a_root_only_step_needs_the_same_majorities_and_no_attestation() {
        assert_eq!(
            decide_root_only(&FOUR, 0b0111),
            Outcome::Closed {
                included: 0,
                unavailable: 0
            }
        );
        assert_eq!(decide_root_only(&FOUR, 0b0011), Outcome::NotCanonical);
        assert_eq!(
            decide_root_only(
                &Turnout {
                    committed: 0,
                    ..FOUR
                },
                0
            ),
            Outcome::Void
        );
    }

    #[test]
    fn a_vote_binds_each_of_its_fields() {
        let (run, owner, root) = ([1; 32], [2; 32], [3; 32]);
        let vote = root_vote(&run, 7, &owner, &root);
        assert_ne!(vote, root_vote(&[9; 32], 7, &owner, &root));
        assert_ne!(vote, root_vote(&run, 8, &owner, &root));
        assert_ne!(vote, root_vote(&run, 7, &[9; 32], &root));
        assert_ne!(vote, root_vote(&run, 7, &owner, &[9; 32]));
    }
}
