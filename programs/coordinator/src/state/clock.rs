//! The clock of a run, and the pauses that stop it.
//!
//! Owns the pause budget and the moments that a pause moves. Never decides who may pause: the
//! instructions do. Next: `run`.

use anchor_lang::prelude::*;

use crate::constants::*;
use crate::math::{add, sub};
use crate::state::phase::Phase;
use crate::state::Run;

impl Run {
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

    /// Slots of the run's own clock, which stands still while the run is paused. Windows of audits
    /// and cases are told in it: a pause moves all of them by its length.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::run::tests::run;

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
}
