//! One audit or case, from the sample to the conviction (protocol §7, §8).
//!
//! Owns stages, windows, seats and jurors. Holds a copy of all that it needs from Round and Roster,
//! so that reuse of the ring touches nothing. Never counts votes: `crate::rules` does.
//! Next: `crate::audit` for the transitions.

use anchor_lang::prelude::*;

use crate::constants::*;
use crate::errors::{refuse, CoordinatorError};
use crate::math::{add, sub};
use crate::rules::slashing::{split, Split};

/// Subject of an audit or case.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditKind {
    /// The gradient behind an included payload (P3, P5).
    Work = 0,
    /// The canonical form of an included payload (P2).
    Payload = 1,
    /// A root vote (P8).
    Root = 2,
    /// A byte of possession (P10).
    Possession = 3,
}

impl AuditKind {
    /// Every kind in the order of its number.
    pub const ALL: [AuditKind; 4] = [
        AuditKind::Work,
        AuditKind::Payload,
        AuditKind::Root,
        AuditKind::Possession,
    ];

    /// The kind with this number, or `UnknownAuditKind`.
    pub fn from_number(number: u8) -> Result<AuditKind> {
        AuditKind::ALL
            .get(usize::from(number))
            .copied()
            .ok_or_else(|| refuse(CoordinatorError::UnknownAuditKind))
    }

    /// The place of this kind where something is kept for each.
    #[must_use]
    pub fn place(self) -> usize {
        self as usize
    }

    /// The bit of this kind in a set of kinds.
    #[must_use]
    pub fn bit(self) -> u8 {
        1 << (self as u8)
    }
}

/// Where an audit stands.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Paid in advance; the seed does not exist yet.
    Requested = 0,
    /// Waits for the target's openings.
    Openings = 1,
    /// Seats commit verdicts.
    Commit = 2,
    /// Seats reveal verdicts.
    Reveal = 3,
    /// Over without an accusation; a bonded case may still follow.
    Settled = 4,
    /// Accused; waits for the seed of the case.
    Accused = 5,
    /// The jury commits votes.
    CaseCommit = 6,
    /// The jury reveals votes.
    CaseReveal = 7,
    /// Decided; the slashed lamports wait in escrow.
    Decided = 8,
}

impl Stage {
    /// Every stage in the order of its number.
    pub const ALL: [Stage; 9] = [
        Stage::Requested,
        Stage::Openings,
        Stage::Commit,
        Stage::Reveal,
        Stage::Settled,
        Stage::Accused,
        Stage::CaseCommit,
        Stage::CaseReveal,
        Stage::Decided,
    ];

    /// The stage with this number, or `InvariantViolated`.
    pub fn from_number(number: u8) -> Result<Stage> {
        Stage::ALL
            .get(usize::from(number))
            .copied()
            .ok_or_else(|| refuse(CoordinatorError::InvariantViolated))
    }
}

/// A seat of the audit.
#[zero_copy]
pub struct Seat {
    /// Hash of the verdict, zeros until committed.
    pub commit: [u8; 32],
    /// The revealed sketch.
    pub sketch: [i32; SKETCH_LEN],
    /// Index of the witness.
    pub index: u16,
    /// Revealed verdict: 0 none, 1 ok, 2 mismatch, 3 unavailable, 4 inconclusive.
    pub verdict: u8,
    /// `SEAT_*` flags.
    pub flags: u8,
    /// Zero.
    pub pad: [u8; 4],
}

/// A seat of the jury.
#[zero_copy]
pub struct Juror {
    /// Hash of the vote, zeros until committed.
    pub commit: [u8; 32],
    /// Index of the participant.
    pub index: u16,
    /// Revealed vote, numbered as verdicts.
    pub verdict: u8,
    /// `SEAT_*` flags.
    pub flags: u8,
    /// Zero.
    pub pad: [u8; 4],
}

/// An audit of one participant's part in one round.
#[account(zero_copy)]
pub struct Audit {
    /// Layout version.
    pub version: u8,
    /// PDA bump.
    pub bump: u8,
    /// See `AuditKind`.
    pub kind: u8,
    /// See `Stage`.
    pub stage: u8,
    /// Outcome of the seats: 0 none, 1 cleared, 3 accused, 4 no openings, 5 unproven,
    /// 6 not audited, 7 unavailable to the seats.
    pub outcome: u8,
    /// Outcome of the jury: 0 none, 1 convicted, 2 acquitted, 3 not proven, 4 excluded,
    /// 5 no openings.
    pub case_outcome: u8,
    /// `AUDIT_*` flags.
    pub flags: u16,
    /// Seats that judge now: 3, up to 5 after one extension, up to 7 after two.
    pub num_seats: u8,
    /// Seats that exist: 3 to 7.
    pub num_available: u8,
    /// Jurors.
    pub num_jurors: u8,
    /// First seat that acts now: 0, or the first of the newest extension.
    pub first_acting: u8,
    /// Index of the target.
    pub target: u16,
    /// Possession: index of the payload in question; else 65535.
    pub subject: u16,
    /// Index of the challenger, or 65535.
    pub challenger_index: u16,
    /// Zero.
    pub pad: [u8; 6],
    /// The run.
    pub run: Pubkey,
    /// Payer of the rent.
    pub payer: Pubkey,
    /// Owner of the target.
    pub owner: Pubkey,
    /// Challenger that posted the bond or paid in advance; zeros if there is none.
    pub challenger: Pubkey,
    /// Header hash of the target (possession: of the subject).
    pub header_hash: [u8; 32],
    /// Root vote of the target.
    pub root_vote: [u8; 32],
    /// Canonical root of the round.
    pub canonical_root: [u8; 32],
    /// Seed of the round's audits; zeros where the round has none.
    pub seed: [u8; 32],
    /// Root over the openings; zeros until posted.
    pub openings_root: [u8; 32],
    /// Seed of the jury.
    pub case_seed: [u8; 32],
    /// Round.
    pub round: u64,
    /// Previous included round of the target's header, or NONE.
    pub previous_included: u64,
    /// Witnesses eligible at the open of the round.
    pub eligible: u64,
    /// Members that vouched for the target's payload.
    pub vouchers: u64,
    /// Attest bitmap of the target.
    pub attest_bitmap: u64,
    /// Reward paid for the payload.
    pub reward_paid: u64,
    /// Vesting bucket of that reward.
    pub reward_window: u64,
    /// Last moment of the stage on the run clock, inclusive.
    pub stage_end: u64,
    /// Last moment in which a case may be opened, on the run clock.
    pub case_end: u64,
    /// Slot whose hash draws the jury, or NONE.
    pub case_seed_slot: u64,
    /// Last moment in which the convicted owner may appeal, on the run clock.
    pub appeal_end: u64,
    /// Fees paid in advance that are still here.
    pub prepaid: u64,
    /// Bond that is still here.
    pub bond: u64,
    /// Taken from stake, in escrow.
    pub escrow_stake: u64,
    /// Taken from unbonding tickets, in escrow.
    pub escrow_unbonding: u64,
    /// Taken from unvested rewards, in escrow.
    pub escrow_unvested: u64,
    /// Lamports that a slash did not find.
    pub shortfall: u64,
    /// Reward of an included payload at the open of the round: the price of all penalties here.
    pub reward_price: u64,
    /// Cost of missing openings, fixed when the seed of the round froze.
    pub openings_price: u64,
    /// Fees that the jurors got from the escrow: they are no longer in it.
    pub juror_fees: u64,
    /// `decided_round` of the target before this conviction, which a reversal restores; else NONE.
    pub decided_before: u64,
    /// `jailed_until_round` that this conviction gave its target, or zero: a reversal ends that
    /// jail, and no other.
    pub jailed_until: u64,
    /// Last moments of commits that ended with somebody silent, on the run clock: of the first
    /// seats, of both extensions, of the jury.
    pub commit_ends: [u64; 4],
    /// Possession bytes that the target attested.
    pub possession: [u8; 64],
    /// The seats in order.
    pub seats: [Seat; NUM_SEATS],
    /// The jury in order.
    pub jurors: [Juror; NUM_JURORS],
}

impl Audit {
    /// Bytes of the account.
    pub const SIZE: usize = 8 + std::mem::size_of::<Audit>();

    /// The stage as a name.
    pub fn stage(&self) -> Result<Stage> {
        Stage::from_number(self.stage)
    }

    /// Whether the audit is in `stage`.
    #[must_use]
    pub fn is(&self, stage: Stage) -> bool {
        self.stage == stage as u8
    }

    /// Whether an `AUDIT_*` flag is set.
    #[must_use]
    pub fn has_flag(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Starts `stage`, which accepts actions for `slots` more after `clock`.
    pub fn enter(&mut self, stage: Stage, clock: u64, slots: u64) -> Result<()> {
        self.stage = stage as u8;
        self.stage_end = add(clock, slots)?;
        Ok(())
    }

    /// Refuses unless the audit is in `stage` and its window is open.
    pub fn require(&self, stage: Stage, clock: u64) -> Result<()> {
        ensure!(self.is(stage), CoordinatorError::WrongStage);
        ensure!(clock <= self.stage_end, CoordinatorError::WindowOver);
        Ok(())
    }

    /// The seats that judge now.
    #[must_use]
    pub fn judging(&self) -> &[Seat] {
        self.seats
            .get(..usize::from(self.num_seats))
            .unwrap_or_default()
    }

    /// The jurors.
    #[must_use]
    pub fn jury(&self) -> &[Juror] {
        self.jurors
            .get(..usize::from(self.num_jurors))
            .unwrap_or_default()
    }

    /// The place of participant `index` in the jury, or `NotSeated`.
    pub fn juror_mut(&mut self, index: u16) -> Result<&mut Juror> {
        self.jurors
            .iter_mut()
            .take(usize::from(self.num_jurors))
            .find(|juror| juror.index == index)
            .ok_or_else(|| refuse(CoordinatorError::NotSeated))
    }

    /// Lamports that the conviction took.
    pub fn taken(&self) -> Result<u64> {
        add(
            add(self.escrow_stake, self.escrow_unbonding)?,
            self.escrow_unvested,
        )
    }

    /// Lamports in escrow: what the conviction took, without the fees of the jurors.
    pub fn escrow(&self) -> Result<u64> {
        sub(self.taken()?, self.juror_fees)
    }

    /// Where the lamports go that the conviction took, if it stands; the jurors' fees are part of
    /// what would burn.
    pub fn parts(&self) -> Result<Split> {
        Ok(split(self.taken()?, self.has_flag(AUDIT_BONDED)))
    }

    /// Conditions that every mutation keeps.
    pub fn invariant(&self) -> Result<()> {
        let stage = self.stage()?;
        let is_case = matches!(
            stage,
            Stage::Accused | Stage::CaseCommit | Stage::CaseReveal | Stage::Decided
        );
        let seats = usize::from(self.num_seats);
        let available = usize::from(self.num_available);
        let sound = seats <= available
            && available <= NUM_SEATS
            && usize::from(self.num_jurors) <= NUM_JURORS
            && usize::from(self.target) < MAX_PARTICIPANTS
            && (self.case_outcome != 0) == (stage == Stage::Decided)
            && (is_case || self.escrow()? == 0)
            && (self.bond == 0 || is_case);
        ensure!(sound, CoordinatorError::InvariantViolated);
        Ok(())
    }
}
