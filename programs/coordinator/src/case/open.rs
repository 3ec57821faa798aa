//! Opens a bonded case: over the work of an audit that cleared, or over an exact fault.
//!
//! Owns what may be claimed, and until when. Never judges. Next: `jury`.

use anchor_lang::prelude::*;

use super::jury::eligible_jurors;
use crate::audit::open::{AuditId, AuditOpener};
use crate::constants::*;
use crate::errors::CoordinatorError;
use crate::events::{record, CaseOpened};
use crate::math::add;
use crate::round::open::require_ring_account;
use crate::rules::bitmap::{bit, contains, count};
use crate::rules::quorum::AuditOutcome;
use crate::state::init::open_mut;
use crate::state::{Audit, AuditKind, Round, Stage};

/// The claim of a challenger.
#[derive(Clone, Copy)]
pub struct Claim {
    /// Round, target and kind of fault.
    pub id: AuditId,
    /// Possession: index of the payload in question; else 65535.
    pub subject: u16,
}

impl AuditOpener<'_, '_> {
    /// Opens the case; the caller moves the bond that this returns from the challenger to the
    /// vault.
    #[inline(never)]
    pub fn open_case(&mut self, claim: &Claim) -> Result<u64> {
        let id = claim.id;
        require_ring_account(self.run, self.round, id.round)?;
        self.require_case_window(id.round)?;
        require_subject(self.round, claim)?;
        let challenger = *self.payer.key;
        let entry = self.roster.entry(id.target)?;
        // While a run rests, an index may be somebody else's although the round is in the ring.
        let is_theirs = entry.joined_round <= id.round;
        ensure!(is_theirs, CoordinatorError::CaseWithoutSubject);
        let is_other = entry.owner != challenger;
        ensure!(is_other, CoordinatorError::ChallengesItself);
        let is_convicted = entry.is_convicted(id.kind, id.round);
        ensure!(!is_convicted, CoordinatorError::AlreadyConvicted);
        let is_open = self.account.owner == &crate::ID;
        if id.kind != AuditKind::Work {
            self.create(id, |audit| {
                audit.stage = Stage::Settled as u8;
                audit.subject = claim.subject;
                Ok(())
            })?;
        } else {
            ensure!(is_open, CoordinatorError::NotSampled);
        }
        let mut audit = open_mut::<Audit>(self.account)?;
        audit.require_id(&self.key, id)?;
        if id.kind == AuditKind::Work {
            audit.require_contestable()?;
        } else {
            audit.copy_round(self.run, self.round)?;
            audit.copy_subject(self.round)?;
        }
        audit.challenger = challenger;
        audit.challenger_index = self.note_parties(id.target, &challenger)?;
        self.require_judges(&audit)?;
        audit.bond = self.run.params.bond_lamports;
        audit.flags |= AUDIT_BONDED;
        audit.accuse(self.run.params.jury_seed_slot(self.slot)?);
        audit.invariant()?;
        self.run.deposit_bond(audit.bond)?;
        let event = CaseOpened {
            run: self.key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            round: id.round,
            target: id.target,
            audit_kind: audit.kind,
            subject: audit.subject,
            challenger,
            challenger_index: audit.challenger_index,
            bond: audit.bond,
            case_seed_slot: audit.case_seed_slot,
        };
        record(self.run, self.journal, &event)?;
        Ok(audit.bond)
    }

    /// Refuses a round that is open, has left the ring, or closed too long ago.
    fn require_case_window(&self, number: u64) -> Result<()> {
        let (run, round) = (&*self.run, &*self.round);
        let is_held = round.round == number && number != NONE;
        ensure!(is_held, CoordinatorError::CaseWindowOver);
        let is_closed = round.has_flag(ROUND_CLOSED);
        ensure!(is_closed, CoordinatorError::CaseWithoutSubject);
        let ends = add(round.close_clock, run.params.case_slots)?;
        ensure!(
            run.clock(self.slot) <= ends,
            CoordinatorError::CaseWindowOver
        );
        Ok(())
    }

    /// Refuses a case without enough jurors now: it would prevent a later, proper case.
    fn require_judges(&self, audit: &Audit) -> Result<()> {
        let parties = [audit.target, audit.challenger_index];
        let parties = parties.map(|index| bit(usize::from(index)));
        let eligible = eligible_jurors(self.roster, audit.eligible, audit.round);
        let judges = parties.iter().fold(eligible, |all, one| all & !one);
        let suffices = count(judges) >= u64::try_from(FIRST_SEATS).unwrap_or(u64::MAX);
        ensure!(suffices, CoordinatorError::TooFewWitnesses);
        Ok(())
    }

    /// Freezes the target and names the challenger, if it takes part, so that neither index goes
    /// to somebody else. Returns the challenger's index, or 65535.
    fn note_parties(&mut self, target: u16, challenger: &Pubkey) -> Result<u16> {
        self.roster.entry_mut(target)?.freeze()?;
        // One that has left judges too. An owner that came back has two entries: the present one.
        let theirs = self.roster.entries.iter_mut().zip(0..);
        let theirs = theirs.filter(|(entry, _)| entry.owner == *challenger);
        let Some((entry, index)) = theirs.max_by_key(|(entry, _)| entry.is_present()) else {
            return Ok(NO_INDEX);
        };
        entry.audits = entry.audits.saturating_add(1);
        Ok(index)
    }
}

/// Refuses a claim about what did not happen in the round.
fn require_subject(round: &Round, claim: &Claim) -> Result<()> {
    let (target, subject) = (usize::from(claim.id.target), usize::from(claim.subject));
    let is_it = match claim.id.kind {
        AuditKind::Work | AuditKind::Payload => contains(round.included, target),
        // A root-only step has the number of the real round that follows it: the case about that
        // one would find its account taken.
        AuditKind::Root => {
            let is_exempt = round.has_flag(ROUND_FORCED_VOID | ROUND_ROOT_ONLY);
            contains(round.committed, target) && !is_exempt
        }
        AuditKind::Possession => {
            let vouched = round.ballot(claim.id.target)?.attest_bitmap & round.included;
            contains(round.attested, target) && contains(vouched, subject)
        }
    };
    let is_possession = claim.id.kind == AuditKind::Possession;
    let names_one = is_possession || claim.subject == NO_INDEX;
    ensure!(is_it && names_one, CoordinatorError::CaseWithoutSubject);
    Ok(())
}

impl Audit {
    /// Refuses an audit of work that shows nothing to judge, or was accused already.
    fn require_contestable(&self) -> Result<()> {
        ensure!(self.is(Stage::Settled), CoordinatorError::WrongStage);
        let is_judged = self.outcome == AuditOutcome::Cleared as u8
            || self.outcome == AuditOutcome::Unproven as u8;
        let has_openings = self.openings_root != [0; 32];
        ensure!(
            is_judged && has_openings,
            CoordinatorError::CaseWithoutSubject
        );
        Ok(())
    }

    /// Possession is of the subject's payload, not of the target's.
    fn copy_subject(&mut self, round: &Round) -> Result<()> {
        if self.subject != NO_INDEX {
            self.header_hash = round.ballot(self.subject)?.header_hash;
        }
        Ok(())
    }

    /// Starts the wait for the seed of the jury.
    pub fn accuse(&mut self, seed_slot: u64) {
        self.stage = Stage::Accused as u8;
        self.stage_end = NONE;
        self.case_seed_slot = seed_slot;
    }
}
