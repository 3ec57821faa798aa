//! Closes a round: fixes its record, folds it into the chain hash, settles, goes on.
//!
//! Owns the order of these steps and what follows a close: the next round, Cooldown, Paused,
//! Halted, WaitingForMembers or Finished. Never decides the outcome. Next: `settle`, `open`.

use anchor_lang::prelude::*;

use super::ballots::fold;
use super::checkpoint::Place;
use super::open::{open_next, seed_bit, turn_over, Leavers};
use super::settle::Terms;
use super::waiting::{finish, halt, wait_for_members};
use super::RoundContext;
use crate::constants::*;
use crate::errors::CoordinatorError;
use crate::events::{record, record_plain, RoundClosed, RunPaused};
use crate::math::{add, mul};
use crate::rules::bitmap::count;
use crate::rules::hashing::Digest;
use crate::rules::root::unavailable_strikes;
use crate::state::{Phase, Round, SeedStatus};

/// Void rounds in a row that halt a run.
pub const VOID_ROUNDS_TO_HALT: u64 = 3;

impl RoundContext<'_> {
    /// Closes an open round under the canonical root `root`.
    pub fn close_canonical(
        &mut self,
        root: &Digest,
        included: u64,
        unavailable: u64,
        place: &Place<'_, '_>,
    ) -> Result<()> {
        let (run, round) = (&mut *self.run, &mut *self.round);
        round.included = included;
        round.canonical_root = *root;
        round.seed_slot = run.params.round_seed_slot(self.slot)?;
        round.seed_status = SeedStatus::Pending as u8;
        run.seeds_pending |= seed_bit(round.round);
        run.void_streak = 0;
        run.stop_waiting();
        run.base_round = round.round;
        let strikes = unavailable_strikes(round.committed, included, unavailable);
        self.seal(0)?;
        if self.round.round >= self.run.next_checkpoint_round {
            self.store_checkpoint(place)?;
        }
        self.settle(Terms {
            strikes,
            counts_misses: true,
        })?;
        self.count_round()
    }

    /// Closes an open round without a result; forced where a payload of its base is missing.
    pub fn close_void(&mut self) -> Result<()> {
        let is_forced = self.round.has_flag(ROUND_FORCED_VOID);
        if !is_forced {
            self.run.void_streak = add(self.run.void_streak, 1)?;
            self.run.base_round = NONE;
        }
        self.seal(ROUND_VOID)?;
        self.settle(Terms {
            strikes: 0,
            counts_misses: !is_forced,
        })?;
        self.count_round()
    }

    /// Closes the root-only step under the canonical root `root`: the stretch of rounds ends.
    pub fn close_root_only(&mut self, root: &Digest, place: &Place<'_, '_>) -> Result<()> {
        self.round.canonical_root = *root;
        self.run.void_streak = 0;
        self.seal(0)?;
        self.store_checkpoint(place)?;
        self.turn_over()?;
        if self.run.round >= self.run.params.max_rounds {
            finish(self.run, self.journal, &self.key, self.roster, self.slot)
        } else {
            wait_for_members(self.run, self.journal, &self.key, self.roster, self.slot)
        }
    }

    /// Closes the root-only step without a majority: it is repeated, or the run halts. Forced
    /// where a payload of the last round is missing, which does not count.
    pub fn void_root_only(&mut self) -> Result<()> {
        let is_forced = self.round.has_flag(ROUND_FORCED_VOID);
        if !is_forced {
            self.run.void_streak = add(self.run.void_streak, 1)?;
        }
        self.seal(ROUND_VOID)?;
        if self.run.void_streak >= VOID_ROUNDS_TO_HALT {
            return halt(self.run, self.journal, &self.key, self.slot);
        }
        if !is_forced {
            // Leavers that did not vote may be gone: the next try is up to those who stay.
            self.turn_over()?;
        }
        open_next(
            self.run,
            self.journal,
            &self.key,
            self.roster,
            self.round,
            self.slot,
        )
    }

    /// Ends the membership of leaving members.
    fn turn_over(&mut self) -> Result<()> {
        turn_over(
            self.run,
            self.journal,
            &self.key,
            self.roster,
            self.slot,
            Leavers::Gone,
        )
    }

    /// Goes on after an open round closed: halts, pauses or opens the next in `next`.
    pub fn proceed(&mut self, next: &mut Round) -> Result<()> {
        if self.run.void_streak >= VOID_ROUNDS_TO_HALT {
            return halt(self.run, self.journal, &self.key, self.slot);
        }
        if self.run.flags & RUN_PAUSE_REQUESTED != 0 {
            return self.pause();
        }
        open_next(
            self.run,
            self.journal,
            &self.key,
            self.roster,
            next,
            self.slot,
        )
    }

    /// Stops the clock between two rounds; the next one opens when the run resumes.
    fn pause(&mut self) -> Result<()> {
        self.run.enter_pause(self.slot, Phase::Commit);
        let event = RunPaused {
            run: self.key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            resume_phase: Phase::Commit as u8,
        };
        record(self.run, self.journal, &event)
    }

    /// Makes the record final: flags, slot, chain hash, event.
    fn seal(&mut self, flags: u8) -> Result<()> {
        let ran_to_deadline = super::window(self.run).ran_to_deadline(self.slot);
        let (run, round) = (&mut *self.run, &mut *self.round);
        ensure!(
            !round.has_flag(ROUND_CLOSED),
            CoordinatorError::InvariantViolated
        );
        round.flags |= flags | ROUND_CLOSED;
        if ran_to_deadline {
            let is_attest = run.is(Phase::Attest);
            round.flags |= if is_attest {
                ROUND_ATTEST_RAN_TO_DEADLINE
            } else {
                ROUND_COMMIT_RAN_TO_DEADLINE
            };
        }
        round.close_slot = self.slot;
        round.close_clock = run.clock(self.slot);
        run.chain_hash = fold(&run.chain_hash, round);
        let event = RoundClosed {
            run: self.key,
            round: round.round,
            slot: self.slot,
            flags: round.flags,
            members: round.members,
            trainers: round.trainers,
            committed: round.committed,
            attested: round.attested,
            included: round.included,
            canonical_root: round.canonical_root,
            seed_slot: round.seed_slot,
            chain_hash: run.chain_hash,
        };
        record_plain(self.journal, &event)
    }

    /// Advances round and cursor: by the sequences of all trainers, delivered or not.
    fn count_round(&mut self) -> Result<()> {
        let run = &mut *self.run;
        let sequences = mul(count(self.round.trainers), run.params.sequences_per_payload)?;
        run.round = add(run.round, 1)?;
        run.cursor = add(run.cursor, sequences)?;
        Ok(())
    }
}
