//! Changes of the parameters of a run: which there are, and how far they go.
//!
//! Owns the comparison with those in force and those of the creation. Never applies a change: `Run`
//! does, at an epoch. Next: `params` for what must hold between parameters at any time.

use anchor_lang::prelude::*;

use crate::constants::{MAX_UPDATE_FACTOR, ROLE_TRAINER};
use crate::errors::CoordinatorError;
use crate::state::{Params, Roster, Run};

impl Params {
    /// Refuses an update of anything but the reward, longer windows and fewer `min_members`, and
    /// one that goes further from the parameters at the creation than twice, or half for the
    /// reward. A participant decides on them when it joins.
    pub fn validate_update(&self, created: &Params, new: &Params) -> Result<()> {
        use CoordinatorError as E;
        let is_same = self.with_changeable_of(new) == *new;
        ensure!(is_same, E::ImmutableParameter);
        ensure!(new.min_members <= self.min_members, E::MinMembersGrow);
        let reward = created.reward_per_payload;
        let rewards = reward.div_ceil(MAX_UPDATE_FACTOR)..=reward.saturating_mul(MAX_UPDATE_FACTOR);
        let is_near = rewards.contains(&new.reward_per_payload);
        ensure!(is_near, E::RewardOutOfRange);
        let windows = new.growing_windows();
        let shrinks = windows
            .iter()
            .zip(self.growing_windows())
            .any(|(w, is)| *w < is);
        ensure!(!shrinks, E::WindowShrinks);
        let most = created
            .growing_windows()
            .map(|w| w.saturating_mul(MAX_UPDATE_FACTOR));
        let fits = windows
            .iter()
            .zip(most)
            .all(|(window, most)| *window <= most);
        ensure!(fits, E::WindowTooLong);
        new.validate()
    }

    /// Windows that an update may lengthen: in them participants act or defend themselves.
    pub fn growing_windows(&self) -> [u64; 13] {
        [
            self.warmup_slots,
            self.commit_slots,
            self.attest_slots,
            self.close_grace_slots,
            self.halt_slots,
            self.param_delay_slots,
            self.openings_slots,
            self.verdict_commit_slots,
            self.verdict_reveal_slots,
            self.jury_commit_slots,
            self.jury_reveal_slots,
            self.appeal_slots,
            self.breaker_slots,
        ]
    }

    /// These parameters with all that may change as in `other`.
    fn with_changeable_of(&self, other: &Params) -> Params {
        Params {
            reward_per_payload: other.reward_per_payload,
            min_members: other.min_members,
            warmup_slots: other.warmup_slots,
            commit_slots: other.commit_slots,
            attest_slots: other.attest_slots,
            close_grace_slots: other.close_grace_slots,
            halt_slots: other.halt_slots,
            param_delay_slots: other.param_delay_slots,
            openings_slots: other.openings_slots,
            verdict_commit_slots: other.verdict_commit_slots,
            verdict_reveal_slots: other.verdict_reveal_slots,
            jury_commit_slots: other.jury_commit_slots,
            jury_reveal_slots: other.jury_reveal_slots,
            appeal_slots: other.appeal_slots,
            breaker_slots: other.breaker_slots,
            ..*self
        }
    }
}

impl Run {
    /// Whether the pool holds `reward` for every payload of an epoch, where that is a raise: a
    /// higher reward also raises penalties, so it must be more than a number.
    #[must_use]
    pub fn can_pay(&self, roster: &Roster, reward: u64) -> bool {
        let params = &self.params;
        let trains = |roles: u8| roles & ROLE_TRAINER != 0;
        let trainers = roster.entries.iter().filter(|entry| entry.is_present());
        let count = trainers.filter(|entry| trains(entry.roles)).count();
        let payloads = u64::try_from(count)
            .unwrap_or(u64::MAX)
            .max(u64::from(params.min_members))
            .saturating_mul(u64::from(params.rounds_per_epoch));
        let is_raise = reward > params.reward_per_payload;
        !is_raise || reward.saturating_mul(payloads) <= self.reward_pool
    }
}
