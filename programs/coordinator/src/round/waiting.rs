//! Between stretches of rounds: WaitingForMembers, Warmup, Halted, Finished.
//!
//! Owns the count of participants there and the effect of their `post_ready`. Never opens a round:
//! `open` does. Next: `open`.

use anchor_lang::prelude::*;

use super::open::{turn_over, Leavers};
use super::RoundContext;
use crate::audit::probation::Ended;
use crate::constants::{
    NONE, ROLE_TRAINER, ROUND_COMMIT_RAN_TO_DEADLINE, RUN_LAST_WARMUP, RUN_PAUSE_REQUESTED,
};
use crate::errors::CoordinatorError;
use crate::events::{record, Journal, PhaseStarted, WarmupEnded};
use crate::rules::bitmap::{count, with_bits};
use crate::state::{Change, Phase, Roster, Run, Status};

/// Participants that are there while no round is open.
#[derive(Clone, Copy, Default)]
pub struct Attendance {
    /// Pending participants: the members of a Warmup.
    pub pending: u64,
    /// Those of them that train.
    pub trainers: u64,
    /// Those of them that have sent `post_ready` for the stored root, with stake enough to stay.
    pub ready: u64,
    /// Everyone who might still come back: pending, inactive, jailed.
    pub present: u64,
}

/// Counts the participants of a run in which no round is open.
#[must_use]
pub fn attendance(run: &Run, roster: &Roster) -> Attendance {
    let mut found = Attendance::default();
    for (bit, entry) in with_bits(&roster.entries) {
        if entry.is_present() {
            found.present |= bit;
        }
        if !entry.is(Status::Pending) {
            continue;
        }
        found.pending |= bit;
        if entry.roles & ROLE_TRAINER != 0 {
            found.trainers |= bit;
        }
        if entry.ready_round == run.root_round && !entry.is_short(&run.params) {
            found.ready |= bit;
        }
    }
    found
}

impl RoundContext<'_> {
    /// WaitingForMembers to Warmup, or to Finished where no round will open any more.
    ///
    /// Half of the members that are expected must be there; the authority may do with fewer.
    pub fn leave_waiting(&mut self, by_authority: bool) -> Result<()> {
        let found = attendance(self.run, self.roster);
        let min = u64::from(self.run.params.min_members);
        let is_over = self.run.round >= self.run.params.max_rounds;
        let is_enough = count(found.pending) >= self.least_to_begin(by_authority);
        let can_begin = !is_over && is_enough && found.trainers != 0;
        let is_in_vain = self.has_waited_in_vain(&found, can_begin, by_authority);
        if can_begin && !is_in_vain {
            if self.run.has_waited_long(self.slot) {
                self.run.flags |= RUN_LAST_WARMUP;
            }
            if !self.run.expected().is_half(count(found.pending)) {
                self.run.expect(self.run.expected().only(found.pending));
            }
            let slots = self.run.params.warmup_slots;
            self.run.enter(Phase::Warmup, self.slot, Some(slots))?;
            super::note_quorum(
                self.run,
                count(found.ready),
                count(found.pending),
                self.slot,
            );
            return announce(self.run, self.journal, &self.key, self.slot);
        }
        let is_abandoned =
            self.run.round > self.run.params.join_until_round && count(found.present) < min;
        let may_end = is_over || is_abandoned || is_in_vain;
        ensure!(may_end, CoordinatorError::NothingDue);
        finish(self.run, self.journal, &self.key, self.roster, self.slot)
    }

    /// Whether too few were ready for as long as a withdrawal takes, so that the pool must not be
    /// held any longer, whoever joined since. One Warmup is given first where it `can_begin`. A
    /// run that never began is only its authority's to give up.
    fn has_waited_in_vain(&self, found: &Attendance, can_begin: bool, by_authority: bool) -> bool {
        let run = &*self.run;
        let is_ready = can_begin && count(found.ready) >= self.least_to_begin(by_authority);
        let had_its_chance = !can_begin || run.flags & RUN_LAST_WARMUP != 0;
        let may_give_up = by_authority || run.round > 0;
        run.has_waited_long(self.slot) && !is_ready && had_its_chance && may_give_up
    }

    /// Half of the expected members, and never fewer than the minimum, which is enough for the
    /// authority.
    fn least_to_begin(&self, by_authority: bool) -> u64 {
        let min = u64::from(self.run.params.min_members);
        if by_authority {
            return min;
        }
        self.run.expected().least_to_begin(min)
    }

    /// Warmup to the next round, or back to WaitingForMembers where too few are ready.
    pub fn end_warmup(&mut self) -> Result<()> {
        let found = attendance(self.run, self.roster);
        let (ready, pending) = (count(found.ready), count(found.pending));
        let is_due = super::window(self.run).is_due(ready, pending, self.slot);
        ensure!(is_due, CoordinatorError::NothingDue);
        let suffices = ready >= self.least_to_begin(false) && found.ready & found.trainers != 0;
        let absent = found.pending & !found.ready;
        self.split(found.ready, absent, suffices);
        let event = WarmupEnded {
            run: self.key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            round: self.run.round,
            ready: if suffices { found.ready } else { 0 },
            absent,
        };
        record(self.run, self.journal, &event)?;
        if suffices {
            self.run.base_round = NONE;
            self.run.restart_round = self.run.round;
            self.run.restart_root_round = self.run.root_round;
            return super::open::open_next(
                self.run,
                self.journal,
                &self.key,
                self.roster,
                self.round,
                self.slot,
            );
        }
        self.run.start_waiting(self.slot)?;
        announce(self.run, self.journal, &self.key, self.slot)
    }

    /// Commit to Attest.
    pub fn start_attest(&mut self) -> Result<()> {
        let round = &mut *self.round;
        super::require_round(self.run, round, self.run.round, Phase::Commit)?;
        let clock = super::window(self.run);
        let is_due = clock.is_due(count(round.committed), count(round.trainers), self.slot);
        ensure!(is_due, CoordinatorError::NothingDue);
        if clock.ran_to_deadline(self.slot) {
            round.flags |= ROUND_COMMIT_RAN_TO_DEADLINE;
        }
        round.commit_end_slot = self.slot;
        self.run
            .enter(Phase::Attest, self.slot, Some(self.run.params.attest_slots))?;
        announce(self.run, self.journal, &self.key, self.slot)
    }

    /// Makes the absent inactive, without fee, and the ready active if they are enough.
    fn split(&mut self, ready: u64, absent: u64, suffices: bool) {
        for (bit, entry) in with_bits(&mut self.roster.entries) {
            if absent & bit != 0 {
                entry.clear_ready();
                entry.change(Change::Deactivate);
            } else if suffices && ready & bit != 0 {
                entry.clear_ready();
                entry.last_included = NONE;
                entry.misses_in_row = 0;
                entry.deadline_misses_in_row = 0;
                entry.active_round = self.run.round;
                entry.change(Change::Activate);
            }
        }
    }

    /// Halted to WaitingForMembers at the newest checkpoint, once the run has rested.
    pub fn leave_halt(&mut self) -> Result<()> {
        let has_rested = super::window(self.run).ran_to_deadline(self.slot);
        ensure!(has_rested, CoordinatorError::NothingDue);
        turn_over(
            self.run,
            self.journal,
            &self.key,
            self.roster,
            self.slot,
            Leavers::Gone,
        )?;
        wait_for_members(self.run, self.journal, &self.key, self.roster, self.slot)
    }
}

/// Stops the run after too many void rounds, or because no trainer or less than half is left to
/// vote. Nobody's root is adopted.
pub fn halt(run: &mut Run, journal: &mut Journal, key: &Pubkey, slot: u64) -> Result<()> {
    run.base_round = NONE;
    // The close at which a requested pause would begin is this one; a halted run cannot pause.
    run.flags &= !RUN_PAUSE_REQUESTED;
    run.enter(Phase::Halted, slot, Some(run.params.halt_slots))?;
    announce(run, journal, key, slot)
}

/// Starts over with the participants that send `post_ready` for the stored root.
pub fn wait_for_members(
    run: &mut Run,
    journal: &mut Journal,
    key: &Pubkey,
    roster: &mut Roster,
    slot: u64,
) -> Result<()> {
    dismiss(run, roster);
    run.start_waiting(slot)?;
    announce(run, journal, key, slot)
}

/// Ends the run.
pub fn finish(
    run: &mut Run,
    journal: &mut Journal,
    key: &Pubkey,
    roster: &mut Roster,
    slot: u64,
) -> Result<()> {
    dismiss(run, roster);
    let mut ended = Ended::default();
    for (one, entry) in with_bits(&mut roster.entries) {
        ended.add(run, entry, one)?;
    }
    ended.report(run, journal, key, slot)?;
    run.finished_slot = slot;
    run.enter(Phase::Finished, slot, None)?;
    announce(run, journal, key, slot)
}

/// Makes every member pending again: residuals are zero, nothing is ready, no base round.
fn dismiss(run: &mut Run, roster: &mut Roster) {
    run.void_streak = 0;
    run.base_round = NONE;
    for entry in &mut roster.entries {
        if entry.is(Status::Active) {
            entry.change(Change::Dismiss);
        }
        entry.clear_ready();
    }
}

/// Records the event that the run's phase began.
pub fn announce(run: &mut Run, journal: &mut Journal, key: &Pubkey, slot: u64) -> Result<()> {
    let event = PhaseStarted {
        run: *key,
        sequence: run.event_sequence,
        slot,
        phase: run.phase,
        round: run.round,
        ends_slot: run.phase_end_slot,
    };
    record(run, journal, &event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    #[test]
    fn whoever_became_short_of_stake_after_it_was_ready_is_not_ready() {
        let (mut run, mut roster) = (Box::new(Run::zeroed()), Box::new(Roster::zeroed()));
        run.params.keep_stake_lamports = 60;
        run.params.min_stake_lamports = 100;
        let stakes = [100, 60, 59, 99];
        for (entry, stake) in roster.entries.iter_mut().zip(stakes) {
            entry.status = Status::Pending as u8;
            entry.stake = stake;
        }
        roster.entries[3].work_faults = 1;
        let found = attendance(&run, &roster);
        assert_eq!((found.pending, found.ready), (0b1111, 0b0011));
    }
}
