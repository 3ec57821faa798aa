//! Opens audits: on request before the seed exists, by the sample after it.
//!
//! Owns the copies that make an audit independent of the ring. Never judges. Next: `seats`.

use anchor_lang::prelude::*;

use crate::constants::*;
use crate::errors::CoordinatorError;
use crate::events::{record, AuditOpened, AuditRequested, Journal};
use crate::math::{add, mul};
use crate::pda;
use crate::pda::SEED_AUDIT;
use crate::round::require_round;
use crate::rules::bitmap::{bit, contains, count, with_bits};
use crate::rules::sampling::seats_of;
use crate::state::init::{initialise, open_mut};
use crate::state::{Audit, AuditKind, Phase, Roster, Round, Run, SeedStatus, Stage};

/// Witness fees that a requested audit costs in advance: one for every seat.
const PREPAID_FEES: u64 = 7;

/// Which audit.
#[derive(Clone, Copy)]
pub struct AuditId {
    /// Round.
    pub round: u64,
    /// Index of the target.
    pub target: u16,
    /// The subject.
    pub kind: AuditKind,
}

/// Opens an audit or a case. The Audit account may still be empty.
pub struct AuditOpener<'a, 'info> {
    /// Pays the rent.
    pub payer: &'a AccountInfo<'info>,
    /// The Audit account.
    pub account: &'a AccountInfo<'info>,
    /// Address of the run.
    pub key: Pubkey,
    /// Current slot.
    pub slot: u64,
    /// The run.
    pub run: &'a mut Run,
    /// Its roster.
    pub roster: &'a mut Roster,
    /// The ring account of the round.
    pub round: &'a mut Round,
    /// The events that the instruction shows at its end.
    pub journal: &'a mut Journal,
}

impl AuditOpener<'_, '_> {
    /// Pays for one more audit of the open round in advance; the caller moves the lamports that
    /// this returns from the challenger to the vault.
    #[inline(never)]
    pub fn request(&mut self, number: u64, target: u16) -> Result<u64> {
        require_round(self.run, self.round, number, Phase::Attest)?;
        let one = bit(usize::from(target));
        let has_work = self.round.committed & one != 0;
        ensure!(has_work, CoordinatorError::CaseWithoutSubject);
        let is_new = self.round.requested & one == 0;
        ensure!(is_new, CoordinatorError::AlreadyRequested);
        let is_free = count(self.round.requested) < u64::from(self.run.params.audit_cap);
        ensure!(is_free, CoordinatorError::RequestsFull);
        let prepaid = mul(self.run.params.witness_fee, PREPAID_FEES)?;
        let challenger = *self.payer.key;
        self.create(AuditId::work(number, target), |audit| {
            audit.flags = AUDIT_REQUESTED;
            audit.challenger = challenger;
            audit.prepaid = prepaid;
            audit.stage_end = NONE;
            Ok(())
        })?;
        self.round.requested |= one;
        self.run.deposit_bond(prepaid)?;
        self.round.invariant()?;
        let event = AuditRequested {
            run: self.key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            round: number,
            target,
            challenger,
            prepaid,
        };
        record(self.run, self.journal, &event)?;
        Ok(prepaid)
    }

    /// Opens the audit of a sampled or requested target whose openings may still come.
    #[inline(never)]
    pub fn open(&mut self, number: u64, target: u16) -> Result<()> {
        let ends = self.require_due(number, target)?;
        let one = bit(usize::from(target));
        let seats = seats_of(&self.round.seed, target, self.round.eligible);
        let is_seated = !seats.indices().is_empty();
        ensure!(is_seated, CoordinatorError::TooFewWitnesses);
        let is_sampled = self.round.sampled & one != 0;
        if self.account.owner != &crate::ID {
            ensure!(is_sampled, CoordinatorError::NotSampled);
            self.create(AuditId::work(number, target), |_| Ok(()))?;
        }
        let mut audit = open_mut::<Audit>(self.account)?;
        audit.require_id(&self.key, AuditId::work(number, target))?;
        ensure!(audit.is(Stage::Requested), CoordinatorError::WrongStage);
        if is_sampled {
            audit.flags &= !AUDIT_REQUESTED;
        }
        audit.copy_round(self.run, self.round)?;
        let mut seated = [NO_INDEX; NUM_SEATS];
        for ((seat, copy), index) in audit.seats.iter_mut().zip(&mut seated).zip(seats.indices()) {
            seat.index = *index;
            *copy = *index;
            let judge = self.roster.entry_mut(*index)?;
            judge.audits = judge.audits.saturating_add(1);
        }
        audit.num_seats = u8::try_from(FIRST_SEATS).unwrap_or(0);
        audit.num_available = u8::try_from(seats.indices().len()).unwrap_or(0);
        audit.stage = Stage::Openings as u8;
        audit.stage_end = ends;
        audit.invariant()?;
        self.round.audited |= one;
        self.round.invariant()?;
        let event = AuditOpened {
            run: self.key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            round: number,
            target,
            is_requested: audit.has_flag(AUDIT_REQUESTED),
            seats: seated,
            stage_end: ends,
        };
        record(self.run, self.journal, &event)
    }

    /// Refuses a target whose audit cannot be opened now. Returns the last moment for openings.
    fn require_due(&self, number: u64, target: u16) -> Result<u64> {
        let (run, round) = (&*self.run, &*self.round);
        let is_held = round.round == number && number != NONE;
        ensure!(is_held, CoordinatorError::WrongRoundAccount);
        let is_frozen = round.seed_status == SeedStatus::Frozen as u8;
        ensure!(is_frozen, CoordinatorError::SeedNotFrozen);
        let place = usize::from(target);
        let is_included = contains(round.included, place);
        ensure!(is_included, CoordinatorError::NotIncluded);
        let is_drawn = contains(round.sampled | round.requested, place);
        ensure!(is_drawn, CoordinatorError::NotSampled);
        let is_first = !contains(round.audited, place);
        ensure!(is_first, CoordinatorError::AlreadyAudited);
        let ends = add(round.freeze_clock, run.params.openings_slots)?;
        ensure!(run.clock(self.slot) <= ends, CoordinatorError::WindowOver);
        Ok(ends)
    }

    /// Creates the account of an audit in its first stage, and counts it.
    pub fn create(
        &mut self,
        id: AuditId,
        fill: impl FnOnce(&mut Audit) -> Result<()>,
    ) -> Result<()> {
        let AuditId {
            round,
            target,
            kind,
        } = id;
        let (number, index, kind) = (round.to_le_bytes(), target.to_le_bytes(), [kind as u8]);
        let seeds: [&[u8]; 5] = [SEED_AUDIT, self.key.as_ref(), &number, &index, &kind];
        let (address, bump) = pda::find(&seeds);
        let is_here = *self.account.key == address;
        ensure!(is_here, CoordinatorError::WrongAddress);
        let [tag, run, number, index, kind] = seeds;
        let signed: [&[u8]; 6] = [tag, run, number, index, kind, &[bump]];
        pda::create(self.payer, self.account, &signed, Audit::SIZE)?;
        let entry = self.roster.entry_mut(target)?;
        entry.audits = entry.audits.saturating_add(1);
        entry.targets = entry.targets.saturating_add(1);
        entry.invariant()?;
        let (payer, owner, key) = (*self.payer.key, entry.owner, self.key);
        initialise::<Audit>(self.account, |audit| {
            audit.version = VERSION;
            audit.bump = bump;
            audit.kind = id.kind as u8;
            audit.target = target;
            audit.subject = NO_INDEX;
            audit.challenger_index = NO_INDEX;
            audit.run = key;
            audit.payer = payer;
            audit.owner = owner;
            audit.round = round;
            audit.previous_included = NONE;
            audit.case_seed_slot = NONE;
            fill(audit)?;
            audit.invariant()
        })?;
        self.run.num_audits = add(self.run.num_audits, 1)?;
        Ok(())
    }
}

impl AuditId {
    /// The audit of the work of `target` in `round`.
    #[must_use]
    pub fn work(round: u64, target: u16) -> Self {
        Self {
            round,
            target,
            kind: AuditKind::Work,
        }
    }
}

impl Audit {
    /// Refuses the account of another audit.
    pub fn require_id(&self, run: &Pubkey, id: AuditId) -> Result<()> {
        ensure!(self.run == *run, CoordinatorError::WrongRun);
        let is_same =
            self.round == id.round && self.target == id.target && self.kind == id.kind as u8;
        ensure!(is_same, CoordinatorError::WrongAddress);
        Ok(())
    }

    /// Copies all that the audit needs of its closed round: reuse of the ring touches nothing.
    pub fn copy_round(&mut self, run: &Run, round: &Round) -> Result<()> {
        let ballot = round.ballot(self.target)?;
        self.header_hash = ballot.header_hash;
        self.root_vote = ballot.root_vote;
        self.previous_included = ballot.previous_included;
        self.attest_bitmap = ballot.attest_bitmap;
        self.possession = ballot.possession;
        self.canonical_root = round.canonical_root;
        self.seed = round.seed;
        self.eligible = round.eligible;
        self.case_end = add(round.close_clock, run.params.case_slots)?;
        let one = bit(usize::from(self.target));
        if round.included & one != 0 && round.unpaid & one == 0 {
            self.reward_paid = round.reward_paid;
            self.reward_window = round.reward_window;
        }
        if round.withheld & one != 0 {
            self.flags |= AUDIT_WITHHELD;
        }
        self.reward_price = round.reward_price;
        self.openings_price = round.openings_price(self.target);
        self.vouchers = 0;
        for (bit, ballot) in with_bits(&round.ballots) {
            if round.attested & bit != 0 && ballot.attest_bitmap & one != 0 {
                self.vouchers |= bit;
            }
        }
        Ok(())
    }
}
