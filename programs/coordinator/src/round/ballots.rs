//! Reads the ballots of a round: votes for a candidate, and payloads vouched for.
//!
//! Owns the way from accounts to the inputs of `crate::rules::root` and of the chain hash.
//! Never changes anything. Next: `close`.

use anchor_lang::prelude::*;

use crate::rules::bitmap::with_bits;
use crate::rules::chain_hash::{self, Attestation, Closed, Commit};
use crate::rules::hashing::Digest;
use crate::rules::root::{root_vote, Tally, Turnout};
use crate::state::{Roster, Round};

/// The sets that the outcome of `round` depends on.
#[must_use]
pub fn turnout(round: &Round) -> Turnout {
    Turnout {
        trainers: round.trainers,
        members: round.members,
        committed: round.committed,
    }
}

/// The commits whose root vote is for `candidate`.
#[inline(never)]
#[must_use]
pub fn votes_for(run: &Pubkey, roster: &Roster, round: &Round, candidate: &Digest) -> u64 {
    let run = run.to_bytes();
    let mut votes = 0;
    for (bit, (ballot, entry)) in with_bits(round.ballots.iter().zip(&roster.entries)) {
        if round.committed & bit == 0 {
            continue;
        }
        let expected = root_vote(&run, round.round, &entry.owner.to_bytes(), candidate);
        if ballot.root_vote == expected {
            votes |= bit;
        }
    }
    votes
}

/// The attestations of `round`, counted.
#[inline(never)]
#[must_use]
pub fn tally(round: &Round) -> Tally {
    let mut tally = Tally::default();
    for (bit, ballot) in with_bits(&round.ballots) {
        if round.attested & bit != 0 {
            tally.add(ballot.attest_bitmap);
        }
    }
    tally
}

/// The chain hash with the record of `round` folded into `previous`.
#[inline(never)]
#[must_use]
pub fn fold(previous: &Digest, round: &Round) -> Digest {
    let ballots = || with_bits(&round.ballots).enumerate();
    let commits = ballots()
        .filter(|(_, (bit, _))| round.committed & bit != 0)
        .map(|(index, (_, ballot))| Commit {
            index,
            header_hash: &ballot.header_hash,
            root_vote: &ballot.root_vote,
        });
    let attests = ballots()
        .filter(|(_, (bit, _))| round.attested & bit != 0)
        .map(|(index, (_, ballot))| Attestation {
            index,
            bitmap: &ballot.attest_bitmap,
            possession: &ballot.possession,
        });
    let closed = Closed {
        round: round.round,
        members: round.members,
        trainers: round.trainers,
        included: round.included,
        canonical_root: &round.canonical_root,
    };
    let commits = chain_hash::commits_digest(commits);
    let attests = chain_hash::attests_digest(attests);
    chain_hash::after_close(previous, &closed, &commits, &attests)
}
