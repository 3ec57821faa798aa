//! One participant in the roster.
//!
//! Owns what a round changes for a participant. Never holds cold data: that is `Participant`.
//! Next: `status` for how the status changes, then `roster`.

use anchor_lang::prelude::*;

use crate::constants::*;
use crate::errors::CoordinatorError;
use crate::rules::reward;
use crate::rules::standing::stake_to_stay;
use crate::state::params::Params;
use crate::state::status::{Change, Status};
use crate::state::{AuditKind, Run};

/// One index of the roster.
#[zero_copy]
pub struct Entry {
    /// Owner key; zeros where the index was never used.
    pub owner: Pubkey,
    /// Key that signs round transactions and headers.
    pub session: Pubkey,
    /// Key that replaces `session` at the next round open; zeros if none.
    pub next_session: Pubkey,
    /// Root vote posted by `post_ready`.
    pub ready_root: [u8; 32],
    /// Stake in lamports.
    pub stake: u64,
    /// Vested rewards.
    pub claimable: u64,
    /// Window of each vesting bucket.
    pub bucket_window: [u64; NUM_BUCKETS],
    /// Lamports in each vesting bucket.
    pub bucket_amount: [u64; NUM_BUCKETS],
    /// Round in which the participant joined.
    pub joined_round: u64,
    /// First round of the current membership.
    pub active_round: u64,
    /// Last round whose payload was included, or NONE.
    pub last_included: u64,
    /// Round that `ready_root` speaks about.
    pub ready_round: u64,
    /// First round in which the participant may return.
    pub return_round: u64,
    /// Round of the last inactivity, or NONE.
    pub inactive_round: u64,
    /// First round after jail.
    pub jailed_until_round: u64,
    /// Round of leaving, or NONE.
    pub left_round: u64,
    /// Rounds included or attested.
    pub rounds_served: u64,
    /// Included rounds since joining or the last strike.
    pub included_since_strike: u64,
    /// Rounds of the last strikes, or NONE.
    pub strike_rounds: [u64; 3],
    /// Phases missed in a row.
    pub misses_in_row: u16,
    /// Phases that ran to the deadline and were missed in a row.
    pub deadline_misses_in_row: u16,
    /// See `Status`.
    pub status: u8,
    /// 1 trainer, 2 witness.
    pub roles: u8,
    /// 1 leaving, 2 silent on a seat, 8 on probation.
    pub flags: u8,
    /// Strikes in all.
    pub strikes: u8,
    /// Rounds of the last audits that ended unproven, or NONE.
    pub unproven_rounds: [u64; 3],
    /// Round under way when openings last were missing (P5), or NONE.
    pub openings_fault_round: u64,
    /// Open audits that name the participant in any role: the index is not given away.
    pub audits: u16,
    /// Open audits of its own work.
    pub targets: u16,
    /// Accusations, cases and escrows against it: nothing is paid out while there is one.
    pub frozen: u16,
    /// Offences: convictions for work (P3) that count.
    pub work_faults: u8,
    /// Duties missed on a seat (P6) since the last jail for them.
    pub seat_faults: u8,
    /// Lamports in the unbonding tickets of the participant.
    pub unbonding: u64,
    /// Run clock of the last action on chain; zero before the first.
    pub last_action: u64,
    /// Run clock of the last action before the newest outage, or NONE.
    pub outage_start: u64,
    /// Run clock of the first action after the newest outage, or NONE.
    pub outage_end: u64,
    /// `outage_start` of the last outage that cost a fine, or NONE.
    pub fined_outage: u64,
    /// Round under way when a missing reveal was fined last, or NONE.
    pub reveal_fault_round: u64,
    /// Included rounds since joining.
    pub included_total: u64,
    /// `included_total` when openings last were missing.
    pub openings_mark: u64,
    /// Rewards of the probation under way, which wait for its end.
    pub withheld: u64,
    /// First round whose withheld reward an audit may still take: what waited of earlier ones was
    /// returned at once.
    pub withheld_from: u64,
    /// Round of the audit that decides the probation, or NONE.
    pub probation_round: u64,
    /// Round under way at the last conviction of each kind, or NONE.
    pub decided_round: [u64; 4],
    /// Times that openings were missing and are still remembered.
    pub openings_step: u8,
    /// Kinds (bit 0 is the first) with a conviction that may still be reversed.
    pub pending_kinds: u8,
    /// Zero.
    pub pad: [u8; 6],
}

impl Entry {
    /// Starts the life of a participant at this index. The slate is clean.
    pub fn join(&mut self, owner: Pubkey, session: Pubkey, roles: u8, round: u64) {
        *self = bytemuck::Zeroable::zeroed();
        self.owner = owner;
        self.session = session;
        self.roles = roles;
        self.joined_round = round;
        self.active_round = NONE;
        self.last_included = NONE;
        self.ready_round = NONE;
        self.inactive_round = NONE;
        self.left_round = NONE;
        self.strike_rounds = [NONE; 3];
        self.unproven_rounds = [NONE; 3];
        self.openings_fault_round = NONE;
        self.outage_start = NONE;
        self.outage_end = NONE;
        self.fined_outage = NONE;
        self.reveal_fault_round = NONE;
        self.probation_round = NONE;
        self.decided_round = [NONE; 4];
        self.change(Change::Join);
    }

    /// Whether a conviction of `kind` was decided once `round` was open: a further one would cost
    /// the reward of that round at most.
    #[must_use]
    pub fn is_convicted(&self, kind: AuditKind, round: u64) -> bool {
        let decided = self.decided_round.get(kind.place()).copied();
        decided.is_some_and(|decided| decided != NONE && round <= decided)
    }

    /// Whether the stake is below the one that this participant must have to stay.
    #[must_use]
    pub fn is_short(&self, params: &Params) -> bool {
        let (keep, min) = (params.keep_stake_lamports, params.min_stake_lamports);
        self.stake < stake_to_stay(keep, min, self.work_faults)
    }

    /// Puts the next session key in force, if there is one.
    pub fn rotate_session(&mut self) -> bool {
        if self.next_session == Pubkey::default() {
            return false;
        }
        self.session = self.next_session;
        self.next_session = Pubkey::default();
        true
    }

    /// Clears the vote that `post_ready` posted.
    pub fn clear_ready(&mut self) {
        self.ready_round = NONE;
        self.ready_root = [0; 32];
    }

    /// Rewards that have not vested yet.
    pub fn unvested(&self) -> Result<u64> {
        self.bucket_amount
            .iter()
            .try_fold(0_u64, |sum, &amount| crate::math::add(sum, amount))
    }

    /// Whether the participant has left and nothing is owed to it here.
    pub fn is_spent(&self) -> Result<bool> {
        let earned = self.claimable > 0 || self.unvested()? > 0 || self.withheld > 0;
        Ok(self.is_gone() && self.stake == 0 && !earned && self.audits == 0)
    }

    /// Whether one that has left owes no seat and no jury any more: the longest case about a round
    /// that was open at its last action is over.
    #[must_use]
    pub fn is_past_duty(&self, run: &Run, slot: u64) -> bool {
        let last = self
            .last_action
            .saturating_add(run.params.longest_path_slots());
        self.active_round == NONE || run.clock(slot) > last
    }

    /// Whether one that has left owes no jury any more: no case about a round that was open at its
    /// last action is still judged. The index is not given away before, or the jury would shrink.
    #[must_use]
    pub fn is_past_juries(&self, run: &Run, slot: u64) -> bool {
        let last = self
            .last_action
            .saturating_add(run.params.jury_duty_slots());
        let has_none = self.active_round == NONE || self.is(Status::Barred);
        self.is(Status::Empty) || has_none || run.clock(slot) > last
    }

    /// Whether the index may be given to somebody else in `round`.
    #[must_use]
    pub fn is_free(&self, round: u64, ring: u16) -> bool {
        let past = self.left_round.saturating_add(u64::from(ring));
        // No round and no audit names a participant that never was a member: its index is free at
        // once.
        let is_past = self.active_round == NONE || past <= round;
        let is_clear = self.stake == 0 && self.withheld == 0 && self.audits == 0;
        self.is(Status::Empty) || (self.is_gone() && is_clear && is_past)
    }

    /// Whether everything in the buckets could be claimed at `clock`.
    #[must_use]
    pub fn has_vested(&self, clock: u64, vesting_slots: u64) -> bool {
        let mut amounts = self.bucket_amount;
        let released = reward::release(&self.bucket_window, &mut amounts, clock, vesting_slots);
        released.is_some() && amounts.iter().all(|&amount| amount == 0)
    }

    /// Nothing is paid out until an accusation, a case or its escrow has ended.
    pub fn freeze(&mut self) -> Result<()> {
        self.frozen = self.frozen.saturating_add(1);
        self.invariant()
    }

    /// Conditions that every mutation keeps.
    pub fn invariant(&self) -> Result<()> {
        let status = self.status()?;
        let is_used = status != Status::Empty;
        let owned = self.owner != Pubkey::default();
        let left = self.left_round != NONE;
        let sound = is_used == owned
            && self.roles & !ROLES == 0
            && (self.roles != 0 || !is_used)
            && (!is_used || left == self.is_gone())
            && (!self.is_leaving() || self.is_present())
            && self.targets <= self.audits
            && self.frozen <= self.targets;
        ensure!(sound, CoordinatorError::InvariantViolated);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined() -> Box<Entry> {
        let mut entry = Box::new(<Entry as bytemuck::Zeroable>::zeroed());
        entry.join(
            Pubkey::new_from_array([1; 32]),
            Pubkey::new_from_array([2; 32]),
            3,
            7,
        );
        entry
    }

    #[test]
    fn an_index_is_free_ring_rounds_after_its_owner_left() {
        let mut entry = joined();
        entry.active_round = 8;
        assert!(!entry.is_free(100, 16));
        entry.leave(10);
        assert!(!entry.is_free(25, 16) && entry.is_free(26, 16));
        entry.stake = 1;
        assert!(!entry.is_free(26, 16));
    }

    #[test]
    fn an_index_that_an_audit_names_is_not_given_away() {
        let mut entry = joined();
        entry.leave(10);
        entry.audits = 1;
        assert!(!entry.is_free(100, 16) && !entry.is_spent().unwrap());
        entry.audits = 0;
        assert!(entry.is_free(100, 16) && entry.is_spent().unwrap());
    }

    #[test]
    fn an_index_at_which_a_reward_waits_is_not_given_away() {
        let mut entry = joined();
        entry.leave(10);
        entry.withheld = 1;
        assert!(!entry.is_free(100, 16) && !entry.is_spent().unwrap());
        entry.withheld = 0;
        assert!(entry.is_free(100, 16) && entry.is_spent().unwrap());
    }

    #[test]
    fn an_index_whose_owner_never_was_a_member_is_free_at_once() {
        let mut entry = joined();
        entry.leave(10);
        assert!(entry.is_free(10, 16));
    }

    #[test]
    fn whoever_is_barred_is_gone_as_whoever_left() {
        let mut entry = joined();
        entry.active_round = 8;
        entry.bar(10);
        assert!(entry.is_gone() && !entry.is_present() && entry.invariant().is_ok());
        assert!(!entry.is_free(25, 16) && entry.is_free(26, 16));
    }

    #[test]
    fn whoever_left_owes_no_duty_once_the_longest_case_is_over() {
        let mut run = Box::new(<Run as bytemuck::Zeroable>::zeroed());
        run.paused_at_slot = NONE;
        run.params.case_slots = 900;
        let last = 100 + run.params.longest_path_slots();
        let mut entry = joined();
        entry.last_action = 100;
        assert!(entry.is_past_duty(&run, 100), "it never was a member");
        entry.active_round = 8;
        assert!(!entry.is_past_duty(&run, last) && entry.is_past_duty(&run, last + 1));
        run.pause_total_slots = 5;
        assert!(!entry.is_past_duty(&run, last + 5) && entry.is_past_duty(&run, last + 6));
    }

    #[test]
    fn whoever_left_owes_a_jury_until_the_longest_case_was_judged() {
        let mut run = Box::new(<Run as bytemuck::Zeroable>::zeroed());
        run.paused_at_slot = NONE;
        (run.params.case_slots, run.params.appeal_slots) = (9_000, 50);
        let last = 100 + run.params.jury_duty_slots();
        let mut entry = joined();
        entry.last_action = 100;
        assert!(entry.is_past_juries(&run, 100), "it never was a member");
        entry.active_round = 8;
        assert!(!entry.is_past_juries(&run, last) && entry.is_past_juries(&run, last + 1));
        assert!(!entry.is_past_duty(&run, last + 1), "an appeal may follow");
        entry.bar(9);
        assert!(entry.is_past_juries(&run, 100), "the barred are on no jury");
    }

    #[test]
    fn a_waiting_session_key_is_put_in_force_once() {
        let mut entry = joined();
        assert!(!entry.rotate_session());
        entry.next_session = Pubkey::new_from_array([3; 32]);
        assert!(entry.rotate_session() && !entry.rotate_session());
        assert_eq!(entry.session, Pubkey::new_from_array([3; 32]));
    }

    #[test]
    fn the_invariant_sees_each_contradiction() {
        let sound = joined();
        assert!(sound.invariant().is_ok());
        let broken: [fn(&mut Entry); 8] = [
            |e| e.targets = 1,
            |e| e.frozen = 1,
            |e| e.owner = Pubkey::default(),
            |e| e.roles = 0,
            |e| e.roles = 4,
            |e| e.status = 7,
            |e| e.left_round = 3,
            |e| {
                e.leave(3);
                e.flags = ENTRY_LEAVING;
            },
        ];
        for breaks in broken {
            let mut entry = joined();
            breaks(&mut entry);
            assert!(entry.invariant().is_err());
        }
    }
}
