//! The run: identity, phase, parameters, totals.
//!
//! Owns the phase and the totals that the vault must cover. Never counts votes: `crate::rules`
//! does. Next: `clock` for pauses, `money` for what moves the totals, `params` for their bounds.

use anchor_lang::prelude::*;

use crate::constants::*;
use crate::errors::CoordinatorError;
use crate::math::{add, rem};
use crate::state::params::Params;
use crate::state::phase::Phase;
use crate::state::Roster;

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
    /// 1 pause requested, 2 parameters pending, 4 the last Warmup was given.
    pub flags: u8,
    /// Zero.
    pub pad: u8,
    /// Identity chosen by the authority; with its key the PDA seed.
    pub run_id: [u8; 32],
    /// Funds, pauses, changes parameters, admits.
    pub authority: Pubkey,
    /// May reverse a conviction that was appealed, or for which the breaker held; nothing else.
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
    /// Participants convicted in that epoch, for each kind of audit.
    pub convicted: [u64; 4],
    /// Rounds (mod 64) whose seed was lost.
    pub lost_seeds: u64,
    /// Run clock at which the run first waited since the last closed round, or NONE.
    pub waiting_since: u64,
    /// Rewards that wait for the end of a probation.
    pub total_withheld: u64,
    /// Parameters at the creation, which bound every later request.
    pub created: Params,
    /// Owners admitted before the first round; 0 from then on.
    pub expected_admitted: u64,
    /// All that were members in `expected_epoch`, without those gone since.
    pub expected_members: u64,
    /// Those of the epoch before.
    pub expected_before: u64,
    /// Epoch of the last open.
    pub expected_epoch: u64,
    /// Zero.
    pub reserved: [u8; 144],
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

    /// The newest round that was opened; `NONE` before the first one.
    #[must_use]
    pub fn newest_round(&self) -> u64 {
        if self.is(Phase::Commit) || self.is(Phase::Attest) {
            self.round
        } else {
            self.round.checked_sub(1).unwrap_or(NONE)
        }
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
        self.phase_end_slot = slots.map_or(Ok(NONE), |slots| add(slot, slots))?;
        self.quorum_slot = NONE;
        Ok(())
    }

    /// Whether the run has finished, and so long ago that no case can be open.
    #[must_use]
    pub fn is_past_cases(&self, slot: u64) -> bool {
        let last = self
            .finished_slot
            .saturating_add(self.params.longest_path_slots());
        self.finished_slot != NONE && slot > last && self.num_audits == 0
    }

    /// Puts pending parameters in force if their delay has passed, `self.round`, about to open,
    /// starts an epoch, and the pool can pay them; else they go on waiting. Returns whether it did.
    pub fn apply_pending_params(&mut self, slot: u64, roster: &Roster) -> Result<bool> {
        if self.flags & RUN_PARAMS_PENDING == 0 {
            return Ok(false);
        }
        let from = add(self.params_requested_slot, self.params.param_delay_slots)?;
        let first = rem(self.round, u64::from(self.params.rounds_per_epoch))? == 0;
        let reward = self.pending_params.reward_per_payload;
        if slot < from || !first || !self.can_pay(roster, reward) {
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
            self.total_withheld,
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
        let sound = self.flags & !(RUN_PAUSE_REQUESTED | RUN_PARAMS_PENDING | RUN_LAST_WARMUP) == 0
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
pub(super) mod tests {
    use super::*;

    /// A run that waits for members, with small numbers.
    pub fn run() -> Box<Run> {
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

    /// The same run after a request in slot 500 for a reward of 9.
    fn with_raise() -> Box<Run> {
        let mut run = run();
        run.pending_params = run.params;
        run.pending_params.reward_per_payload = 9;
        run.params_requested_slot = 500;
        run.flags = RUN_PARAMS_PENDING;
        run
    }

    #[test]
    fn pending_parameters_wait_for_the_delay_and_for_an_epoch() {
        let mut run = with_raise();
        run.reward_pool = 9 * 2 * 4;
        let roster = two_trainers();
        run.round = 8;
        assert!(!run.apply_pending_params(509, &roster).unwrap());
        run.round = 9;
        assert!(!run.apply_pending_params(600, &roster).unwrap());
        run.round = 12;
        assert!(run.apply_pending_params(510, &roster).unwrap());
        assert_eq!((run.params.reward_per_payload, run.flags), (9, 0));
        let again = run.apply_pending_params(700, &roster).unwrap();
        assert!(!again && run.invariant().is_ok());
    }

    #[test]
    fn a_raise_waits_until_the_pool_holds_an_epoch_of_it() {
        let mut run = with_raise();
        run.round = 12;
        let roster = two_trainers();
        run.reward_pool = 9 * 2 * 4 - 1;
        assert!(!run.apply_pending_params(510, &roster).unwrap());
        assert_eq!(run.flags, RUN_PARAMS_PENDING);
        run.reward_pool += 1;
        assert!(run.apply_pending_params(510, &roster).unwrap());
        run.reward_pool = 0;
        assert!(run.can_pay(&roster, 9) && run.can_pay(&roster, 1) && !run.can_pay(&roster, 10));
        run.params.min_members = 3;
        run.reward_pool = 10 * 3 * 4 - 1;
        assert!(
            !run.can_pay(&roster, 10),
            "at least for as many as open a round"
        );
    }

    /// A roster with two trainers, one that only witnesses and one that has left.
    fn two_trainers() -> Box<Roster> {
        let mut roster = Box::new(<Roster as bytemuck::Zeroable>::zeroed());
        let owner = |place: u8| Pubkey::new_from_array([place; 32]);
        for (place, roles) in [(1, 3), (2, 1), (3, 2), (4, 3)] {
            let entry = &mut roster.entries[usize::from(place)];
            entry.join(owner(place), owner(place.saturating_add(9)), roles, 0);
        }
        roster.entries[4].leave(0);
        roster
    }

    #[test]
    fn waiting_counts_on_the_run_clock_from_the_first_moment_since_a_closed_round() {
        let mut run = run();
        run.stop_waiting();
        run.start_waiting(100).unwrap();
        run.flags |= RUN_LAST_WARMUP;
        run.start_waiting(900).unwrap();
        assert_eq!(run.waiting_since, 100);
        assert!(!run.has_waited_long(1_100) && run.has_waited_long(1_101));
        run.pause_total_slots = 50;
        assert!(!run.has_waited_long(1_150) && run.has_waited_long(1_151));
        run.stop_waiting();
        assert_eq!((run.waiting_since, run.flags), (NONE, 0));
        assert!(!run.has_waited_long(u64::MAX - 1));
    }

    #[test]
    fn the_invariant_sees_each_contradiction() {
        let broken: [fn(&mut Run); 6] = [
            |r| r.phase = 8,
            |r| r.flags = 8,
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
