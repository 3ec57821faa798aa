//! Answers for hashes, phases and the outcome of a round.

use coordinator::rules::bitmap;
use coordinator::rules::chain_hash::{self, Attestation, Closed, Commit};
use coordinator::rules::expected_members::ExpectedMembers;
use coordinator::rules::hashing::{self, Digest};
use coordinator::rules::phase::Window;
use coordinator::rules::root::{self, Outcome, Tally, Turnout};
use coordinator::rules::seeds::{self, first_at_or_after, Lookup};
use serde_json::{json, Value};

use crate::json::{array, bytes, hex, index, number};

/// `hashing.json`.
pub fn hashing(input: &Value) -> Value {
    let tag = input["tag"].as_str().expect("tag");
    let length = u32::try_from(tag.len()).expect("short").to_le_bytes();
    let fields: Vec<Vec<u8>> = input["fields"]
        .as_array()
        .expect("list")
        .iter()
        .map(bytes)
        .collect();
    let mut slices: Vec<&[u8]> = vec![&length, tag.as_bytes()];
    slices.extend(fields.iter().map(Vec::as_slice));
    hex(hashing::digest(&slices))
}

/// `root_vote.json`.
pub fn root_vote(input: &Value) -> Value {
    let [run, owner, root] = ["run", "owner", "state_root"].map(|key| array(&input[key]));
    hex(root::root_vote(
        &run,
        number(&input["round"]),
        &owner,
        &root,
    ))
}

/// `sigma.json`.
pub fn sigma(input: &Value) -> Value {
    let (slot_hash, run) = (array(&input["slot_hash"]), array(&input["run"]));
    hex(seeds::sigma(&slot_hash, &run, number(&input["round"])))
}

/// `wanted_slot.json`.
pub fn wanted_slot(input: &Value) -> Value {
    let [slot, delay, part] = ["slot", "delay", "part"].map(|key| number(&input[key]));
    json!(seeds::wanted_slot(slot, delay, seeds::grid(delay, part)))
}

/// `expected_members.json`.
pub fn expected_members(input: &Value) -> Value {
    let mut found = ExpectedMembers::default();
    let opens = input["opens"].as_array().expect("opens");
    for (number_of_open, open) in opens.iter().enumerate() {
        let [epoch, members, gone] = ["epoch", "members", "gone"].map(|key| number(&open[key]));
        found = found
            .opened(members, epoch, number_of_open == 0)
            .without(gone);
    }
    json!({"of_epoch": found.of_epoch, "before": found.before, "number": found.number()})
}

/// `phase_due.json`.
pub fn phase_due(input: &Value) -> Value {
    let field = |key: &str| number(&input[key]);
    let window = Window {
        start: field("start"),
        end: field("end"),
        quorum_slot: field("quorum_slot"),
    };
    window
        .is_due(field("acted"), field("all"), field("slot"))
        .into()
}

/// `round_decision.json`.
pub fn round_decision(input: &Value) -> Value {
    let field = |key: &str| number(&input[key]);
    let mut tally = Tally::default();
    let bitmaps = input["attest_bitmaps"].as_array().expect("bitmaps");
    for (bit, bitmap) in bitmap::with_bits(bitmaps) {
        if field("attested") & bit != 0 {
            tally.add(number(bitmap));
        }
    }
    let turnout = Turnout {
        trainers: field("trainers"),
        members: field("members"),
        committed: field("committed"),
    };
    match root::decide(&turnout, field("votes"), &tally) {
        Outcome::Void => json!({"outcome": "void", "included": 0}),
        Outcome::NotCanonical => json!({"outcome": "not_canonical", "included": 0}),
        Outcome::Closed { included, .. } => json!({"outcome": "closed", "included": included}),
    }
}

/// `chain_event.json`.
pub fn chain_event(input: &Value) -> Value {
    let kind = u8::try_from(number(&input["kind"])).expect("kind");
    let previous = array(&input["previous"]);
    let body = bytes(&input["body"]);
    let after = chain_hash::after_event(&previous, number(&input["sequence"]), kind, &body);
    hex(after.expect("short body"))
}

/// `chain_close.json`.
pub fn chain_close(input: &Value) -> Value {
    let commits: Vec<(usize, Digest, Digest)> = input["commits"]
        .as_array()
        .expect("commits")
        .iter()
        .map(|c| {
            (
                index(&c["index"]),
                array(&c["header_hash"]),
                array(&c["root_vote"]),
            )
        })
        .collect();
    let attests: Vec<(usize, u64, [u8; 64])> = input["attests"]
        .as_array()
        .expect("attests")
        .iter()
        .map(|a| {
            (
                index(&a["index"]),
                number(&a["bitmap"]),
                array(&a["possession"]),
            )
        })
        .collect();
    let commits = chain_hash::commits_digest(commits.iter().map(
        |(index, header_hash, root_vote)| Commit {
            index: *index,
            header_hash,
            root_vote,
        },
    ));
    let attests =
        chain_hash::attests_digest(
            attests
                .iter()
                .map(|(index, bitmap, possession)| Attestation {
                    index: *index,
                    bitmap,
                    possession,
                }),
        );
    let closed = Closed {
        round: number(&input["round"]),
        members: number(&input["members"]),
        trainers: number(&input["trainers"]),
        included: number(&input["included"]),
        canonical_root: &array(&input["canonical_root"]),
    };
    hex(chain_hash::after_close(
        &array(&input["previous"]),
        &closed,
        &commits,
        &attests,
    ))
}

/// `root_only.json`.
pub fn root_only(input: &Value) -> Value {
    let field = |key: &str| number(&input[key]);
    let (trainers, committed) = (field("trainers"), field("committed"));
    let turnout = Turnout {
        trainers,
        members: trainers,
        committed,
    };
    match root::decide_root_only(&turnout, field("votes")) {
        Outcome::Void => "void".into(),
        Outcome::NotCanonical => "not_canonical".into(),
        Outcome::Closed { .. } => "closed".into(),
    }
}

/// `unavailable_strikes.json`.
pub fn unavailable_strikes(input: &Value) -> Value {
    let field = |key: &str| number(&input[key]);
    root::unavailable_strikes(field("committed"), field("included"), field("unavailable")).into()
}

/// `slot_hashes.json`.
pub fn slot_hashes(input: &Value) -> Value {
    let (outcome, slot, digest) =
        match first_at_or_after(&bytes(&input["data"]), number(&input["wanted"])) {
            Lookup::Found(slot, digest) => ("found", slot, digest),
            Lookup::TooEarly => ("too_early", 0, [0; 32]),
            Lookup::Lost => ("lost", 0, [0; 32]),
            Lookup::Malformed => ("malformed", 0, [0; 32]),
        };
    json!({"outcome": outcome, "slot": slot, "hash": hex(digest)})
}
