//! The fields of every account and of what is inside it, in order. The compiler checks the lists.

use std::mem::offset_of;

use coordinator::state::*;

/// One field: name, offset, numpy dtype.
pub type Field = (&'static str, usize, String);

/// Numpy dtype string of a field type.
trait Dtype {
    fn dtype() -> String;
}

macro_rules! scalar {
    ($($kind:ty => $name:literal),*) => { $(impl Dtype for $kind {
        fn dtype() -> String { $name.to_string() }
    })* };
}

scalar!(u8 => "u1", u16 => "<u2", u32 => "<u4", u64 => "<u8", i32 => "<i4",
    anchor_lang::prelude::Pubkey => "V32", Params => "Params", Entry => "Entry", Ballot => "Ballot",
    Seat => "Seat", Juror => "Juror");

impl<T: Dtype, const N: usize> Dtype for [T; N] {
    fn dtype() -> String {
        match T::dtype().as_str() {
            "u1" => format!("V{N}"),
            inner => format!("({N},){inner}"),
        }
    }
}

fn dtype_of<S, T: Dtype>(_: fn(&S) -> &T) -> String {
    T::dtype()
}

macro_rules! fields {
    ($kind:ident: $($field:ident),* $(,)?) => {{
        // Exhaustive: a field that is not listed here does not compile.
        let _ = |value: &$kind| { let $kind { $($field: _),* } = value; };
        let list: Vec<Field> = vec![$((
            stringify!($field),
            offset_of!($kind, $field),
            dtype_of::<$kind, _>(|value| &value.$field),
        )),*];
        list
    }};
}

pub fn params() -> Vec<Field> {
    fields!(Params: min_stake_lamports, keep_stake_lamports, reward_per_payload, absence_fee,
        witness_fee, recompute_cost,
        bond_lamports, sequences_per_payload, max_rounds, join_until_round, warmup_slots,
        commit_slots, attest_slots, close_grace_slots, halt_slots, seed_delay_slots,
        vesting_slots, unbond_slots, max_pause_slots, param_delay_slots, case_slots,
        openings_slots, verdict_commit_slots, verdict_reveal_slots, jury_commit_slots,
        jury_reveal_slots, appeal_slots, breaker_slots, rounds_per_epoch, residual_rounds,
        checkpoint_every, seat_after_rounds, p_base_ppm, p_new_ppm, sketch_factor, capacity, ring,
        min_members, keep_rounds, audit_cap, max_witness_only, admission, seat_load, reserved)
}

pub fn run() -> Vec<Field> {
    fields!(Run: version, bump, vault_bump, roster_bump, phase, resume_phase, flags, pad, run_id,
        authority, council, funder, roster, vault, config_hash, manifest_hash, genesis_root, root,
        chain_hash, created_slot, epoch, round, cursor, root_round, root_cursor,
        restart_round, restart_root_round, phase_start_slot,
        phase_end_slot, quorum_slot, next_checkpoint_round, base_round, void_streak, seeds_pending,
        paused_at_slot, pause_window_start_slot, pause_used_slots, pause_total_slots,
        params_requested_slot, finished_slot, event_sequence, num_participants, num_rounds,
        num_checkpoints, total_stake, total_unbonding, total_unvested, total_claimable,
        total_bonds, total_escrow, reward_pool, vault_rent, params, pending_params,
        num_audits, audit_epoch, sampled, accused, convicted, lost_seeds, waiting_since,
        total_withheld, created, expected_admitted,
        expected_members, expected_before, expected_epoch, reserved)
}

pub fn roster() -> Vec<Field> {
    fields!(Roster: version, bump, pad, run, payer, entries)
}

pub fn entry() -> Vec<Field> {
    fields!(Entry: owner, session, next_session, ready_root, stake, claimable, bucket_window,
        bucket_amount, joined_round, active_round, last_included, ready_round, return_round,
        inactive_round, jailed_until_round, left_round, rounds_served, included_since_strike,
        strike_rounds, misses_in_row, deadline_misses_in_row, status, roles, flags, strikes,
        unproven_rounds, openings_fault_round, audits, targets, frozen, work_faults,
        seat_faults, unbonding, last_action, outage_start, outage_end, fined_outage,
        reveal_fault_round, included_total, openings_mark, withheld, withheld_from,
        probation_round, decided_round, openings_step, pending_kinds, pad)
}

pub fn round() -> Vec<Field> {
    fields!(Round: version, bump, flags, seed_status, position, pad, run, payer, round, epoch,
        cursor, open_slot, commit_end_slot, close_slot, seed_slot, reward_paid, reward_window,
        base_round, slot_hash, seed, canonical_root, members, trainers, eligible, is_new,
        committed, attested, included, struck, freeze_clock, close_clock, requested, sampled,
        audited, unpaid, reward_price, price_base, price_new, withheld, probation, reserved,
        ballots)
}

pub fn ballot() -> Vec<Field> {
    fields!(Ballot: header_hash, root_vote, attest_bitmap, previous_included, missing_reports,
        possession)
}

pub fn audit() -> Vec<Field> {
    fields!(Audit: version, bump, kind, stage, outcome, case_outcome, flags, num_seats,
        num_available, num_jurors, first_acting, target, subject, challenger_index, pad, run,
        payer, owner, challenger, header_hash, root_vote, canonical_root, seed, openings_root,
        case_seed, round, previous_included, eligible, vouchers, attest_bitmap, reward_paid,
        reward_window,
        stage_end, case_end, case_seed_slot, appeal_end, prepaid, bond, escrow_stake,
        escrow_unbonding, escrow_unvested, shortfall, reward_price, openings_price, juror_fees,
        decided_before, jailed_until, commit_ends, possession, seats, jurors)
}

pub fn seat() -> Vec<Field> {
    fields!(Seat: commit, sketch, index, verdict, flags, pad)
}

pub fn juror() -> Vec<Field> {
    fields!(Juror: commit, index, verdict, flags, pad)
}
