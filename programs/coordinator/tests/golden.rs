//! The rules reproduce the golden vectors that the Python implementation writes.
//!
//! Owns the loader and the list of files. A file that no answer reads fails the suite.
//! Next: `answers`, `economy` and `judge`, one function per vector file; `tests/golden/README.md`
//! for the format; `scripts/gen/vectors.py` for the generator.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::as_conversions
)]

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

#[path = "golden/answers.rs"]
mod answers;
#[path = "golden/economy.rs"]
mod economy;
#[path = "golden/json.rs"]
mod json;
#[path = "golden/judge.rs"]
mod judge;

/// Answers the cases of one vector file.
type Answer = fn(&Value) -> Value;

/// Every vector file that concerns Rust, with the function that answers its cases.
const CHECKS: &[(&str, Answer)] = &[
    ("audit_case_seed", judge::audit_case_seed),
    ("audit_jury", judge::audit_jury),
    ("audit_limit", judge::audit_limit),
    ("audit_panel", judge::audit_panel),
    ("audit_sample", judge::audit_sample),
    ("audit_seats", judge::audit_seats),
    ("audit_verdict", judge::audit_verdict),
    ("audit_vote", judge::audit_vote),
    ("case_outcome", judge::case_outcome),
    ("chain_close", answers::chain_close),
    ("chain_event", answers::chain_event),
    ("eligible_at_open", economy::eligible_at_open),
    ("failed_case", judge::failed_case),
    ("hashing", answers::hashing),
    ("hidden_verdict", economy::hidden_verdict),
    ("misses", economy::misses),
    ("openings_price", judge::openings_price),
    ("openings_step", judge::openings_step),
    ("outage", economy::outage),
    ("params", economy::params),
    ("params_update", economy::params_update),
    ("phase_due", answers::phase_due),
    ("return_round", economy::return_round),
    ("root_only", answers::root_only),
    ("root_vote", answers::root_vote),
    ("round_decision", answers::round_decision),
    ("scaled_reward", economy::scaled_reward),
    ("sigma", answers::sigma),
    ("sketch_pair", judge::sketch_pair),
    ("slash", judge::slash),
    ("slash_split", judge::slash_split),
    ("slot_hashes", answers::slot_hashes),
    ("stake_to_stay", economy::stake_to_stay),
    ("strikes", economy::strikes),
    ("unavailable_strikes", answers::unavailable_strikes),
    ("vesting", economy::vesting),
    ("vesting_release", economy::vesting_release),
    ("vesting_take", economy::vesting_take),
    ("wanted_slot", answers::wanted_slot),
    ("expected_members", answers::expected_members),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

#[test]
fn every_case_gives_the_recorded_answer() {
    for (name, answer) in CHECKS {
        let path = folder().join(format!("{name}.json"));
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file: Value = serde_json::from_str(&text).expect("JSON");
        let cases = file["cases"].as_array().expect("cases");
        assert!(!cases.is_empty(), "{name} has no cases");
        for (number, case) in cases.iter().enumerate() {
            assert_eq!(answer(&case["in"]), case["out"], "{name}, case {number}");
        }
    }
}

#[test]
fn every_vector_file_is_used() {
    for file in fs::read_dir(folder()).expect("tests/golden") {
        let path = file.expect("entry").path();
        let name = path.file_stem().expect("name").to_string_lossy();
        let is_ours = path.extension().is_some_and(|e| e == "json") && !name.starts_with("py_");
        let is_read = CHECKS.iter().any(|(known, _)| *known == name);
        assert!(
            !is_ours || is_read,
            "{} is read by no check",
            path.display()
        );
    }
}
