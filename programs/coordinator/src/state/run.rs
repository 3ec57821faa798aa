//! The run: identity, clock, parameters, totals.
//!
//! Owns the phase and the totals that the vault must cover. Never counts votes: `crate::rules`
//! does. Next: `money` for what moves the totals, `params` for their bounds.

use anchor_lang::prelude::*;

use crate::constants::*;
use crate::errors::CoordinatorError;
use crate::math::{add, rem, sub};
use crate::state::params::Params;
use crate::state::phase::Phase;

/// One training effort.
#[account(zero_copy)]
pub struct Run {
    /// Layout version.
    pub version: u8,
    /// PDA bump.
    pub bump: u8,
    /// PDA bump of the vault.
    pub vault_bump: u8,
    /// PDA bump of the roster.
    pub roster_bump: u8,
    /// See `Phase`.
    pub phase: u8,
    /// Phase to return to while paused.
    pub resume_phase: u8,
    /// 1 pause requested, 2 parameters pending.
    pub flags: u8,
    /// Zero.
    pub pad: u8,
    /// Identity chosen by the creator; the PDA seed.
    pub run_id: [u8; 32],
    /// Funds, pauses, changes parameters, admits.
    pub authority: Pubkey,
    /// May reverse a slash while the breaker holds; nothing else.
    pub council: Pubkey,
    /// Funds the pool and receives what is left over.
    pub funder: Pubkey,
    /// The roster account.
    pub roster: Pubkey,
    /// The vault account.
    pub vault: Pubkey,
    /// Hash of the run config.
    pub config_hash: [u8; 32],
    /// Hash of the data manifest.
    pub manifest_hash: [u8; 32],
    /// State root of the initial weights.
    pub genesis_root: [u8; 32],
    /// State root of the newest checkpoint.
    pub root: [u8; 32],
    /// Chain hash (protocol §11).
    pub chain_hash: [u8; 32],
    /// Slot of the creation.
    pub created_slot: u64,
    /// `round / rounds_per_epoch`.
    pub epoch: u64,
    /// Round that is open or opens next.
    pub round: u64,
    /// Position in the data before that round.
    pub cursor: u64,
    /// Round of `root`.
    pub root_round: u64,
    /// Cursor of `root`.
    pub root_cursor: u64,
    /// Round whose weights came from Warmup's stored root, not from the round before it.
    pub restart_round: u64,
    /// Round of that root.
    pub restart_root_round: u64,
    /// Slot in which the phase began.
    pub phase_start_slot: u64,
    /// Last slot of the phase, inclusive, or NONE.
    pub phase_end_slot: u64,
    /// Slot in which 4/5 had acted for the first time in this phase, or NONE.
    pub quorum_slot: u64,
    /// A checkpoint is stored at the close of the first round from here on.
    pub next_checkpoint_round: u64,
    /// Last round whose payloads are in the current weights and may still be corrected, or NONE.
    pub base_round: u64,
    /// Void rounds in a row.
    pub void_streak: u64,
    /// Rounds (mod 64) whose seed is neither frozen nor lost.
    pub seeds_pending: u64,
    /// Slot of the pause, or NONE.
    pub paused_at_slot: u64,
    /// Slot in which the last pause ended: the budget is renewed `unbond_slots` later.
    pub pause_window_start_slot: u64,
    /// Slots paused in that window.
    pub pause_used_slots: u64,
    /// Slots paused in all.
    pub pause_total_slots: u64,
    /// Slot of the last parameter request, or NONE.
    pub params_requested_slot: u64,
    /// Slot in which the run finished, or NONE.
    pub finished_slot: u64,
    /// Number of the next absorbed event.
    pub event_sequence: u64,
    /// Participant accounts open.
    pub num_participants: u64,
    /// Round accounts open.
    pub num_rounds: u64,
    /// Checkpoint accounts open.
    pub num_checkpoints: u64,
    /// Stakes.
    pub total_stake: u64,
    /// Tickets not paid yet.
    pub total_unbonding: u64,
    /// Rewards not vested yet.
    pub total_unvested: u64,
    /// Rewards vested and not claimed yet.
    pub total_claimable: u64,
    /// Bonds of cases.
    pub total_bonds: u64,
    /// Slashes within their appeal window.
    pub total_escrow: u64,
    /// Share of slashes.
    pub treasury: u64,
    /// Source of all rewards.
    pub reward_pool: u64,
    /// Rent of the vault account.
    pub vault_rent: u64,
    /// Parameters in force.
    pub params: Params,
    /// Parameters requested.
    pub pending_params: Params,
    /// Audit accounts open.
    pub num_audits: u64,
    /// Epoch that the next three fields speak about.
    pub audit_epoch: u64,
    /// Participants sampled in that epoch.
    pub sampled: u64,
    /// Participants accused in that epoch.
    pub accused: u64,
    /// Convictions for work in that epoch.
    pub num_convicted: u64,
    /// Rounds (mod 64) whose seed was lost.
    pub lost_seeds: u64,
    /// Zero.
    pub reserved: [u8; 176],
}

impl Run {
    /// Bytes of the account.
    pub const SIZE: usize = 8 + std::mem::size_of::<Run>();

    /// The phase as a name.
    pub fn phase(&self) -> Result<Phase> {
        Phase::from_number(self.phase)
    }

    /// Whether the run is in `phase`.
    #[must_use]
    pub fn is(&self, phase: Phase) -> bool {
        self.phase == phase as u8
    }

    /// Refuses with `RunFinished` in the last phase.
    pub fn require_unfinished(&self) -> Result<()> {
        ensure!(!self.is(Phase::Finished), CoordinatorError::RunFinished);
        Ok(())
    }

    /// Whether a round (or root-only step) is open, also underneath a pause.
    #[must_use]
    pub fn has_open_round(&self) -> bool {
        let cooldown = Phase::Cooldown as u8;
        match Phase::from_number(self.phase) {
            Ok(Phase::Paused) => self.resume_phase == cooldown,
            Ok(phase) => phase.is_in_round(),
            Err(_) => false,
        }
    }

    /// Starts `phase` in `slot`; its last slot is `slot + slots`, or none for `None`.
    pub fn enter(&mut self, phase: Phase, slot: u64, slots: Option<u64>) -> Result<()> {
        self.phase = phase as u8;
        self.phase_start_slot = slot;
        self.phase_end_slot = match slots {
            Some(slots) => add(slot, slots)?,
            None => NONE,
        };
        self.quorum_slot = NONE;
        Ok(())
    }

    /// Stops the clock; `resume_phase` (Commit: open the next round) follows.
    pub fn enter_pause(&mut self, slot: u64, resume_phase: Phase) {
        self.resume_phase = resume_phase as u8;
        self.phase = Phase::Paused as u8;
        self.paused_at_slot = slot;
        self.flags &= !RUN_PAUSE_REQUESTED;
    }

    /// Renews the pause budget once `unbond_slots` have passed since the last pause ended, so that
    /// no stretch of that length holds more than `max_pause_slots`.
    pub fn renew_pause_budget(&mut self, slot: u64) {
        let end = self
            .pause_window_start_slot
            .saturating_add(self.params.unbond_slots);
        if slot >= end {
            self.pause_used_slots = 0;
        }
    }

    /// Slots of the run's own clock, which stands still while the run is paused: windows of audits
    /// and cases are told in it, so that a pause moves all of them by its length.
    #[must_use]
    pub fn clock(&self, slot: u64) -> u64 {
        slot.min(self.paused_at_slot)
            .saturating_sub(self.pause_total_slots)
    }

    /// Slots of pauses in the window of the budget, the pause under way included.
    #[must_use]
    pub fn pauses(&self, slot: u64) -> u64 {
        let elapsed = match self.paused_at_slot {
            NONE => 0,
            since => slot.saturating_sub(since),
        };
        self.pause_used_slots.saturating_add(elapsed)
    }

    /// Whether the pause budget is spent in `slot`.
    #[must_use]
    pub fn is_pause_spent(&self, slot: u64) -> bool {
        self.pauses(slot) >= self.params.max_pause_slots
    }

    /// Restarts the clock: every deadline of the phase moves by the length of the pause.
    pub fn leave_pause(&mut self, slot: u64) -> Result<Phase> {
        let elapsed = sub(slot, self.paused_at_slot)?;
        self.pause_used_slots = add(self.pause_used_slots, elapsed)?;
        self.pause_total_slots = add(self.pause_total_slots, elapsed)?;
        self.pause_window_start_slot = slot;
        self.paused_at_slot = NONE;
        self.phase = self.resume_phase;
        for deadline in [
            &mut self.phase_start_slot,
            &mut self.phase_end_slot,
            &mut self.quorum_slot,
        ] {
            if *deadline != NONE {
                *deadline = add(*deadline, elapsed)?;
            }
        }
        self.phase()
    }

    /// Puts pending parameters in force if their delay has passed and `self.round`, about to
    /// open, starts an epoch. Returns whether it did.
    pub fn apply_pending_params(&mut self, slot: u64) -> Result<bool> {
        if self.flags & RUN_PARAMS_PENDING == 0 {
            return Ok(false);
        }
        let from = add(self.params_requested_slot, self.params.param_delay_slots)?;
        let first = rem(self.round, u64::from(self.params.rounds_per_epoch))? == 0;
        if slot < from || !first {
            return Ok(false);
        }
        self.params = self.pending_params;
        self.pending_params = bytemuck::Zeroable::zeroed();
        self.params_requested_slot = NONE;
        self.flags &= !RUN_PARAMS_PENDING;
        Ok(true)
    }

    /// Lamports that the vault owes to somebody, rent included.
    pub fn liabilities(&self) -> Result<u64> {
        [
            self.total_stake,
            self.total_unbonding,
            self.total_unvested,
            self.total_claimable,
            self.total_bonds,
            self.total_escrow,
            self.treasury,
            self.reward_pool,
        ]
        .iter()
        .try_fold(self.vault_rent, |sum, &total| add(sum, total))
    }

    /// The vault covers everything that it owes (protocol §2).
    pub fn check_vault(&self, vault: &AccountInfo) -> Result<()> {
        ensure!(
            vault.lamports() >= self.liabilities()?,
            CoordinatorError::VaultShort
        );
        Ok(())
    }

    /// Conditions that every mutation keeps.
    pub fn invariant(&self) -> Result<()> {
        let phase = self.phase()?;
        let paused = phase == Phase::Paused;
        let pending = self.flags & RUN_PARAMS_PENDING != 0;
        let sound = self.flags & !(RUN_PAUSE_REQUESTED | RUN_PARAMS_PENDING) == 0
            && paused == (self.paused_at_slot != NONE)
            && pending == (self.params_requested_slot != NONE)
            && (phase == Phase::Finished) == (self.finished_slot != NONE)
            && (self.phase_end_slot >= self.phase_start_slot)
            && self.round <= self.params.max_rounds;
        ensure!(sound, CoordinatorError::InvariantViolated);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Box<Run> {
        let mut run = Box::new(<Run as bytemuck::Zeroable>::zeroed());
        run.params.rounds_per_epoch = 4;
        run.params.max_rounds = 100;
        run.params.param_delay_slots = 10;
        run.params.unbond_slots = 1_000;
        run.params.max_pause_slots = 50;
        run.paused_at_slot = NONE;
        run.params_requested_slot = NONE;
        run.finished_slot = NONE;
        run.enter(Phase::WaitingForMembers, 1, None).unwrap();
        run
    }

    #[test]
    fn a_pause_moves_every_deadline_by_its_length() {
        let mut run = run();
        run.enter(Phase::Cooldown, 100, Some(20)).unwrap();
        run.quorum_slot = 110;
        run.enter_pause(115, Phase::Cooldown);
        assert!(run.invariant().is_ok() && run.has_open_round());
        assert_eq!(run.leave_pause(145).unwrap(), Phase::Cooldown);
        assert_eq!(
            (run.phase_start_slot, run.phase_end_slot, run.quorum_slot),
            (130, 150, 140)
        );
        assert_eq!((run.pause_used_slots, run.pause_total_slots), (30, 30));
        assert!(run.invariant().is_ok());
    }

    #[test]
    fn the_clock_of_the_run_stands_still_in_a_pause() {
        let mut run = run();
        assert_eq!(run.clock(100), 100);
        run.enter_pause(110, Phase::Commit);
        assert_eq!((run.clock(110), run.clock(130)), (110, 110));
        run.leave_pause(130).unwrap();
        assert_eq!((run.clock(130), run.clock(131)), (110, 111));
    }

    #[test]
    fn the_pause_budget_counts_the_pause_under_way_and_returns_long_after_it() {
        let mut run = run();
        run.pause_used_slots = 20;
        run.enter_pause(2_100, Phase::Warmup);
        assert!(!run.is_pause_spent(2_129) && run.is_pause_spent(2_130));
        run.leave_pause(2_110).unwrap();
        run.renew_pause_budget(3_109);
        assert_eq!(run.pause_used_slots, 30);
        run.renew_pause_budget(3_110);
        assert_eq!(run.pause_used_slots, 0);
    }

    #[test]
    fn pending_parameters_wait_for_the_delay_and_for_an_epoch() {
        let mut run = run();
        run.pending_params = run.params;
        run.pending_params.reward_per_payload = 9;
        run.params_requested_slot = 500;
        run.flags = RUN_PARAMS_PENDING;
        run.round = 8;
        assert!(!run.apply_pending_params(509).unwrap());
        run.round = 9;
        assert!(!run.apply_pending_params(600).unwrap());
        run.round = 12;
        assert!(run.apply_pending_params(510).unwrap());
        assert_eq!((run.params.reward_per_payload, run.flags), (9, 0));
        assert!(!run.apply_pending_params(700).unwrap() && run.invariant().is_ok());
    }

    #[test]
    fn the_invariant_sees_each_contradiction() {
        let broken: [fn(&mut Run); 6] = [
            |r| r.phase = 8,
            |r| r.flags = 4,
            |r| r.paused_at_slot = 1,
            |r| r.flags = RUN_PARAMS_PENDING,
            |r| r.finished_slot = 1,
            |r| r.round = 101,
        ];
        for breaks in broken {
            let mut run = run();
            assert!(run.invariant().is_ok());
            breaks(&mut run);
            assert!(run.invariant().is_err());
        }
    }
}
