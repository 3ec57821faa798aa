//! One round: sets fixed at its open, what was committed and attested, how it closed.
//!
//! Owns the layout of a ring position. Never decides anything: `crate::rules` and
//! `crate::round` do. Next: `run`.

use anchor_lang::prelude::*;

use crate::constants::*;
use crate::errors::{refuse, CoordinatorError};

/// The commit and the attestation of one member in a round.
#[zero_copy]
pub struct Ballot {
    /// Hash of the signed header; zeros until committed.
    pub header_hash: [u8; 32],
    /// Root vote; zeros until committed.
    pub root_vote: [u8; 32],
    /// The payloads that the member holds, by index.
    pub attest_bitmap: u64,
    /// Last included round before this one within the residual period, or NONE.
    pub previous_included: u64,
    /// Members that report this payload missing.
    pub missing_reports: u64,
    /// Byte i proves possession of payload i.
    pub possession: [u8; 64],
}

/// One position of the ring of rounds.
#[account(zero_copy)]
pub struct Round {
    /// Layout version.
    pub version: u8,
    /// PDA bump.
    pub bump: u8,
    /// 1 root-only, 2 closed, 4 void, 8 forced void, 16 and 32 Commit and Attest ran to the
    /// deadline, 64 sampled at twice the rate, for the seed before was lost.
    pub flags: u8,
    /// See `SeedStatus`.
    pub seed_status: u8,
    /// Position in the ring: `round` mod `ring`.
    pub position: u16,
    /// Zero.
    pub pad: [u8; 2],
    /// The run.
    pub run: Pubkey,
    /// Payer of the rent.
    pub payer: Pubkey,
    /// Round number, or NONE while the position was never used.
    pub round: u64,
    /// Epoch of the round.
    pub epoch: u64,
    /// Position in the data before the round.
    pub cursor: u64,
    /// Slot of the open.
    pub open_slot: u64,
    /// Slot in which Commit ended, or NONE.
    pub commit_end_slot: u64,
    /// Slot of the close, or NONE.
    pub close_slot: u64,
    /// Slot whose hash seeds the audits, or NONE.
    pub seed_slot: u64,
    /// Lamports for each included payload.
    pub reward_paid: u64,
    /// Vesting bucket of these rewards.
    pub reward_window: u64,
    /// Last round whose payloads are in this round's weights and may still be corrected, or NONE.
    pub base_round: u64,
    /// The hash that seeds.
    pub slot_hash: [u8; 32],
    /// Seed of the audits (sigma).
    pub seed: [u8; 32],
    /// State root of the weights on which the round trained; zeros until closed.
    pub canonical_root: [u8; 32],
    /// Members fixed at the open.
    pub members: u64,
    /// Trainers fixed at the open.
    pub trainers: u64,
    /// Witnesses that may be seated.
    pub eligible: u64,
    /// Participants sampled with `p_new_ppm`.
    pub is_new: u64,
    /// Trainers that committed.
    pub committed: u64,
    /// Members that attested.
    pub attested: u64,
    /// Payloads that every client applies.
    pub included: u64,
    /// Payloads removed by `report_missing`.
    pub struck: u64,
    /// Run clock at the freeze of the seed; every window of the audits counts from it.
    pub freeze_clock: u64,
    /// Run clock at the close; the window for cases counts from it.
    pub close_clock: u64,
    /// Targets with an audit paid in advance.
    pub requested: u64,
    /// Targets drawn when the seed froze; a correction changes nothing in it.
    pub sampled: u64,
    /// Targets whose audit was opened.
    pub audited: u64,
    /// Included payloads without a reward: an audit took it back, or their trainer was on probation
    /// and gone at the close.
    pub unpaid: u64,
    /// Reward of an included payload at the open: the price of the round's audits and penalties.
    pub reward_price: u64,
    /// Cost of missing openings of an established participant, fixed when the seed froze.
    pub price_base: u64,
    /// Cost of missing openings of a new participant, fixed when the seed froze.
    pub price_new: u64,
    /// Included payloads whose reward waits for the end of a probation.
    pub withheld: u64,
    /// Targets whose audit in this round decides their probation.
    pub probation: u64,
    /// Zero.
    pub reserved: [u8; 32],
    /// By index.
    pub ballots: [Ballot; MAX_PARTICIPANTS],
}

impl Round {
    /// Bytes of the account.
    pub const SIZE: usize = 8 + std::mem::size_of::<Round>();

    /// The ballot at `index`, or `IndexOutOfRange`.
    pub fn ballot(&self, index: u16) -> Result<&Ballot> {
        self.ballots
            .get(usize::from(index))
            .ok_or_else(|| refuse(CoordinatorError::IndexOutOfRange))
    }

    /// The ballot at `index`, or `IndexOutOfRange`.
    pub fn ballot_mut(&mut self, index: u16) -> Result<&mut Ballot> {
        self.ballots
            .get_mut(usize::from(index))
            .ok_or_else(|| refuse(CoordinatorError::IndexOutOfRange))
    }

    /// Whether a `ROUND_*` flag is set.
    #[must_use]
    pub fn has_flag(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Conditions that every mutation keeps: each set lies within the one that it grew from.
    pub fn invariant(&self) -> Result<()> {
        let within = |inner: u64, outer: u64| inner & !outer == 0;
        let sound = within(self.trainers, self.members)
            && within(self.committed, self.trainers)
            && within(self.attested, self.members)
            && within(self.included | self.struck, self.committed)
            && self.included & self.struck == 0
            && (self.included == 0 || self.has_flag(ROUND_CLOSED));
        ensure!(sound, CoordinatorError::InvariantViolated);
        Ok(())
    }
}
