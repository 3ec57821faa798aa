//! Opens a round, or the root-only step of Cooldown.
//!
//! Owns the sets of a round: they are fixed here, and every rule of the round and of its audits
//! uses them. Leaves, session keys and parameters that waited take effect here too.
//! Next: `close`.

use anchor_lang::prelude::*;

use super::waiting::halt;
use crate::audit::probation::Ended;
use crate::constants::*;
use crate::errors::CoordinatorError;
use crate::events::{record, Journal, MembershipChanged, ParamsApplied, RoundOpened};
use crate::math::{div, rem};
use crate::rules::bitmap::{bit, count, with_bits};
use crate::rules::eligibility::{fill_bench, has_earned_seat};
use crate::state::{Ballot, Change, Entry, Phase, Roster, Round, Run, SeedStatus, Status};

/// Included rounds, of those in which it could have been audited, after which a participant is
/// sampled with `p_base_ppm`.
pub const NEW_UNTIL_INCLUDED: u64 = 20;

/// Whether members that leave, or whose stake is short, are counted and stay for one step more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Leavers {
    /// They go now.
    Gone,
    /// They stay until the root-only step has closed.
    Kept,
}

/// The sets of a round, fixed at its open.
#[derive(Clone, Copy, Default)]
struct Sets {
    members: u64,
    trainers: u64,
    eligible: u64,
    is_new: u64,
}

/// Opens round `run.round` in its ring account `round`: Commit, or Cooldown where fewer than the
/// minimum stay or all rounds are done. Where nobody, or less than half, is left to vote it halts.
///
/// Members that leave, or whose stake is short, still vote in the root-only step, which ends their
/// rounds: without them there may be no member left that knows the root.
#[inline(never)]
pub fn open_next(
    run: &mut Run,
    journal: &mut Journal,
    key: &Pubkey,
    roster: &mut Roster,
    round: &mut Round,
    slot: u64,
) -> Result<()> {
    require_ring_account(run, round, run.round)?;
    start_epoch(run, journal, key, roster, slot)?;
    let staying = fix_sets(run, roster, Leavers::Gone);
    let is_root_only = run.round >= run.params.max_rounds
        || staying.trainers == 0
        || count(staying.members) < u64::from(run.params.min_members);
    let leavers = if is_root_only {
        Leavers::Kept
    } else {
        Leavers::Gone
    };
    turn_over(run, journal, key, roster, slot, leavers)?;
    let sets = fix_sets(run, roster, leavers);
    if sets.trainers == 0 || !run.expected().is_half(count(sets.members)) {
        return halt(run, journal, key, slot);
    }
    let phase = if is_root_only {
        Phase::Cooldown
    } else {
        Phase::Commit
    };
    if !is_root_only {
        require_seed_settled(run)?;
    }
    run.enter(phase, slot, Some(run.params.commit_slots))?;
    run.expect(
        run.expected()
            .opened(sets.members, run.epoch, run.round == 0),
    );
    run.lost_seeds &= !seed_bit(run.round);
    write(run, round, &sets, slot);
    if is_root_only {
        round.flags = ROUND_ROOT_ONLY;
    } else {
        note_previous(run, roster, round)?;
    }
    let event = RoundOpened {
        run: *key,
        sequence: run.event_sequence,
        slot,
        round: run.round,
        epoch: run.epoch,
        cursor: run.cursor,
        root_only: is_root_only,
        ends_slot: run.phase_end_slot,
        members: sets.members,
        trainers: sets.trainers,
        eligible: sets.eligible,
        is_new: sets.is_new,
    };
    record(run, journal, &event)
}

/// Refuses an account that is not at the ring position of round `number`.
pub fn require_ring_account(run: &Run, round: &Round, number: u64) -> Result<()> {
    let position = rem(number, u64::from(run.params.ring))?;
    ensure!(
        u64::from(round.position) == position,
        CoordinatorError::WrongRoundAccount
    );
    Ok(())
}

/// Applies the changes that waited for the end of a round: session keys and, unless kept, leaves
/// and the inactivity of members whose stake is short.
#[inline(never)]
pub fn turn_over(
    run: &mut Run,
    journal: &mut Journal,
    key: &Pubkey,
    roster: &mut Roster,
    slot: u64,
    leavers: Leavers,
) -> Result<()> {
    let (mut left, mut rotated, mut short) = (0, 0, 0);
    let mut ended = Ended::default();
    for (bit, entry) in with_bits(&mut roster.entries) {
        if entry.rotate_session() {
            rotated |= bit;
        }
        if leavers == Leavers::Kept {
            continue;
        }
        if entry.is_leaving() {
            ended.add(run, entry, bit)?;
            entry.leave(run.round);
            left |= bit;
        } else if entry.is(Status::Active) && entry.is_short(&run.params) {
            entry.clear_ready();
            entry.change(Change::Deactivate);
            short |= bit;
        }
    }
    run.expect(run.expected().without(left | short));
    ended.report(run, journal, key, slot)?;
    if left | rotated | short == 0 {
        return Ok(());
    }
    let event = MembershipChanged {
        run: *key,
        sequence: run.event_sequence,
        slot,
        round: run.round,
        left,
        rotated,
        short,
    };
    record(run, journal, &event)
}

/// Brings the epoch up to the round and applies parameters that waited for its start.
fn start_epoch(
    run: &mut Run,
    journal: &mut Journal,
    key: &Pubkey,
    roster: &Roster,
    slot: u64,
) -> Result<()> {
    run.epoch = div(run.round, u64::from(run.params.rounds_per_epoch))?;
    if !run.apply_pending_params(slot, roster)? {
        return Ok(());
    }
    let event = ParamsApplied {
        run: *key,
        sequence: run.event_sequence,
        slot,
        epoch: run.epoch,
        params: run.params,
    };
    record(run, journal, &event)
}

/// Refuses while the seed of the round `keep_rounds` back is open: its trainers still keep u.
fn require_seed_settled(run: &Run) -> Result<()> {
    let Some(kept) = run.round.checked_sub(u64::from(run.params.keep_rounds)) else {
        return Ok(());
    };
    ensure!(
        run.seeds_pending & seed_bit(kept) == 0,
        CoordinatorError::SeedPending
    );
    Ok(())
}

/// The bit of round `number` in `run.seeds_pending`.
#[must_use]
pub fn seed_bit(number: u64) -> u64 {
    usize::try_from(number % 64).map_or(0, bit)
}

fn fix_sets(run: &Run, roster: &Roster, leavers: Leavers) -> Sets {
    let (mut sets, mut witnesses) = (Sets::default(), 0);
    let after = u64::from(run.params.seat_after_rounds);
    for (bit, entry) in with_bits(&roster.entries) {
        let is_going = entry.is_leaving() || entry.is_short(&run.params);
        let is_gone = is_going && leavers == Leavers::Gone;
        if !entry.is(Status::Active) || entry.active_round > run.round || is_gone {
            continue;
        }
        sets.members |= bit;
        if entry.roles & ROLE_TRAINER != 0 {
            sets.trainers |= bit;
        }
        if entry.roles & ROLE_WITNESS != 0 && entry.flags & ENTRY_SILENT == 0 {
            witnesses |= bit;
            if has_earned_seat(entry.rounds_served, entry.joined_round, after) {
                sets.eligible |= bit;
            }
        }
        if entry.included_since_strike < NEW_UNTIL_INCLUDED {
            sets.is_new |= bit;
        }
    }
    let served = |index| {
        roster
            .entries
            .get(index)
            .map_or(0, |entry: &Entry| entry.rounds_served)
    };
    sets.eligible = fill_bench(sets.eligible, witnesses, served);
    sets
}

/// Starts the record of round `run.round`; everything of the ring's former round goes.
fn write(run: &Run, round: &mut Round, sets: &Sets, slot: u64) {
    round.flags = 0;
    round.seed_status = SeedStatus::None as u8;
    round.round = run.round;
    round.epoch = run.epoch;
    round.cursor = run.cursor;
    round.open_slot = slot;
    round.commit_end_slot = NONE;
    round.close_slot = NONE;
    round.seed_slot = NONE;
    round.reward_paid = 0;
    round.reward_window = 0;
    round.base_round = run.base_round;
    round.slot_hash = [0; 32];
    round.seed = [0; 32];
    round.canonical_root = [0; 32];
    round.members = sets.members;
    round.trainers = sets.trainers;
    round.eligible = sets.eligible;
    round.is_new = sets.is_new;
    round.committed = 0;
    round.attested = 0;
    round.included = 0;
    round.struck = 0;
    round.freeze_clock = NONE;
    round.close_clock = NONE;
    round.requested = 0;
    round.sampled = 0;
    round.audited = 0;
    round.unpaid = 0;
    round.reward_price = run.params.reward_per_payload;
    round.price_base = 0;
    round.price_new = 0;
    round.withheld = 0;
    round.probation = 0;
    bytemuck::bytes_of_mut(&mut round.reserved).fill(0);
    bytemuck::cast_slice_mut::<Ballot, u8>(&mut round.ballots).fill(0);
}

/// Copies each trainer's last included round of this residual period: its header must name it.
fn note_previous(run: &Run, roster: &Roster, round: &mut Round) -> Result<()> {
    let period = u64::from(run.params.residual_rounds);
    let first = run.round.saturating_sub(rem(run.round, period)?);
    for (bit, (ballot, entry)) in with_bits(round.ballots.iter_mut().zip(&roster.entries)) {
        let is_kept = round.trainers & bit != 0
            && entry.last_included != NONE
            && entry.last_included >= first;
        ballot.previous_included = if is_kept { entry.last_included } else { NONE };
    }
    Ok(())
}
