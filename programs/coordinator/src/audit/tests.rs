//! Transitions of one audit, moment by moment.

use anchor_lang::prelude::*;
use bytemuck::Zeroable;

use super::seats::Reveal;
use super::Scene;
use crate::constants::*;
use crate::rules::bits::bit;
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

fn heard(audit: &mut Audit, says: &[(u16, Verdict)]) {
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
    assert!(audit.require_heard(220).is_ok());
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
    assert!(audit.require_heard(160).is_err());
    assert!(audit.require_heard(161).is_ok());
    reveal(&mut audit, 12, Verdict::Ok, 122).unwrap();
    assert!(audit.require_heard(122).is_ok());
}

#[test]
fn nobody_waits_for_seats_that_never_committed() {
    let mut audit = audit();
    audit.advance(&params(), 180).unwrap();
    assert!(audit.require_heard(180).is_err());
    audit.advance(&params(), 181).unwrap();
    assert!(audit.require_heard(181).is_ok());
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
    heard(&mut audit, &[(10, Verdict::Ok), (11, Verdict::Mismatch)]);
    audit.extend(&params(), 300).unwrap();
    assert!(audit.is(Stage::Commit) && audit.stage_end == 380 && audit.num_seats == 5);
    assert!(commit(&mut audit, 12, 301).is_err());
    commit(&mut audit, 13, 301).unwrap();
    commit(&mut audit, 14, 302).unwrap();
    assert_eq!(audit.stage_end, 342);
    assert!(reveal(&mut audit, 11, Verdict::Ok, 303).is_err());
    reveal(&mut audit, 13, Verdict::Ok, 303).unwrap();
    assert!(audit.require_heard(303).is_err());
    show(&mut audit, 14, Verdict::Ok, &OTHER, 304).unwrap();
    assert!(audit.require_heard(304).is_ok() && audit.extend(&params(), 304).is_err());
    let outcome = audit.with_panel(|panel, available| panel.outcome(available));
    assert_eq!(outcome, Some(AuditOutcome::Unproven));
}

#[test]
fn three_that_agree_are_not_extended() {
    let mut audit = audit();
    heard(
        &mut audit,
        &[(10, Verdict::Ok), (11, Verdict::Ok), (12, Verdict::Ok)],
    );
    assert!(audit.extend(&params(), 300).is_err());
}

/// Run, roster and the ring account of round 7, in which target 2 earned 1000.
struct World {
    run: Box<Run>,
    roster: Box<Roster>,
    round: Box<Round>,
    audit: Box<Audit>,
}

fn world() -> World {
    let mut world = World {
        run: Box::new(Run::zeroed()),
        roster: Box::new(Roster::zeroed()),
        round: Box::new(Round::zeroed()),
        audit: audit(),
    };
    world.run.params = params();
    world.run.paused_at_slot = NONE;
    world.run.reward_pool = 2_500;
    world.round.round = 7;
    world.round.flags = ROUND_CLOSED;
    world.round.included = bit(2);
    for entry in &mut world.roster.entries {
        entry.join(Pubkey::new_from_array([9; 32]), Pubkey::default(), ROLES, 0);
        entry.targets = 1;
        entry.audits = 1;
    }
    let target = &mut world.roster.entries[2];
    world.run.credit_reward(target, 4, 1_000).unwrap();
    world.run.credit_reward(target, 4, 500).unwrap();
    world.audit.reward_paid = 1_000;
    world.audit.reward_window = 4;
    world
}

impl World {
    fn scene(&mut self, clock: u64) -> (Scene<'_, 'static>, &mut Round) {
        let scene = Scene {
            key: Pubkey::default(),
            slot: clock,
            clock,
            run: &mut self.run,
            roster: &mut self.roster,
            audit: &mut self.audit,
            people: &[],
            burned: 0,
        };
        (scene, &mut self.round)
    }
}

#[test]
fn a_reward_is_taken_back_once_whoever_comes_first() {
    let mut world = world();
    let (mut scene, round) = world.scene(300);
    assert_eq!(scene.take_back_reward(round).unwrap(), 1_000);
    scene.audit.reward_paid = 1_000;
    assert_eq!(scene.take_back_reward(round).unwrap(), 0);
    assert_eq!(world.round.unpaid, bit(2));
    let mut world = self::world();
    world.round.included = 0;
    world.round.struck = bit(2);
    let (mut scene, round) = world.scene(300);
    assert_eq!(scene.take_back_reward(round).unwrap(), 0);
    assert_eq!(world.roster.entries[2].unvested().unwrap(), 1_500);
}

#[test]
fn a_round_that_the_ring_has_left_behind_is_not_marked() {
    let mut world = world();
    world.round.round = 23;
    let (mut scene, round) = world.scene(300);
    assert_eq!(scene.take_back_reward(round).unwrap(), 1_000);
    assert_eq!(world.round.unpaid, 0);
}

#[test]
fn openings_are_overdue_after_their_last_moment() {
    let mut world = world();
    world.audit.enter(Stage::Openings, 100, 60).unwrap();
    let (scene, round) = world.scene(160);
    assert!(scene.find(round).is_err());
    let (scene, round) = world.scene(161);
    let outcome = scene.find(round).unwrap().outcome;
    assert_eq!(outcome, Some(AuditOutcome::NoOpenings));
}

#[test]
fn a_struck_payload_is_not_audited_but_who_worked_is_paid() {
    let mut world = world();
    heard(&mut world.audit, &[(10, Verdict::Mismatch)]);
    world.round.included = 0;
    world.round.struck = bit(2);
    let (scene, round) = world.scene(186);
    let found = scene.find(round).unwrap();
    assert!(found.outcome.is_none() && found.faults.iter().all(Option::is_none));
    assert_eq!(found.paid, 0b1);
}

#[test]
fn a_request_ends_where_it_can_no_longer_be_opened() {
    let mut world = world();
    world.audit.stage = Stage::Requested as u8;
    world.run.params.openings_slots = 60;
    world.round.freeze_clock = 100;
    let ends = |world: &mut World, clock| {
        let (scene, round) = world.scene(clock);
        scene.find(round).is_ok()
    };
    assert!(!ends(&mut world, 161), "the seed is still to come");
    world.round.seed_status = SeedStatus::Frozen as u8;
    assert!(!ends(&mut world, 160) && ends(&mut world, 161));
    world.round.seed_status = SeedStatus::Lost as u8;
    assert!(ends(&mut world, 1));
    world.round.seed_status = SeedStatus::Pending as u8;
    world.round.included = 0;
    assert!(ends(&mut world, 1));
    world.round.flags = 0;
    assert!(!ends(&mut world, 1), "the round is open");
    world.round.round = 23;
    assert!(ends(&mut world, 1), "the ring has moved on");
}
