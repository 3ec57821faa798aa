//! Prints `layout.json`: everything that a reader of the accounts needs and the IDL does not say.
//!
//! Owns nothing: every number comes from the program's own types and constants. Run it with
//! `cargo run --example export_layout`; Python builds its numpy dtypes from the output.

use std::mem::{offset_of, size_of};

use anchor_lang::error::ERROR_CODE_OFFSET;
use anchor_lang::Discriminator;
use coordinator::constants::*;
use coordinator::events::*;
use coordinator::seeds::*;
use coordinator::state::*;

/// One field: name, offset, numpy dtype.
type Field = (&'static str, usize, String);

/// Numpy dtype string of a field type.
trait Dtype {
    fn dtype() -> String;
}

macro_rules! scalar {
    ($($kind:ty => $name:literal),*) => { $(impl Dtype for $kind {
        fn dtype() -> String { $name.to_string() }
    })* };
}

scalar!(u8 => "u1", u16 => "<u2", u32 => "<u4", u64 => "<u8", i32 => "<i4", anchor_lang::prelude::Pubkey => "V32",
    Params => "Params", Entry => "Entry", Slot => "Slot",
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

fn params_fields() -> Vec<Field> {
    fields!(Params: stake_lamports, reward_per_payload, absence_fee, witness_fee, recompute_cost,
        bond_lamports, sequences_per_payload, max_rounds, join_until_round, warmup_slots,
        commit_slots, attest_slots, close_grace_slots, halt_slots, seed_delay_slots,
        vesting_slots, unbond_slots, max_pause_slots, param_delay_slots, case_slots,
        openings_slots, verdict_commit_slots, verdict_reveal_slots, committee_commit_slots,
        committee_reveal_slots, appeal_slots, breaker_slots, rounds_per_epoch, residual_rounds,
        checkpoint_every, seat_after_rounds, p_base_ppm, p_new_ppm, capacity, ring, min_members,
        keep_rounds, audit_cap, max_witness_only, admission, reserved)
}

fn run_fields() -> Vec<Field> {
    fields!(Run: version, bump, vault_bump, roster_bump, phase, resume_phase, flags, pad, run_id,
        authority, council, funder, roster, vault, config_hash, manifest_hash, genesis_root, root,
        chain_hash, created_slot, epoch, round, cursor, root_round, root_cursor,
        restart_round, restart_root_round, phase_start_slot,
        phase_end_slot, quorum_slot, next_checkpoint_round, base_round, void_streak, seeds_pending,
        paused_at_slot, pause_window_start_slot, pause_used_slots, pause_total_slots,
        params_requested_slot, finished_slot, event_sequence, num_participants, num_rounds,
        num_checkpoints, total_stake, total_unbonding, total_unvested, total_claimable,
        total_bonds, total_escrow, treasury, reward_pool, vault_rent, params, pending_params,
        num_audits, audit_epoch, sampled, accused, num_convicted, lost_seeds, reserved)
}

fn roster_fields() -> Vec<Field> {
    fields!(Roster: version, bump, pad, run, payer, entries)
}

fn entry_fields() -> Vec<Field> {
    fields!(Entry: owner, session, next_session, ready_root, stake, claimable, bucket_window,
        bucket_amount, joined_round, active_round, last_included, ready_round, return_round,
        inactive_round, jailed_until_round, left_round, rounds_served, included_since_strike,
        strike_rounds, misses_in_row, deadline_misses_in_row, status, roles, flags, strikes,
        unproven_rounds, openings_fault_round, audits, targets, frozen, work_faults,
        seat_faults, unbonding)
}

fn round_fields() -> Vec<Field> {
    fields!(Round: version, bump, flags, seed_status, position, pad, run, payer, round, epoch,
        cursor, open_slot, commit_end_slot, close_slot, seed_slot, reward_paid, reward_window,
        base_round, slot_hash, seed, canonical_root, members, trainers, eligible, is_new,
        committed, attested, included, struck, freeze_clock, close_clock, requested, sampled,
        audited, unpaid, reserved, slots)
}

fn slot_fields() -> Vec<Field> {
    fields!(Slot: header_hash, root_vote, attest_bitmap, previous_included, missing_reports,
        possession)
}

fn audit_fields() -> Vec<Field> {
    fields!(Audit: version, bump, kind, stage, outcome, case_outcome, flags, num_seats,
        num_available, num_jurors, target, subject, challenger_index, run, payer, owner,
        challenger, header_hash, root_vote, canonical_root, seed, openings_root, case_seed, round,
        previous_included, eligible, vouchers, attest_bitmap, reward_paid, reward_window,
        stage_end, case_end, case_seed_slot, appeal_end, prepaid, bond, escrow_stake,
        escrow_unbonding, escrow_unvested, shortfall, possession, seats, jurors)
}

fn seat_fields() -> Vec<Field> {
    fields!(Seat: commit, sketch, index, verdict, flags, pad)
}

fn juror_fields() -> Vec<Field> {
    fields!(Juror: commit, index, verdict, flags, pad)
}

/// `{"a": 1, "b": 2}` over several lines, values already JSON.
fn object(depth: usize, pairs: &[(String, String)]) -> String {
    let pad = "  ".repeat(depth);
    let lines: Vec<String> = pairs
        .iter()
        .map(|(key, value)| format!("{pad}  \"{key}\": {value}"))
        .collect();
    format!("{{\n{}\n{pad}}}", lines.join(",\n"))
}

fn numbers(depth: usize, pairs: &[(&str, u64)]) -> String {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(key, value)| ((*key).to_string(), value.to_string()))
        .collect();
    object(depth, &pairs)
}

fn record(size: usize, fields: &[Field]) -> String {
    let list: Vec<String> = fields
        .iter()
        .map(|(name, offset, dtype)| format!("        [\"{name}\", {offset}, \"{dtype}\"]"))
        .collect();
    let fields = format!("[\n{}\n      ]", list.join(",\n"));
    object(
        2,
        &[("size".into(), size.to_string()), ("fields".into(), fields)],
    )
}

fn seeds() -> String {
    let all: [(&str, &[u8]); 7] = [
        ("run", SEED_RUN),
        ("roster", SEED_ROSTER),
        ("participant", SEED_PARTICIPANT),
        ("round", SEED_ROUND),
        ("vault", SEED_VAULT),
        ("checkpoint", SEED_CHECKPOINT),
        ("audit", SEED_AUDIT),
    ];
    let text = |prefix| format!("\"{}\"", String::from_utf8_lossy(prefix));
    let pairs: Vec<_> = all
        .iter()
        .map(|(name, prefix)| ((*name).to_string(), text(prefix)))
        .collect();
    object(1, &pairs)
}

fn accounts() -> String {
    let all = [
        ("Run", Run::DISCRIMINATOR, Run::SIZE, true),
        ("Roster", Roster::DISCRIMINATOR, Roster::SIZE, true),
        ("Round", Round::DISCRIMINATOR, Round::SIZE, true),
        ("Audit", Audit::DISCRIMINATOR, Audit::SIZE, true),
        (
            "Participant",
            Participant::DISCRIMINATOR,
            Participant::SIZE,
            false,
        ),
        (
            "Checkpoint",
            Checkpoint::DISCRIMINATOR,
            Checkpoint::SIZE,
            false,
        ),
    ];
    let pairs: Vec<_> = all
        .iter()
        .map(|(name, discriminator, size, zero_copy)| {
            let bytes = format!("\"discriminator\": {discriminator:?}, \"size\": {size}");
            let value = format!("{{{bytes}, \"zero_copy\": {zero_copy}}}");
            ((*name).to_string(), value)
        })
        .collect();
    object(1, &pairs)
}

fn structs() -> String {
    object(
        1,
        &[
            (
                "Params".into(),
                record(size_of::<Params>(), &params_fields()),
            ),
            ("Run".into(), record(size_of::<Run>(), &run_fields())),
            (
                "Roster".into(),
                record(size_of::<Roster>(), &roster_fields()),
            ),
            ("Entry".into(), record(size_of::<Entry>(), &entry_fields())),
            ("Round".into(), record(size_of::<Round>(), &round_fields())),
            ("Slot".into(), record(size_of::<Slot>(), &slot_fields())),
            ("Audit".into(), record(size_of::<Audit>(), &audit_fields())),
            ("Seat".into(), record(size_of::<Seat>(), &seat_fields())),
            ("Juror".into(), record(size_of::<Juror>(), &juror_fields())),
        ],
    )
}

fn enums() -> String {
    let phases = Phase::ALL.map(|phase| (format!("{phase:?}"), phase as u64));
    let statuses = Status::ALL.map(|status| (format!("{status:?}"), status as u64));
    let seeds = SeedStatus::ALL.map(|status| (format!("{status:?}"), status as u64));
    let kinds = AuditKind::ALL.map(|kind| (format!("{kind:?}"), kind as u64));
    let stages = Stage::ALL.map(|stage| (format!("{stage:?}"), stage as u64));
    let mut all = vec![
        ("phase".into(), named(&phases)),
        ("status".into(), named(&statuses)),
        ("seed_status".into(), named(&seeds)),
        ("audit_kind".into(), named(&kinds)),
        ("audit_stage".into(), named(&stages)),
        ("event_kind".into(), event_kinds()),
    ];
    all.extend(flags().map(|(name, bits)| {
        let pairs: Vec<_> = bits
            .iter()
            .map(|&(bit, value)| (bit, u64::from(value)))
            .collect();
        (name.into(), numbers(2, &pairs))
    }));
    object(1, &all)
}

fn named(list: &[(String, u64)]) -> String {
    let pairs: Vec<_> = list
        .iter()
        .map(|(name, number)| (name.as_str(), *number))
        .collect();
    numbers(2, &pairs)
}

type Flags = (&'static str, &'static [(&'static str, u8)]);

fn flags() -> [Flags; 7] {
    [
        (
            "role",
            &[("trainer", ROLE_TRAINER), ("witness", ROLE_WITNESS)],
        ),
        (
            "admission",
            &[("open", ADMISSION_OPEN), ("allowlist", ADMISSION_ALLOWLIST)],
        ),
        (
            "run_flag",
            &[
                ("pause_requested", RUN_PAUSE_REQUESTED),
                ("params_pending", RUN_PARAMS_PENDING),
            ],
        ),
        ("entry_flag", &[("leaving", ENTRY_LEAVING)]),
        (
            "round_flag",
            &[
                ("root_only", ROUND_ROOT_ONLY),
                ("closed", ROUND_CLOSED),
                ("void", ROUND_VOID),
                ("forced_void", ROUND_FORCED_VOID),
                ("commit_ran_to_deadline", ROUND_COMMIT_RAN_TO_DEADLINE),
                ("attest_ran_to_deadline", ROUND_ATTEST_RAN_TO_DEADLINE),
                ("doubled", ROUND_DOUBLED),
            ],
        ),
        (
            "audit_flag",
            &[
                ("requested", AUDIT_REQUESTED),
                ("extended", AUDIT_EXTENDED),
                ("retargeted", AUDIT_RETARGETED),
                ("appealed", AUDIT_APPEALED),
                ("reversed", AUDIT_REVERSED),
                ("breaker", AUDIT_BREAKER),
                ("bonded", AUDIT_BONDED),
            ],
        ),
        (
            "seat_flag",
            &[
                ("committed", SEAT_COMMITTED),
                ("revealed", SEAT_REVEALED),
                ("faulty", SEAT_FAULTY),
                ("paid", SEAT_PAID),
            ],
        ),
    ]
}

fn constants() -> String {
    numbers(
        1,
        &[
            ("version", u64::from(VERSION)),
            ("none", NONE),
            ("no_index", u64::from(NO_INDEX)),
            ("max_participants", MAX_PARTICIPANTS as u64),
            ("max_text_bytes", MAX_TEXT_BYTES as u64),
            ("max_tickets", MAX_TICKETS as u64),
            ("max_growth_bytes", MAX_GROWTH_BYTES as u64),
            ("slot_hashes_entries", SLOT_HASHES_ENTRIES),
            ("num_seats", NUM_SEATS as u64),
            ("num_jurors", NUM_JURORS as u64),
            ("sketch_len", SKETCH_LEN as u64),
        ],
    )
}

macro_rules! kinds {
    ($($kind:ident),* $(,)?) => { [$((stringify!($kind), u64::from($kind::KIND))),*] };
}

fn event_kinds() -> String {
    numbers(
        2,
        &kinds!(
            RunCreated,
            RosterInitialized,
            RoundInitialized,
            ParticipantAdmitted,
            RunFunded,
            ParticipantJoined,
            StakeToppedUp,
            SessionKeySet,
            ManifestAnnounced,
            PauseRequested,
            PauseCancelled,
            RunPaused,
            RunResumed,
            ParamsRequested,
            ParamsApplied,
            LeaveRequested,
            ParticipantLeft,
            StakeUnbonding,
            StakeWithdrawn,
            RewardClaimed,
            RewardsMoved,
            ParticipantClosed,
            AccountClosed,
            LeftoversPaid,
            RunClosed,
            PhaseStarted,
            WarmupEnded,
            RoundOpened,
            RosterTurned,
            RoundSettled,
            RewardsScaled,
            CheckpointStored,
            ReadyPosted,
            Activated,
            SeedFrozen,
            SeedRetargeted,
            SeedLost,
            MissingReported,
            PayloadStruck,
            AuditRequested,
            AuditOpened,
            OpeningsPosted,
            VerdictCommitted,
            VerdictRevealed,
            AuditExtended,
            AuditSettled,
            FeesScaled,
            Penalised,
            PrepaidRefunded,
            CaseOpened,
            CaseSeedRetargeted,
            CaseSeedLost,
            CommitteeDrawn,
            VoteCommitted,
            VoteRevealed,
            CaseSettled,
            CaseAppealed,
            CaseReversed,
            AuditClosed
        ),
    )
}

/// The errors, read from the enum's own source: `#[error_code]` numbers them from 6000.
fn errors() -> String {
    let variants = include_str!("../src/errors.rs")
        .lines()
        .map(str::trim)
        .filter_map(|line| line.strip_suffix(','))
        .filter(|name| !name.is_empty() && name.chars().all(char::is_alphanumeric));
    let pairs: Vec<_> = (ERROR_CODE_OFFSET..)
        .zip(variants)
        .map(|(code, name)| (code.to_string(), format!("\"{name}\"")))
        .collect();
    object(1, &pairs)
}

fn main() {
    let sections = [
        ("program_id".to_string(), format!("\"{}\"", coordinator::ID)),
        ("layout_version".to_string(), VERSION.to_string()),
        ("seeds".to_string(), seeds()),
        ("accounts".to_string(), accounts()),
        ("structs".to_string(), structs()),
        ("enums".to_string(), enums()),
        ("constants".to_string(), constants()),
        ("errors".to_string(), errors()),
    ];
    println!("{}", object(0, &sections));
}
