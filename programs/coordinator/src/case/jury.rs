//! The jury: its seed, its draw, its hidden and shown votes.
//!
//! Owns the eligible jurors and the windows of the votes. Never counts: `crate::rules::quorum`
//! does. Next: `settle`.

use anchor_lang::prelude::*;

use crate::audit::seats::Reveal;
use crate::audit::{breaker, AuditContext};
use crate::constants::*;
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, CaseSeedLost, CaseSeedRetargeted, JuryDrawn};
use crate::rules::bitmap::{bit, with_bits};
use crate::rules::hashing::Digest;
use crate::rules::panel::Panel;
use crate::rules::quorum::{case_outcome, CaseOutcome};
use crate::rules::sampling::{case_seed, jury};
use crate::rules::seeds::{first_at_or_after, Lookup};
use crate::rules::sketch::{is_zero, proves, Report, Sketch};
use crate::rules::verdict::Verdict;
use crate::state::{Audit, AuditKind, Entry, Juror, Params, Roster, Stage, Status};

impl AuditContext<'_, '_> {
    /// Draws the jury from the slot hash that the accusation named. Where the hash is gone, names
    /// another one once, and then gives the case up.
    #[inline(never)]
    pub fn draw(&mut self, slot_hashes: &[u8]) -> Result<()> {
        let is_waiting = self.audit.is(Stage::Accused);
        ensure!(is_waiting, CoordinatorError::WrongStage);
        match first_at_or_after(slot_hashes, self.audit.case_seed_slot) {
            Lookup::Found(slot, hash) => self.seat_jury(slot, &hash),
            Lookup::TooEarly => Err(refuse(CoordinatorError::SeedTooEarly)),
            Lookup::Malformed => Err(refuse(CoordinatorError::MalformedSlotHashes)),
            Lookup::Lost if self.audit.has_flag(AUDIT_RETARGETED) => self.lose_case_seed(),
            Lookup::Lost => self.retarget_case(),
        }
    }

    fn seat_jury(&mut self, found_slot: u64, slot_hash: &Digest) -> Result<()> {
        let audit = &mut *self.audit;
        let eligible = eligible_jurors(self.roster, audit.eligible, audit.round);
        if audit.kind == AuditKind::Work as u8 && breaker::holds(self.run) {
            audit.flags |= AUDIT_BREAKER;
        }
        let (run, round, target) = (self.key.to_bytes(), audit.round, audit.target);
        audit.case_seed = case_seed(slot_hash, &run, round, target, audit.kind);
        let parties = bit(usize::from(target)) | bit(usize::from(audit.challenger_index));
        let (seats, accusers) = audit.heard();
        let drawn = jury(&audit.case_seed, eligible, parties, seats, accusers);
        let mut jurors = [NO_INDEX; NUM_JURORS];
        let places = audit.jurors.iter_mut().zip(&mut jurors);
        for ((juror, copy), index) in places.zip(drawn.indices()) {
            (juror.index, *copy) = (*index, *index);
            let entry = self.roster.entry_mut(*index)?;
            entry.audits = entry.audits.saturating_add(1);
        }
        for seat in &mut audit.seats {
            seat.sketch = [0; SKETCH_LEN];
        }
        audit.num_jurors = u8::try_from(drawn.indices().len()).unwrap_or(0);
        let slots = self.run.params.jury_commit_slots;
        audit.enter(Stage::CaseCommit, self.clock, slots)?;
        if audit.num_jurors == 0 {
            audit.enter(Stage::CaseReveal, self.clock, 0)?;
        }
        let event = JuryDrawn {
            run: self.key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            round,
            target,
            audit_kind: audit.kind,
            case_seed_slot: audit.case_seed_slot,
            found_slot,
            slot_hash: *slot_hash,
            case_seed: audit.case_seed,
            eligible,
            jurors,
            stage_end: audit.stage_end,
        };
        record(self.run, self.journal, &event)
    }

    fn retarget_case(&mut self) -> Result<()> {
        let audit = &mut *self.audit;
        audit.flags |= AUDIT_RETARGETED;
        audit.case_seed_slot = self.run.params.jury_seed_slot(self.slot)?;
        let event = CaseSeedRetargeted {
            run: self.key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            round: audit.round,
            target: audit.target,
            audit_kind: audit.kind,
            case_seed_slot: audit.case_seed_slot,
        };
        record(self.run, self.journal, &event)
    }

    /// Without a seed no jury is drawn: the case can only be settled, as not proven.
    fn lose_case_seed(&mut self) -> Result<()> {
        let audit = &mut *self.audit;
        audit.enter(Stage::CaseReveal, self.clock, 0)?;
        let event = CaseSeedLost {
            run: self.key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            round: audit.round,
            target: audit.target,
            audit_kind: audit.kind,
        };
        record(self.run, self.journal, &event)
    }
}

impl Audit {
    /// Those who sat in the audit, and those among them that spoke against the target, as bitmaps.
    fn heard(&self) -> (u64, u64) {
        let against = [Verdict::Mismatch, Verdict::Unavailable].map(Verdict::number);
        self.judging()
            .iter()
            .fold((0, 0), |(seats, accusers), seat| {
                let one = bit(usize::from(seat.index));
                let accuser = if against.contains(&seat.verdict) {
                    one
                } else {
                    0
                };
                (seats | one, accusers | accuser)
            })
    }

    /// Goes from CaseCommit to CaseReveal once the window has ended.
    pub fn advance_case(&mut self, params: &Params, clock: u64) -> Result<()> {
        if self.is(Stage::CaseCommit) && clock > self.stage_end {
            let ended = self.stage_end;
            self.commit_ends[JURY_COMMITS] = ended;
            self.enter(Stage::CaseReveal, ended, params.jury_reveal_slots)?;
        }
        Ok(())
    }

    /// Records the hidden vote of juror `index`; the last one starts CaseReveal.
    pub fn commit_vote(
        &mut self,
        index: u16,
        commitment: [u8; 32],
        params: &Params,
        clock: u64,
    ) -> Result<()> {
        self.require(Stage::CaseCommit, clock)?;
        let juror = self.juror_mut(index)?;
        let is_first = juror.flags & SEAT_COMMITTED == 0;
        ensure!(is_first, CoordinatorError::SeatCommitted);
        juror.commit = commitment;
        juror.flags |= SEAT_COMMITTED;
        if self.jury().iter().all(|juror| has(juror, SEAT_COMMITTED)) {
            self.enter(Stage::CaseReveal, clock, params.jury_reveal_slots)?;
        }
        Ok(())
    }

    /// Refuses a sketch where none belongs: in the exact cases; and zeros where one is needed.
    pub fn require_sketch(&self, vote: Verdict, shown: &Sketch) -> Result<()> {
        if self.kind == AuditKind::Work as u8 {
            ensure!(proves(vote, shown), CoordinatorError::ZeroSketch);
        } else {
            ensure!(is_zero(shown), CoordinatorError::SketchNotNeeded);
        }
        Ok(())
    }

    /// Records the vote of juror `index`, if it gives the committed hash. The sketch takes the
    /// place of that of a seat, which nobody reads any more.
    pub fn reveal_vote(&mut self, index: u16, shown: &Reveal, clock: u64) -> Result<()> {
        self.require(Stage::CaseReveal, clock)?;
        let place = self.jury().iter().position(|juror| juror.index == index);
        let juror = self.juror_mut(index)?;
        let has_committed = has(juror, SEAT_COMMITTED);
        ensure!(has_committed, CoordinatorError::SeatNotCommitted);
        ensure!(!has(juror, SEAT_REVEALED), CoordinatorError::SeatRevealed);
        let is_it = juror.commit == shown.commitment;
        ensure!(is_it, CoordinatorError::RevealMismatch);
        juror.verdict = shown.verdict.number();
        juror.flags |= SEAT_REVEALED;
        if let Some(seat) = place.and_then(|place| self.seats.get_mut(place)) {
            seat.sketch = *shown.sketch;
        }
        Ok(())
    }

    /// The places of the jurors that earn a fee with this outcome.
    #[must_use]
    pub fn paid_jurors(&self, outcome: CaseOutcome, sketch_factor: u32) -> u8 {
        let mut reports = [Report::default(); NUM_JURORS];
        let shown = self.jury().iter().zip(&self.seats);
        for (report, (juror, seat)) in reports.iter_mut().zip(shown) {
            if has(juror, SEAT_REVEALED) {
                report.verdict = Verdict::from_number(juror.verdict);
                report.sketch = Some(&seat.sketch);
            }
        }
        let is_work = self.kind == AuditKind::Work as u8;
        Panel::new(&reports, sketch_factor).paid_jurors(outcome, is_work)
    }

    /// The decision of the jury, once no juror may reveal any more.
    pub fn decide(&self, clock: u64) -> Result<CaseOutcome> {
        ensure!(!self.is(Stage::CaseCommit), CoordinatorError::WindowOpen);
        ensure!(self.is(Stage::CaseReveal), CoordinatorError::WrongStage);
        let shown = |juror: &Juror| has(juror, SEAT_REVEALED) || !has(juror, SEAT_COMMITTED);
        let is_over = clock > self.stage_end || self.jury().iter().all(shown);
        ensure!(is_over, CoordinatorError::WindowOpen);
        // Neither a bond nor the word of three seats is evidence: without jurors, nobody is
        // excluded for it.
        let is_claim = self.has_flag(AUDIT_BONDED | AUDIT_UNAVAILABLE);
        let is_word = self.num_jurors == 0 && is_claim;
        if self.case_seed == [0; 32] || is_word {
            return Ok(CaseOutcome::NotProven);
        }
        Ok(self.counted())
    }

    /// Whether votes shown so far convict a target that seats called unavailable, which nothing has
    /// frozen until then. More votes do not change that.
    #[must_use]
    pub fn is_lost_to_the_jury(&self) -> bool {
        self.has_flag(AUDIT_UNAVAILABLE) && self.counted() == CaseOutcome::Convicted
    }

    /// The decision that the votes shown so far give.
    fn counted(&self) -> CaseOutcome {
        let mut votes = [None; NUM_JURORS];
        for (vote, juror) in votes.iter_mut().zip(self.jury()) {
            *vote = Verdict::from_number(juror.verdict);
        }
        let votes = votes.get(..self.jury().len()).unwrap_or_default();
        case_outcome(votes, self.kind == AuditKind::Work as u8)
    }
}

/// The witnesses that were `eligible` at the open of `round` and may judge, whatever they are now.
///
/// Those who fell silent or left keep the duty: otherwise those who stay could judge alone. The
/// barred are left out, and those who took over an index since.
#[must_use]
pub fn eligible_jurors(roster: &Roster, eligible: u64, round: u64) -> u64 {
    let may_judge = |entry: &Entry| !entry.is(Status::Barred) && entry.joined_round <= round;
    with_bits(&roster.entries)
        .filter(|(bit, entry)| eligible & bit != 0 && may_judge(entry))
        .fold(0, |all, (bit, _)| all | bit)
}

/// The place of the jury in `commit_ends`.
pub const JURY_COMMITS: usize = 3;

fn has(juror: &Juror, flag: u8) -> bool {
    juror.flags & flag != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    /// A jury of three that commits from moment 10 to 30 and reveals for 20 more.
    fn seated() -> (Box<Audit>, Box<Params>) {
        let (mut audit, mut params) = (Box::new(Audit::zeroed()), Box::new(Params::zeroed()));
        params.jury_reveal_slots = 20;
        audit.case_seed = [1; 32];
        audit.num_jurors = 3;
        for (juror, index) in audit.jurors.iter_mut().zip([4, 7, 9]) {
            juror.index = index;
        }
        audit.enter(Stage::CaseCommit, 10, 20).unwrap();
        (audit, params)
    }

    fn reveal(
        audit: &mut Audit,
        index: u16,
        verdict: Verdict,
        commitment: [u8; 32],
        clock: u64,
    ) -> Result<()> {
        let shown = Reveal {
            verdict,
            sketch: &[7; SKETCH_LEN],
            commitment,
        };
        audit.reveal_vote(index, &shown, clock)
    }

    fn hash(index: u16) -> [u8; 32] {
        [u8::try_from(index).unwrap(); 32]
    }

    #[test]
    fn the_last_commit_and_the_last_reveal_end_their_windows() {
        let (mut audit, params) = seated();
        for index in [4, 7, 9] {
            assert!(audit.is(Stage::CaseCommit) && audit.decide(12).is_err());
            audit.commit_vote(index, hash(index), &params, 12).unwrap();
        }
        assert!(audit.is(Stage::CaseReveal) && audit.stage_end == 32);
        for (index, vote) in [
            (4, Verdict::Mismatch),
            (7, Verdict::Ok),
            (9, Verdict::Mismatch),
        ] {
            assert!(audit.decide(13).is_err());
            reveal(&mut audit, index, vote, hash(index), 13).unwrap();
        }
        assert_eq!(audit.decide(13).unwrap(), CaseOutcome::Convicted);
        assert_eq!(audit.paid_jurors(CaseOutcome::Convicted, 100), 0b101);
    }

    #[test]
    fn windows_end_by_the_clock_whoever_comes_next() {
        let (mut audit, params) = seated();
        audit.commit_vote(4, hash(4), &params, 30).unwrap();
        assert!(audit.commit_vote(7, hash(7), &params, 31).is_err());
        audit.advance_case(&params, 31).unwrap();
        assert!(audit.is(Stage::CaseReveal) && audit.stage_end == 50);
        assert!(audit.decide(50).is_err());
        assert!(reveal(&mut audit, 4, Verdict::Ok, hash(4), 51).is_err());
        assert_eq!(audit.decide(51).unwrap(), CaseOutcome::NotProven);
    }

    #[test]
    fn who_never_committed_is_not_waited_for() {
        let (mut audit, params) = seated();
        audit.advance_case(&params, 31).unwrap();
        assert_eq!(audit.decide(31).unwrap(), CaseOutcome::NotProven);
    }

    #[test]
    fn a_vote_is_of_a_juror_once_and_as_committed() {
        let (mut audit, params) = seated();
        assert!(audit.commit_vote(5, hash(5), &params, 12).is_err());
        for index in [4, 7, 9] {
            audit.commit_vote(index, hash(index), &params, 12).unwrap();
        }
        assert!(audit.commit_vote(4, hash(5), &params, 12).is_err());
        assert!(reveal(&mut audit, 4, Verdict::Ok, hash(5), 13).is_err());
        reveal(&mut audit, 4, Verdict::Ok, hash(4), 13).unwrap();
        assert!(reveal(&mut audit, 4, Verdict::Ok, hash(4), 13).is_err());
    }

    #[test]
    fn a_sketch_belongs_to_work_and_only_there() {
        let (mut audit, _) = seated();
        let (some, zeros) = ([1; SKETCH_LEN], [0; SKETCH_LEN]);
        assert!(audit.require_sketch(Verdict::Ok, &some).is_ok());
        assert!(audit.require_sketch(Verdict::Mismatch, &zeros).is_err());
        assert!(audit.require_sketch(Verdict::Inconclusive, &zeros).is_ok());
        audit.kind = AuditKind::Root as u8;
        assert!(audit.require_sketch(Verdict::Ok, &some).is_err());
        assert!(audit.require_sketch(Verdict::Mismatch, &zeros).is_ok());
    }

    #[test]
    fn nobody_to_judge_excludes_and_no_seed_proves_nothing() {
        let (mut audit, _) = seated();
        audit.num_jurors = 0;
        audit.enter(Stage::CaseReveal, 10, 0).unwrap();
        assert_eq!(audit.decide(10).unwrap(), CaseOutcome::Excluded);
        audit.flags = AUDIT_BONDED;
        assert_eq!(audit.decide(10).unwrap(), CaseOutcome::NotProven);
        audit.flags = 0;
        audit.case_seed = [0; 32];
        assert_eq!(audit.decide(10).unwrap(), CaseOutcome::NotProven);
    }
}
