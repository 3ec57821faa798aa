//! Prints `layout.json`: everything that a reader of the accounts needs and the IDL does not say.
//!
//! Owns nothing: every number comes from the program's own types and constants. Run it with
//! `cargo run --example export_layout`; Python builds its numpy dtypes from the output.

use std::mem::size_of;

use anchor_lang::error::ERROR_CODE_OFFSET;
use anchor_lang::Discriminator;
use coordinator::constants::*;
use coordinator::events::*;
use coordinator::pda::*;
use coordinator::state::*;

mod fields;
mod json;

use fields::Field;
use json::{named, numbers, object};

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
                record(size_of::<Params>(), &fields::params()),
            ),
            ("Run".into(), record(size_of::<Run>(), &fields::run())),
            (
                "Roster".into(),
                record(size_of::<Roster>(), &fields::roster()),
            ),
            ("Entry".into(), record(size_of::<Entry>(), &fields::entry())),
            ("Round".into(), record(size_of::<Round>(), &fields::round())),
            (
                "Ballot".into(),
                record(size_of::<Ballot>(), &fields::ballot()),
            ),
            ("Audit".into(), record(size_of::<Audit>(), &fields::audit())),
            ("Seat".into(), record(size_of::<Seat>(), &fields::seat())),
            ("Juror".into(), record(size_of::<Juror>(), &fields::juror())),
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
    all.extend(flags().map(|(name, bits)| (name.into(), numbers(2, &bits))));
    object(1, &all)
}

type Flags = (&'static str, Vec<(&'static str, u64)>);

/// Flags of one kind, by name.
macro_rules! bits {
    ($($name:literal = $bit:ident),* $(,)?) => { vec![$(($name, u64::from($bit))),*] };
}

fn roles() -> Vec<(&'static str, u64)> {
    bits!["trainer" = ROLE_TRAINER, "witness" = ROLE_WITNESS,]
}

fn flags() -> [Flags; 7] {
    [
        ("role", roles()),
        (
            "admission",
            bits!["open" = ADMISSION_OPEN, "allowlist" = ADMISSION_ALLOWLIST,],
        ),
        (
            "run_flag",
            bits![
                "pause_requested" = RUN_PAUSE_REQUESTED,
                "params_pending" = RUN_PARAMS_PENDING,
                "last_warmup" = RUN_LAST_WARMUP,
            ],
        ),
        (
            "entry_flag",
            bits![
                "leaving" = ENTRY_LEAVING,
                "silent" = ENTRY_SILENT,
                "probation" = ENTRY_PROBATION
            ],
        ),
        (
            "round_flag",
            bits![
                "root_only" = ROUND_ROOT_ONLY,
                "closed" = ROUND_CLOSED,
                "void" = ROUND_VOID,
                "forced_void" = ROUND_FORCED_VOID,
                "commit_ran_to_deadline" = ROUND_COMMIT_RAN_TO_DEADLINE,
                "attest_ran_to_deadline" = ROUND_ATTEST_RAN_TO_DEADLINE,
                "doubled" = ROUND_DOUBLED,
            ],
        ),
        ("audit_flag", audit_flags()),
        (
            "seat_flag",
            bits![
                "committed" = SEAT_COMMITTED,
                "revealed" = SEAT_REVEALED,
                "faulty" = SEAT_FAULTY,
                "paid" = SEAT_PAID,
            ],
        ),
    ]
}

fn audit_flags() -> Vec<(&'static str, u64)> {
    bits![
        "requested" = AUDIT_REQUESTED,
        "retargeted" = AUDIT_RETARGETED,
        "appealed" = AUDIT_APPEALED,
        "reversed" = AUDIT_REVERSED,
        "breaker" = AUDIT_BREAKER,
        "bonded" = AUDIT_BONDED,
        "unavailable" = AUDIT_UNAVAILABLE,
        "withheld" = AUDIT_WITHHELD,
        "further" = AUDIT_FURTHER,
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
        &kinds! {
            RunCreated, RosterInitialized, RoundInitialized, ParticipantAdmitted, RunFunded,
            ParticipantJoined, StakeToppedUp, SessionKeySet, EndpointSet, ManifestAnnounced,
            PauseRequested, PauseCancelled, RunPaused, RunResumed, ParamsRequested, ParamsApplied,
            LeaveRequested, ParticipantLeft, StakeUnbonding, StakeWithdrawn, RewardClaimed,
            RewardsMoved, RecordMoved, ParticipantClosed, AccountClosed, LeftoversPaid, RunClosed,
            PhaseStarted, WarmupEnded, RoundOpened, MembershipChanged, RoundSettled, RewardsScaled,
            CheckpointStored, ReadyPosted, Activated, SeedFrozen, SeedRetargeted, SeedLost,
            MissingReported, PayloadStruck, AuditRequested, AuditOpened, OpeningsPosted,
            VerdictCommitted, VerdictRevealed, AuditExtended, AuditSettled, FeesScaled, Penalised,
            PrepaidRefunded, ProbationChanged, ProbationsEnded, CaseOpened, CaseSeedRetargeted,
            CaseSeedLost, JuryDrawn, JurorVoteCommitted, JurorVoteRevealed, CaseSettled,
            CaseAppealed, CaseReversed, AuditClosed,
        },
    )
}

/// The errors, read from the enum's own source: `#[error_code]` numbers them from 6000.
fn errors() -> String {
    let variants = include_str!("../../src/errors.rs")
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
