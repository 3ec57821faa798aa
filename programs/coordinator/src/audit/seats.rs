//! Verdicts of the seats: hidden first, shown later, counted at the end.
//!
//! Owns the windows of commit and reveal and the extensions. Never counts: `crate::rules::panel`
//! does. Next: `settle`.

use anchor_lang::prelude::*;

use crate::constants::*;
use crate::errors::{refuse, CoordinatorError};
use crate::rules::panel::Panel;
use crate::rules::quorum::AuditOutcome;
use crate::rules::sketch::Report;
use crate::rules::verdict::Verdict;
use crate::state::{Audit, Params, Seat, Stage};

/// The verdict that a seat reveals.
pub struct Reveal<'a> {
    /// The verdict.
    pub verdict: Verdict,
    /// Its sketch.
    pub sketch: &'a [i32; SKETCH_LEN],
    /// The hash over all that it shows.
    pub commitment: [u8; 32],
}

impl Audit {
    /// Records the hidden verdict of witness `index`; the last one starts Reveal.
    pub fn commit_verdict(
        &mut self,
        index: u16,
        commitment: [u8; 32],
        params: &Params,
        clock: u64,
    ) -> Result<()> {
        self.require(Stage::Commit, clock)?;
        let seat = self.acting_seat(index)?;
        let is_first = seat.flags & SEAT_COMMITTED == 0;
        ensure!(is_first, CoordinatorError::SeatCommitted);
        seat.commit = commitment;
        seat.flags |= SEAT_COMMITTED;
        let all = self.acting().iter().all(|seat| has(seat, SEAT_COMMITTED));
        if all {
            self.enter(Stage::Reveal, clock, params.verdict_reveal_slots)?;
        }
        Ok(())
    }

    /// Records the verdict of witness `index`, if it gives the committed hash.
    pub fn reveal_verdict(&mut self, index: u16, shown: &Reveal, clock: u64) -> Result<()> {
        self.require(Stage::Reveal, clock)?;
        let seat = self.acting_seat(index)?;
        let has_committed = has(seat, SEAT_COMMITTED);
        ensure!(has_committed, CoordinatorError::SeatNotCommitted);
        ensure!(!has(seat, SEAT_REVEALED), CoordinatorError::SeatRevealed);
        let is_it = seat.commit == shown.commitment;
        ensure!(is_it, CoordinatorError::RevealMismatch);
        seat.verdict = shown.verdict.number();
        seat.sketch = *shown.sketch;
        seat.flags |= SEAT_REVEALED;
        Ok(())
    }

    /// Goes from Commit to Reveal once the window has ended.
    pub fn advance(&mut self, params: &Params, clock: u64) -> Result<()> {
        if self.is(Stage::Commit) && clock > self.stage_end {
            let ended = self.stage_end;
            let group = group_of(usize::from(self.first_acting));
            if let Some(end) = self.commit_ends.get_mut(group) {
                *end = ended;
            }
            self.enter(Stage::Reveal, ended, params.verdict_reveal_slots)?;
        }
        Ok(())
    }

    /// Refuses while a seat may still reveal its verdict.
    pub fn require_all_shown(&self, clock: u64) -> Result<()> {
        ensure!(!self.is(Stage::Commit), CoordinatorError::WindowOpen);
        ensure!(self.is(Stage::Reveal), CoordinatorError::WrongStage);
        let mut acting = self.acting().iter();
        let all_shown = acting.all(|seat| has(seat, SEAT_REVEALED) || !has(seat, SEAT_COMMITTED));
        let is_over = clock > self.stage_end || all_shown;
        ensure!(is_over, CoordinatorError::WindowOpen);
        Ok(())
    }

    /// Seats two more witnesses, where there are so many: the seats so far decide nothing.
    pub fn extend(&mut self, params: &Params, clock: u64) -> Result<()> {
        self.require_all_shown(clock)?;
        let outcome = self.with_panel(params.sketch_factor, |panel, available| {
            panel.outcome(available)
        });
        let is_due = outcome == Some(AuditOutcome::Extend);
        ensure!(is_due, CoordinatorError::ExtensionNotDue);
        self.first_acting = self.num_seats;
        let second = u8::try_from(SECOND_SEATS).unwrap_or(u8::MAX);
        self.num_seats = if self.num_seats < second {
            self.num_available.min(second)
        } else {
            self.num_available
        };
        self.enter(Stage::Commit, clock, params.verdict_commit_slots)
    }

    /// Compares what the seats have shown, with the `sketch_factor` of the run, and hands it to
    /// `ask` with the seats available.
    pub fn with_panel<T>(&self, sketch_factor: u32, ask: impl FnOnce(&Panel, usize) -> T) -> T {
        let judging = self.judging();
        let mut reports = [Report::default(); NUM_SEATS];
        for (report, seat) in reports.iter_mut().zip(judging) {
            report.has_committed = has(seat, SEAT_COMMITTED);
            if has(seat, SEAT_REVEALED) {
                report.verdict = Verdict::from_number(seat.verdict);
                report.sketch = Some(&seat.sketch);
            }
        }
        let given = reports.get(..judging.len()).unwrap_or_default();
        ask(
            &Panel::new(given, sketch_factor),
            usize::from(self.num_available),
        )
    }

    /// The seats whose windows are open: the first ones, or those of the newest extension.
    fn acting(&self) -> &[Seat] {
        self.judging()
            .get(usize::from(self.first_acting)..)
            .unwrap_or_default()
    }

    /// The seat of witness `index` if it may act: the seats before an extension are done.
    fn acting_seat(&mut self, index: u16) -> Result<&mut Seat> {
        let mut judging = self.judging().iter();
        let Some(place) = judging.position(|seat| seat.index == index) else {
            return Err(refuse(CoordinatorError::NotSeated));
        };
        ensure!(
            place >= usize::from(self.first_acting),
            CoordinatorError::WindowOver
        );
        let seat = self.seats.get_mut(place);
        seat.ok_or_else(|| refuse(CoordinatorError::NotSeated))
    }

    /// Last moment of the commits of the seat at `place`, if it committed nothing until then.
    #[must_use]
    pub fn commit_end(&self, place: usize) -> u64 {
        let end = self.commit_ends.get(group_of(place));
        end.copied().unwrap_or(self.stage_end)
    }
}

/// Seats act together: the first three, then two and two.
fn group_of(place: usize) -> usize {
    place.saturating_sub(1) >> 1
}

fn has(seat: &Seat, flag: u8) -> bool {
    seat.flags & flag != 0
}
