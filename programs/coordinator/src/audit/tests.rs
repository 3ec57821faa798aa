//! Transitions of one audit, moment by moment.

use anchor_lang::prelude::*;
use bytemuck::Zeroable;

use super::seats::Reveal;
use super::AuditContext;
use crate::constants::*;
use crate::events::Journal;
use crate::rules::bitmap::bit;
use crate::rules::quorum::AuditOutcome;
use crate::rules::verdict::Verdict;
use crate::state::{Audit, Params, Roster, Round, Run, SeedStatus, Stage};

const SAME: [i32; SKETCH_LEN] = [1_000; SKETCH_LEN];
const OTHER: [i32; SKETCH_LEN] = [-1_000; SKETCH_LEN];

fn params() -> Params {
    let mut params = Params::zeroed();
    params.verdict_commit_slots = 80;
    params.verdict_reveal_slots = 40;
    params.witness_fee = 200;
    params.vesting_slots = 100;
    params
}

/// Five witnesses 10..14 are seated for target 2; openings are posted, commits end at 180.
fn audit() -> Box<Audit> {
    let mut audit = Box::new(Audit::zeroed());
    audit.target = 2;
    audit.round = 7;
    audit.num_seats = 3;
    audit.num_available = 5;
    for (index, seat) in (10..).zip(&mut audit.seats) {
        seat.index = index;
    }
    audit.enter(Stage::Commit, 100, 80).unwrap();
    audit
}

fn commit(audit: &mut Audit, index: u16, clock: u64) -> Result<()> {
    audit.advance(&params(), clock)?;
    audit.commit_verdict(index, hash_of(index), &params(), clock)
}

fn reveal(audit: &mut Audit, index: u16, verdict: Verdict, clock: u64) -> Result<()> {
    show(audit, index, verdict, &SAME, clock)
}

fn show(
    audit: &mut Audit,
    index: u16,
    verdict: Verdict,
    sketch: &[i32; SKETCH_LEN],
    clock: u64,
) -> Result<()> {
    audit.advance(&params(), clock)?;
    let shown = Reveal {
        verdict,
        sketch,
        commitment: hash_of(index),
    };
    audit.reveal_verdict(index, &shown, clock)
}

fn hash_of(index: u16) -> [u8; 32] {
    [u8::try_from(index).unwrap(); 32]
}

fn judged(audit: &mut Audit, says: &[(u16, Verdict)]) {
    for (index, _) in says {
        commit(audit, *index, 110).unwrap();
    }
    let clock = if audit.is(Stage::Reveal) { 111 } else { 185 };
    for (index, verdict) in says {
        reveal(audit, *index, *verdict, clock).unwrap();
    }
}

#[test]
fn commit_ends_with_its_last_moment_and_reveal_follows_whoever_looks() {
    let mut audit = audit();
    commit(&mut audit, 10, 180).unwrap();
    assert!(commit(&mut audit, 11, 181).is_err());
    assert!(audit.is(Stage::Reveal));
    assert_eq!(
        audit.stage_end, 220,
        "counted from the end of Commit, not from the crank"
    );
    reveal(&mut audit, 10, Verdict::Ok, 220).unwrap();
    assert!(audit.require_all_shown(220).is_ok());
}

#[test]
fn windows_end_early_when_all_have_acted() {
    let mut audit = audit();
    for index in 10..13 {
        commit(&mut audit, index, 120).unwrap();
    }
    assert!(audit.is(Stage::Reveal) && audit.stage_end == 160);
    reveal(&mut audit, 10, Verdict::Ok, 121).unwrap();
    reveal(&mut audit, 11, Verdict::Ok, 121).unwrap();
    assert!(audit.require_all_shown(160).is_err());
    assert!(audit.require_all_shown(161).is_ok());
    reveal(&mut audit, 12, Verdict::Ok, 122).unwrap();
    assert!(audit.require_all_shown(122).is_ok());
}

#[test]
fn nobody_waits_for_seats_that_never_committed() {
    let mut audit = audit();
    audit.advance(&params(), 180).unwrap();
    assert!(audit.require_all_shown(180).is_err());
    audit.advance(&params(), 181).unwrap();
    assert!(audit.require_all_shown(181).is_ok());
}

#[test]
fn a_seat_acts_once_and_only_a_seat_that_judges_now() {
    let mut audit = audit();
    assert!(commit(&mut audit, 13, 110).is_err());
    assert!(commit(&mut audit, 2, 110).is_err());
    commit(&mut audit, 10, 110).unwrap();
    assert!(commit(&mut audit, 10, 111).is_err());
    assert!(reveal(&mut audit, 10, Verdict::Ok, 111).is_err());
    assert!(reveal(&mut audit, 11, Verdict::Ok, 181).is_err());
    reveal(&mut audit, 10, Verdict::Ok, 181).unwrap();
    assert!(reveal(&mut audit, 10, Verdict::Ok, 182).is_err());
}

#[test]
fn what_is_shown_gives_the_committed_hash() {
    let mut audit = audit();
    commit(&mut audit, 10, 110).unwrap();
    audit.advance(&params(), 181).unwrap();
    let shown = Reveal {
        verdict: Verdict::Ok,
        sketch: &SAME,
        commitment: hash_of(11),
    };
    assert!(audit.reveal_verdict(10, &shown, 181).is_err());
    assert_eq!(audit.seats[0].flags, SEAT_COMMITTED);
}

#[test]
fn the_extension_gives_windows_to_the_new_seats_only() {
    let mut audit = audit();
    judged(&mut audit, &[(10, Verdict::Ok), (11, Verdict::Mismatch)]);
    audit.extend(&params(), 300).unwrap();
    assert!(audit.is(Stage::Commit) && audit.stage_end == 380 && audit.num_seats == 5);
    assert!(commit(&mut audit, 12, 301).is_err());
    commit(&mut audit, 13, 301).unwrap();
    commit(&mut audit, 14, 302).unwrap();
    assert_eq!(audit.stage_end, 342);
    assert!(reveal(&mut audit, 11, Verdict::Ok, 303).is_err());
    reveal(&mut audit, 13, Verdict::Ok, 303).unwrap();
    assert!(audit.require_all_shown(303).is_err());
    show(&mut audit, 14, Verdict::Ok, &OTHER, 304).unwrap();
    assert!(audit.require_all_shown(304).is_ok() && audit.extend(&params(), 304).is_err());
    let outcome = audit.with_panel(100, |panel, available| panel.outcome(available));
    assert_eq!(outcome, Some(AuditOutcome::Unproven));
}

#[test]
fn three_that_agree_are_not_extended() {
    let mut audit = audit();
    judged(
        &mut audit,
        &[(10, Verdict::Ok), (11, Verdict::Ok), (12, Verdict::Ok)],
    );
    assert!(audit.extend(&params(), 300).is_err());
}

/// Run, roster and the ring account of round 7, in which target 2 earned 1000.
struct Setup {
    run: Box<Run>,
    roster: Box<Roster>,
    round: Box<Round>,
    audit: Box<Audit>,
    journal: Journal,
}

fn setup() -> Setup {
    let mut setup = Setup {
        run: Box::new(Run::zeroed()),
        roster: Box::new(Roster::zeroed()),
        round: Box::new(Round::zeroed()),
        audit: audit(),
        journal: Journal::default(),
    };
    setup.run.params = params();
    setup.run.paused_at_slot = NONE;
    setup.run.reward_pool = 2_500;
    setup.round.round = 7;
    setup.round.flags = ROUND_CLOSED;
    setup.round.included = bit(2);
    for entry in &mut setup.roster.entries {
        entry.join(Pubkey::new_from_array([9; 32]), Pubkey::default(), ROLES, 0);
        entry.targets = 1;
        entry.audits = 1;
    }
    let target = &mut setup.roster.entries[2];
    setup.run.credit_reward(target, 4, 1_000).unwrap();
    setup.run.credit_reward(target, 4, 500).unwrap();
    setup.audit.reward_paid = 1_000;
    setup.audit.reward_window = 4;
    setup
}

impl Setup {
    fn context(&mut self, clock: u64) -> (AuditContext<'_, 'static>, &mut Round) {
        let context = AuditContext {
            key: Pubkey::default(),
            slot: clock,
            clock,
            run: &mut self.run,
            roster: &mut self.roster,
            audit: &mut self.audit,
            participants: &[],
            burned: 0,
            journal: &mut self.journal,
            acquittal: 0,
        };
        (context, &mut self.round)
    }
}

#[test]
fn a_reward_is_taken_back_once_whoever_comes_first() {
    let mut setup = setup();
    let (mut context, round) = setup.context(300);
    assert_eq!(context.take_back_reward(round).unwrap(), 1_000);
    context.audit.reward_paid = 1_000;
    assert_eq!(context.take_back_reward(round).unwrap(), 0);
    assert_eq!(setup.round.unpaid, bit(2));
    let mut setup = self::setup();
    setup.round.included = 0;
    setup.round.struck = bit(2);
    let (mut context, round) = setup.context(300);
    assert_eq!(context.take_back_reward(round).unwrap(), 0);
    assert_eq!(setup.roster.entries[2].unvested().unwrap(), 1_500);
}

#[test]
fn a_round_that_the_ring_has_left_behind_is_not_marked() {
    let mut setup = setup();
    setup.round.round = 23;
    let (mut context, round) = setup.context(300);
    assert_eq!(context.take_back_reward(round).unwrap(), 1_000);
    assert_eq!(setup.round.unpaid, 0);
}

#[test]
fn openings_are_overdue_after_their_last_moment() {
    let mut setup = setup();
    setup.audit.enter(Stage::Openings, 100, 60).unwrap();
    let (context, round) = setup.context(160);
    assert!(context.find(round).is_err());
    let (context, round) = setup.context(161);
    let outcome = context.find(round).unwrap().outcome;
    assert_eq!(outcome, Some(AuditOutcome::NoOpenings));
}

#[test]
fn a_struck_payload_is_not_audited_but_who_worked_is_paid() {
    let mut setup = setup();
    judged(&mut setup.audit, &[(10, Verdict::Mismatch)]);
    setup.round.included = 0;
    setup.round.struck = bit(2);
    let (context, round) = setup.context(186);
    let found = context.find(round).unwrap();
    assert!(found.outcome.is_none() && found.faults.iter().all(Option::is_none));
    assert_eq!(found.paid, 0b1);
}

#[test]
fn a_request_ends_where_it_can_no_longer_be_opened() {
    let mut setup = setup();
    setup.audit.stage = Stage::Requested as u8;
    setup.run.params.openings_slots = 60;
    setup.round.freeze_clock = 100;
    let ends = |setup: &mut Setup, clock| {
        let (context, round) = setup.context(clock);
        context.find(round).is_ok()
    };
    assert!(!ends(&mut setup, 161), "the seed is still to come");
    setup.round.seed_status = SeedStatus::Frozen as u8;
    assert!(!ends(&mut setup, 160) && ends(&mut setup, 161));
    setup.round.seed_status = SeedStatus::Lost as u8;
    assert!(ends(&mut setup, 1));
    setup.round.seed_status = SeedStatus::Pending as u8;
    setup.round.included = 0;
    assert!(ends(&mut setup, 1));
    setup.round.flags = 0;
    assert!(!ends(&mut setup, 1), "the round is open");
    setup.round.round = 23;
    assert!(ends(&mut setup, 1), "the ring has moved on");
}
