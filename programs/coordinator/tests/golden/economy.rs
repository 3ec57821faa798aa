//! Answers for rewards, misses, strikes and parameters.

use coordinator::rules::bitmap::bit;
use coordinator::rules::eligibility;
use coordinator::rules::outage::{self, Hidden, Presence};
use coordinator::rules::reward;
use coordinator::rules::standing::{self, Duty, Misses};
use coordinator::state::Params;
use serde_json::{json, Value};

use crate::json::{list, number, small, three};

/// `vesting.json`.
pub fn vesting(input: &Value) -> Value {
    let (mut windows, mut amounts) = (three(&input["windows"]), three(&input["amounts"]));
    let window = reward::window_of(number(&input["slot"]), number(&input["vesting_slots"]));
    let window = window.expect("window");
    let vested = reward::credit(&mut windows, &mut amounts, window, number(&input["credit"]));
    json!({"windows": windows, "amounts": amounts, "vested": vested.expect("no overflow")})
}

/// `vesting_release.json`.
pub fn vesting_release(input: &Value) -> Value {
    let (windows, mut amounts) = (three(&input["windows"]), three(&input["amounts"]));
    let (slot, vesting_slots) = (number(&input["slot"]), number(&input["vesting_slots"]));
    let released = reward::release(&windows, &mut amounts, slot, vesting_slots);
    json!({"amounts": amounts, "released": released.expect("no overflow")})
}

/// `vesting_take.json`.
pub fn vesting_take(input: &Value) -> Value {
    let (windows, mut amounts) = (three(&input["windows"]), three(&input["amounts"]));
    let taken = reward::take(&windows, &mut amounts, number(&input["lamports"]));
    json!({"amounts": amounts, "taken": taken})
}

/// `scaled_reward.json`.
pub fn scaled_reward(input: &Value) -> Value {
    let field = |key: &str| number(&input[key]);
    let (full, pool) = (field("reward_per_payload"), field("pool"));
    reward::scaled_reward(full, pool, field("num_included")).into()
}

/// `misses.json`.
pub fn misses(input: &Value) -> Value {
    let mut misses = Misses::default();
    for round in input["rounds"].as_array().expect("rounds") {
        let duties: Vec<Duty> = round
            .as_array()
            .expect("duties")
            .iter()
            .map(|duty| Duty {
                has_acted: duty[0].as_bool().expect("acted"),
                ran_to_deadline: duty[1].as_bool().expect("ran to deadline"),
            })
            .collect();
        misses = misses.after_round(&duties);
    }
    let (in_row, deadline_in_row) = (misses.in_row, misses.deadline_in_row);
    let (inactive, fined) = (misses.is_inactive(), misses.is_fined());
    json!({
        "in_row": in_row,
        "deadline_in_row": deadline_in_row,
        "inactive": inactive,
        "fined": fined,
    })
}

/// `return_round.json`.
pub fn return_round(input: &Value) -> Value {
    let field = |key: &str| number(&input[key]);
    let first = standing::return_round(
        field("inactive_round"),
        field("round"),
        field("rounds_per_epoch"),
    );
    first.expect("no overflow").into()
}

/// `stake_to_stay.json`.
pub fn stake_to_stay(input: &Value) -> Value {
    let faults = small(&input["work_faults"]);
    standing::stake_to_stay(number(&input["keep"]), number(&input["min"]), faults).into()
}

/// `strikes.json`.
pub fn strikes(input: &Value) -> Value {
    let mut ring = three(&input["ring"]);
    let jailed = standing::add_strike(&mut ring, number(&input["round"]));
    let recent = standing::count_within(&ring, number(&input["round"]));
    json!({"ring": ring, "jailed": jailed, "recent": recent})
}

/// `outage.json`: steps of one number are actions, those of two silences: the end of the window and
/// when it was seen.
pub fn outage(input: &Value) -> Value {
    let shortest = number(&input["shortest"]);
    let mut presence = Presence {
        last_action: number(&input["first"]),
        outage_start: u64::MAX,
        outage_end: u64::MAX,
        fined_outage: u64::MAX,
    };
    let mut fined = Vec::new();
    for step in list(&input["steps"]) {
        let moments: Vec<u64> = list(step).map(number).collect();
        match moments[..] {
            [now] => presence.act(now, shortest),
            [ended, _] => fined.push(presence.miss(ended)),
            _ => panic!("one or two moments"),
        }
    }
    json!(fined)
}

/// `hidden_verdict.json`.
pub fn hidden_verdict(input: &Value) -> Value {
    let (round, decided) = (number(&input["round"]), number(&input["decided_round"]));
    match outage::hidden_verdict(round, decided) {
        Hidden::First => "first",
        Hidden::Again => "again",
        Hidden::Second => "second",
    }
    .into()
}

/// `eligible_at_open.json`: each witness is its index, rounds served, round joined.
pub fn eligible_at_open(input: &Value) -> Value {
    let after = number(&input["seat_after"]);
    let (mut earned, mut witnesses, mut rounds) = (0, 0, [0; 64]);
    for [at, served, joined] in list(&input["witnesses"]).map(three) {
        let place = usize::try_from(at).expect("index");
        witnesses |= bit(place);
        rounds[place] = served;
        if eligibility::has_earned_seat(served, joined, after) {
            earned |= bit(place);
        }
    }
    eligibility::fill_bench(earned, witnesses, |index| rounds[index]).into()
}

/// `params.json`: `ok`, or the name of the error.
pub fn params(input: &Value) -> Value {
    refusal_of(read_params(input).validate())
}

/// `params_update.json`: `ok`, or the name of the error.
pub fn params_update(input: &Value) -> Value {
    let [created, old, new] = ["created", "old", "new"].map(|name| read_params(&input[name]));
    refusal_of(old.validate_update(&created, &new))
}

fn refusal_of(checked: anchor_lang::Result<()>) -> Value {
    match checked {
        Ok(()) => "ok".into(),
        Err(anchor_lang::error::Error::AnchorError(error)) => error.error_name.clone().into(),
        Err(other) => panic!("not a named error: {other}"),
    }
}

macro_rules! fields {
    ($input:ident: $($field:ident),* $(,)?) => {
        Params {
            $($field: number(&$input[stringify!($field)]).try_into().expect("width"),)*
            reserved: [0; 6],
        }
    };
}

#[rustfmt::skip]
fn read_params(input: &Value) -> Params {
    fields!(
        input:
        min_stake_lamports, keep_stake_lamports, reward_per_payload, absence_fee, witness_fee,
        recompute_cost, bond_lamports, sequences_per_payload, max_rounds, join_until_round,
        warmup_slots, commit_slots, attest_slots, close_grace_slots, halt_slots,
        seed_delay_slots, vesting_slots, unbond_slots, max_pause_slots,
        param_delay_slots, case_slots, openings_slots, verdict_commit_slots,
        verdict_reveal_slots, jury_commit_slots, jury_reveal_slots,
        appeal_slots, breaker_slots, rounds_per_epoch, residual_rounds,
        checkpoint_every, seat_after_rounds, p_base_ppm, p_new_ppm, sketch_factor,
        capacity, ring, min_members, keep_rounds, audit_cap, max_witness_only, admission, seat_load,
    )
}
