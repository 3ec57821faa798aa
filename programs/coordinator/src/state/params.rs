//! The parameters of a run, checked together.
//!
//! Owns every bound of protocol §12. Never changes a parameter: `Run` decides when.
//! Next: `run`, which stores the current and the pending ones.

use anchor_lang::prelude::*;

use crate::constants::*;
use crate::errors::{refuse, CoordinatorError};
use crate::rules::seeds::{grid, wanted_slot};

/// Parameters of a run (protocol §12). Windows in slots, money in lamports, chances in ppm.
#[derive(
    AnchorSerialize,
    AnchorDeserialize,
    bytemuck::Pod,
    bytemuck::Zeroable,
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
)]
#[repr(C)]
pub struct Params {
    /// Stake that a participant deposits, and that unbonding in part may not go below.
    pub min_stake_lamports: u64,
    /// Stake that a member must keep: at least half of `min_stake_lamports`.
    pub keep_stake_lamports: u64,
    /// Reward of an included payload.
    pub reward_per_payload: u64,
    /// Fee for missing so often that a member becomes inactive.
    pub absence_fee: u64,
    /// Fee of a witness for a verdict.
    pub witness_fee: u64,
    /// The cost of one recomputation, the unit of the witness penalty.
    pub recompute_cost: u64,
    /// Bond of a case.
    pub bond_lamports: u64,
    /// Sequences that one payload trains on.
    pub sequences_per_payload: u64,
    /// Rounds of the run (R of the schedule).
    pub max_rounds: u64,
    /// Last round during which joining is possible.
    pub join_until_round: u64,
    /// Window of Warmup.
    pub warmup_slots: u64,
    /// Window of Commit.
    pub commit_slots: u64,
    /// Window of Attest.
    pub attest_slots: u64,
    /// Slots after Attest before a round may be closed void.
    pub close_grace_slots: u64,
    /// Slots that a halted run rests.
    pub halt_slots: u64,
    /// Slots at least from the close of a round to the slot whose hash seeds its audits.
    pub seed_delay_slots: u64,
    /// Slots until a reward may be claimed, counted from the end of its bucket.
    pub vesting_slots: u64,
    /// Slots until a withdrawn stake is paid.
    pub unbond_slots: u64,
    /// Slots that pauses may last, in all, within `unbond_slots`.
    pub max_pause_slots: u64,
    /// Slots between the request of new parameters and their first possible epoch.
    pub param_delay_slots: u64,
    /// Window for opening a case after a close.
    pub case_slots: u64,
    /// Window for the openings of an audit.
    pub openings_slots: u64,
    /// Window of verdict commits.
    pub verdict_commit_slots: u64,
    /// Window of verdict reveals.
    pub verdict_reveal_slots: u64,
    /// Window of the jury's commits.
    pub jury_commit_slots: u64,
    /// Window of the jury's reveals.
    pub jury_reveal_slots: u64,
    /// Window of an appeal.
    pub appeal_slots: u64,
    /// Delay of slashes while the breaker holds.
    pub breaker_slots: u64,
    /// Rounds of an epoch.
    pub rounds_per_epoch: u32,
    /// Residuals are zeroed every so many rounds.
    pub residual_rounds: u32,
    /// A checkpoint is stored every so many rounds.
    pub checkpoint_every: u32,
    /// Rounds after which a witness may be seated.
    pub seat_after_rounds: u32,
    /// Sampling chance of an established participant, in ppm.
    pub p_base_ppm: u32,
    /// Sampling chance of a new participant, in ppm.
    pub p_new_ppm: u32,
    /// Sketches differ where this times their squared distance exceeds the larger squared norm.
    pub sketch_factor: u32,
    /// Participants that the run admits.
    pub capacity: u16,
    /// Rounds kept on chain.
    pub ring: u16,
    /// Members needed to open a round.
    pub min_members: u16,
    /// A round opens only when the seed of the round this far back is settled.
    pub keep_rounds: u16,
    /// Audits of a round.
    pub audit_cap: u16,
    /// Participants that only witness.
    pub max_witness_only: u16,
    /// 0 open, 1 allowlist.
    pub admission: u8,
    /// Seats that an eligible witness takes in a round, at most, on average.
    pub seat_load: u8,
    /// Zero.
    pub reserved: [u8; 6],
}

impl Params {
    /// Checks all parameters together; a named error for each contradiction.
    pub fn validate(&self) -> Result<()> {
        self.validate_sizes()?;
        self.validate_windows()?;
        self.validate_amounts()?;
        self.validate_audits()?;
        ensure!(
            self.admission <= ADMISSION_ALLOWLIST,
            CoordinatorError::UnknownAdmission
        );
        ensure!(self.reserved == [0; 6], CoordinatorError::ReservedNotZero);
        Ok(())
    }

    fn validate_sizes(&self) -> Result<()> {
        use CoordinatorError as E;
        let max = u16::try_from(MAX_PARTICIPANTS).unwrap_or(u16::MAX);
        let capacity = self.capacity;
        ensure!((1..=max).contains(&capacity), E::CapacityOutOfRange);
        let members = 1..=capacity;
        ensure!(members.contains(&self.min_members), E::MinMembersOutOfRange);
        ensure!(self.keep_rounds >= MIN_KEEP_ROUNDS, E::KeepRoundsTooFew);
        let kept = self.keep_rounds.saturating_add(2);
        ensure!((kept..=max).contains(&self.ring), E::RingOutOfRange);
        ensure!(self.max_witness_only <= capacity, E::WitnessOnlyOutOfRange);
        let counts = [
            (self.sequences_per_payload, MAX_SEQUENCES),
            (self.max_rounds, u64::from(u32::MAX)),
            (u64::from(self.rounds_per_epoch), MAX_EPOCH_ROUNDS),
            (u64::from(self.residual_rounds), MAX_RESIDUAL_ROUNDS),
            (u64::from(self.checkpoint_every), MAX_EPOCH_ROUNDS),
        ];
        let fits = counts.iter().all(|&(c, most)| (1..=most).contains(&c));
        let is_near = self.seat_after_rounds <= MAX_SEAT_AFTER_ROUNDS;
        ensure!(fits && is_near, E::CountOutOfRange);
        Ok(())
    }

    fn validate_amounts(&self) -> Result<()> {
        use CoordinatorError as E;
        let amounts = [
            self.min_stake_lamports,
            self.keep_stake_lamports,
            self.reward_per_payload,
            self.absence_fee,
            self.witness_fee,
            self.recompute_cost,
            self.bond_lamports,
        ];
        let fits = amounts.iter().all(|&amount| amount <= MAX_PARAM_LAMPORTS);
        ensure!(fits, E::AmountTooLarge);
        let rewards = self.reward_per_payload.saturating_mul(MIN_STAKE_REWARDS);
        let half = self.min_stake_lamports.div_ceil(2);
        let kept = rewards.max(half).max(1)..=self.min_stake_lamports;
        let keeps = kept.contains(&self.keep_stake_lamports);
        ensure!(keeps, E::KeepStakeOutOfRange);
        let ten = self.reward_per_payload.saturating_mul(MAX_FEE_REWARDS);
        let tenth = self.absence_fee.saturating_mul(MIN_STAKE_ABSENCES);
        let is_small = self.absence_fee <= ten && tenth <= self.keep_stake_lamports;
        ensure!(is_small, E::AbsenceFeeTooLarge);
        ensure!(self.recompute_cost <= ten, E::FeeTooLarge);
        let two = self
            .reward_per_payload
            .saturating_mul(MAX_WITNESS_FEE_REWARDS);
        ensure!(self.witness_fee <= two, E::FeeTooLarge);
        let fees = self.witness_fee.saturating_mul(MIN_BOND_FEES);
        let rewards = self.reward_per_payload.saturating_mul(MIN_BOND_REWARDS);
        ensure!(self.bond_lamports >= fees.max(rewards), E::BondTooSmall);
        let is_affordable = self.bond_lamports <= self.min_stake_lamports;
        ensure!(is_affordable, E::BondTooLarge);
        Ok(())
    }

    fn validate_windows(&self) -> Result<()> {
        use CoordinatorError as E;
        let fixed = [
            self.seed_delay_slots,
            self.vesting_slots,
            self.unbond_slots,
            self.case_slots,
        ];
        let mut windows = self.growing_windows().into_iter().chain(fixed);
        ensure!(windows.clone().all(|slots| slots > 0), E::WindowZero);
        let fits = windows.all(|slots| slots <= MAX_WINDOW_SLOTS);
        let phases = [
            self.warmup_slots,
            self.commit_slots,
            self.attest_slots,
            self.close_grace_slots,
            self.halt_slots,
        ];
        let fits = fits && phases.iter().all(|&slots| slots <= MAX_PHASE_SLOTS);
        ensure!(fits, E::WindowTooLong);
        ensure!(
            self.seed_delay_slots < SLOT_HASHES_ENTRIES,
            E::SeedDelayTooLong
        );
        ensure!(
            self.max_pause_slots.saturating_mul(2) <= self.unbond_slots,
            E::PauseTooLong
        );
        let longest = self.longest_path_slots();
        ensure!(self.vesting_slots > longest, E::VestingTooShort);
        ensure!(self.unbond_slots > longest, E::UnbondTooShort);
        Ok(())
    }

    /// The longest time from the open of a round to the last slash that it can cause, in slots.
    ///
    /// It is the sum of the round, the audit or a case opened at the last moment, the jury, appeal
    /// and breaker. The audit has a seed that is retargeted once, openings, and verdicts with two
    /// extensions; the jury its seed and windows. A seed waits for the next slot of its grid.
    #[must_use]
    pub fn longest_path_slots(&self) -> u64 {
        let sum = |slots: &[u64]| slots.iter().fold(0_u64, |sum, &s| sum.saturating_add(s));
        let seed = |grid: u64| {
            let wait = self.seed_delay_slots.saturating_add(grid.saturating_sub(1));
            wait.saturating_add(SLOT_HASHES_ENTRIES)
        };
        let (seed, jury_seed) = (seed(self.round_grid()), seed(self.jury_grid()));
        let verdict = sum(&[self.verdict_commit_slots, self.verdict_reveal_slots]);
        let audit = sum(&[seed, seed, self.openings_slots, verdict, verdict, verdict]);
        sum(&[
            self.commit_slots,
            self.attest_slots,
            self.close_grace_slots,
            audit.max(self.case_slots),
            jury_seed,
            jury_seed,
            self.jury_commit_slots,
            self.jury_reveal_slots,
            self.appeal_slots,
            self.breaker_slots,
        ])
    }

    /// The slot whose hash seeds the audits of a round that closes in `slot`. A member that holds
    /// its attestation back chooses when Attest ends.
    pub fn round_seed_slot(&self, slot: u64) -> Result<u64> {
        named(wanted_slot(slot, self.seed_delay_slots, self.round_grid()))
    }

    /// The slot whose hash seeds the jury of a case that begins in `slot`. The last seat to reveal
    /// chooses when its audit ends.
    pub fn jury_seed_slot(&self, slot: u64) -> Result<u64> {
        named(wanted_slot(slot, self.seed_delay_slots, self.jury_grid()))
    }

    fn round_grid(&self) -> u64 {
        grid(self.seed_delay_slots, self.attest_slots.div_euclid(2))
    }

    fn jury_grid(&self) -> u64 {
        grid(
            self.seed_delay_slots,
            self.verdict_reveal_slots.div_euclid(4),
        )
    }

    /// The longest time from the open of a round until no jury judges it any more: the longest path
    /// without appeal and breaker, in which nobody votes.
    #[must_use]
    pub fn jury_duty_slots(&self) -> u64 {
        let after = self.appeal_slots.saturating_add(self.breaker_slots);
        self.longest_path_slots().saturating_sub(after)
    }

    fn validate_audits(&self) -> Result<()> {
        use CoordinatorError as E;
        let (base, new) = (u64::from(self.p_base_ppm), u64::from(self.p_new_ppm));
        ensure!(base <= new && new <= PPM, E::ChanceOutOfRange);
        self.validate_deterrence()?;
        let expected = base.saturating_mul(u64::from(self.capacity)).div_ceil(PPM);
        let cap = u64::from(self.audit_cap);
        let fits = expected..=u64::from(self.capacity);
        ensure!(fits.contains(&cap), E::AuditCapOutOfRange);
        let factors = MIN_SKETCH_FACTOR..=MAX_SKETCH_FACTOR;
        let is_known = factors.contains(&self.sketch_factor);
        ensure!(is_known, E::SketchFactorOutOfRange);
        let loads = 1..=MAX_SEAT_LOAD;
        ensure!(loads.contains(&self.seat_load), E::SeatLoadOutOfRange);
        Ok(())
    }

    /// Half of what a member keeps must pay for its first refusal of openings (`rules::refusal`).
    /// A run that samples nobody has no refusals.
    fn validate_deterrence(&self) -> Result<()> {
        let chance = u128::from(self.p_base_ppm);
        let deters = chance.saturating_mul(u128::from(self.keep_stake_lamports));
        let earns = u128::from(self.reward_per_payload).saturating_mul(MIN_CHANCE_REWARDS_PPM);
        let is_enough = chance == 0 || deters >= earns;
        ensure!(is_enough, CoordinatorError::ChanceTooSmall);
        Ok(())
    }
}

/// A slot, or a refusal where it has no number.
fn named(slot: Option<u64>) -> Result<u64> {
    slot.ok_or_else(|| refuse(CoordinatorError::MathOverflow))
}
