//! The commitments of judges (protocol §7, §8): a seat to its verdict, a juror to its vote.
//!
//! Owns the four verdicts and the two hashes that hide them until the reveal. Never counts.
//! Next: `quorum`.

use super::hashing::{digest, Digest, TAG_VERDICT, TAG_VOTE};

/// The verdict of a judge; 0 on chain stands for none.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The work is there. In an exact case: the fault is not.
    Ok = 1,
    /// The work is not there. In an exact case: the fault is.
    Mismatch = 2,
    /// Nobody served what must be judged.
    Unavailable = 3,
    /// The numbers decide nothing.
    Inconclusive = 4,
}

impl Verdict {
    /// The verdict with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Ok),
            2 => Some(Self::Mismatch),
            3 => Some(Self::Unavailable),
            4 => Some(Self::Inconclusive),
            _ => None,
        }
    }

    /// The byte on chain.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Ok => 1,
            Self::Mismatch => 2,
            Self::Unavailable => 3,
            Self::Inconclusive => 4,
        }
    }
}

/// The fields that a verdict and a vote have in common.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// The run.
    pub run: &'a Digest,
    /// The round that is judged.
    pub round: u64,
    /// Index of the target.
    pub target: u16,
    /// Index of the judge.
    pub witness: u16,
    /// The verdict.
    pub verdict: Verdict,
    /// Root over the openings, zeros without any.
    pub evidence: &'a Digest,
}

impl Statement<'_> {
    /// `H("troth:verdict", run, round, target, witness, verdict, evidence, sketch hash, salt)`.
    #[must_use]
    pub fn verdict_hash(&self, sketch_hash: &Digest, salt: &Digest) -> Digest {
        digest(&[
            TAG_VERDICT,
            self.run,
            &self.round.to_le_bytes(),
            &self.target.to_le_bytes(),
            &self.witness.to_le_bytes(),
            &[self.verdict.number()],
            self.evidence,
            sketch_hash,
            salt,
        ])
    }

    /// `H("troth:vote", run, round, target, case kind, witness, verdict, evidence, sketch hash,
    /// salt)`. In the exact cases the sketch is 64 zeros.
    #[must_use]
    pub fn vote_hash(&self, case_kind: u8, sketch_hash: &Digest, salt: &Digest) -> Digest {
        digest(&[
            TAG_VOTE,
            self.run,
            &self.round.to_le_bytes(),
            &self.target.to_le_bytes(),
            &[case_kind],
            &self.witness.to_le_bytes(),
            &[self.verdict.number()],
            self.evidence,
            sketch_hash,
            salt,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_has_one_number_and_others_have_none() {
        let known: Vec<Verdict> = (0..=u8::MAX).filter_map(Verdict::from_number).collect();
        assert_eq!(known.len(), 4);
        for verdict in known {
            assert_eq!(Verdict::from_number(verdict.number()), Some(verdict));
        }
    }

    #[test]
    fn each_field_is_in_both_hashes() {
        let base = Statement {
            run: &[1; 32],
            round: 2,
            target: 3,
            witness: 4,
            verdict: Verdict::Ok,
            evidence: &[5; 32],
        };
        #[rustfmt::skip]
        let changed = [
            Statement { run: &[9; 32], ..base },
            Statement { round: 9, ..base },
            Statement { target: 9, ..base },
            Statement { witness: 9, ..base },
            Statement { verdict: Verdict::Mismatch, ..base },
            Statement { evidence: &[9; 32], ..base },
        ];
        let (sketch, salt) = ([6; 32], [7; 32]);
        for other in changed {
            let (first, second) = (
                base.verdict_hash(&sketch, &salt),
                base.vote_hash(0, &sketch, &salt),
            );
            assert_ne!(first, other.verdict_hash(&sketch, &salt));
            assert_ne!(second, other.vote_hash(0, &sketch, &salt));
        }
        let vote = base.vote_hash(0, &sketch, &salt);
        assert_ne!(vote, base.vote_hash(1, &sketch, &salt));
        assert_ne!(vote, base.vote_hash(0, &salt, &salt));
        assert_ne!(vote, base.vote_hash(0, &sketch, &sketch));
    }
}
