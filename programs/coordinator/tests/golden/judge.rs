//! Answers for audits: who is drawn, what judges say and decide, what a fault costs.

use coordinator::rules::bitmap;
use coordinator::rules::panel::Panel;
use coordinator::rules::quorum::{self, CaseOutcome, SeatFault};
use coordinator::rules::refusal::{self, Refusals};
use coordinator::rules::sampling::{self, Payloads, Rates};
use coordinator::rules::sketch::{self, Report, Sketch};
use coordinator::rules::slashing::{self, Funds, Prices, SlashIntent, Split};
use coordinator::rules::verdict::{Statement, Verdict};
use serde_json::{json, Value};

use crate::json::{array, flag, four, hex, index, list, number, small, three};

/// `audit_sample.json`.
pub fn audit_sample(input: &Value) -> Value {
    let rates = Rates {
        base_ppm: small(&input["p_base_ppm"]),
        new_ppm: small(&input["p_new_ppm"]),
        limit: small(&input["limit"]),
        is_doubled: flag(&input["is_doubled"]),
    };
    let payloads = Payloads {
        included: number(&input["included"]),
        is_new: number(&input["is_new"]),
        on_probation: number(&input["on_probation"]),
    };
    places(sampling::sampled_targets(
        &array(&input["sigma"]),
        &payloads,
        &rates,
    ))
}

/// `audit_limit.json`.
pub fn audit_limit(input: &Value) -> Value {
    let [trainers, is_new, eligible] =
        ["trainers", "is_new", "eligible"].map(|key| number(&input[key]));
    let (cap, seat_load) = (small(&input["cap"]), small(&input["seat_load"]));
    sampling::limit(cap, seat_load, trainers, is_new, eligible).into()
}

/// `audit_seats.json`.
pub fn audit_seats(input: &Value) -> Value {
    let (target, eligible) = (small(&input["target"]), number(&input["eligible"]));
    json!(sampling::seats_of(&array(&input["sigma"]), target, eligible).indices())
}

/// `audit_jury.json`.
pub fn audit_jury(input: &Value) -> Value {
    let bitmap = |key: &str| {
        list(&input[key])
            .map(index)
            .fold(0, |all, index| all | bitmap::bit(index))
    };
    let (seed, eligible) = (array(&input["seed"]), number(&input["eligible"]));
    let (seats, accusers) = (bitmap("seats"), bitmap("accusers"));
    json!(sampling::jury(&seed, eligible, bitmap("barred"), seats, accusers).indices())
}

/// `audit_case_seed.json`.
pub fn audit_case_seed(input: &Value) -> Value {
    let (slot_hash, run) = (array(&input["slot_hash"]), array(&input["run"]));
    let (target, kind) = (small(&input["target"]), small(&input["kind"]));
    let round = number(&input["round"]);
    hex(sampling::case_seed(&slot_hash, &run, round, target, kind))
}

/// `audit_verdict.json`.
pub fn audit_verdict(input: &Value) -> Value {
    let [sketch_hash, salt] = ["sketch_hash", "salt"].map(|key| array(&input[key]));
    with_statement(input, |said| hex(said.verdict_hash(&sketch_hash, &salt)))
}

/// `audit_vote.json`.
pub fn audit_vote(input: &Value) -> Value {
    let (kind, salt) = (small(&input["case_kind"]), array(&input["salt"]));
    let sketch_hash = array(&input["sketch_hash"]);
    with_statement(input, |said| hex(said.vote_hash(kind, &sketch_hash, &salt)))
}

fn with_statement(input: &Value, answer: impl Fn(&Statement) -> Value) -> Value {
    answer(&Statement {
        run: &array(&input["run"]),
        round: number(&input["round"]),
        target: small(&input["target"]),
        witness: small(&input["witness"]),
        verdict: verdict(&input["kind"]).expect("kind"),
        evidence: &array(&input["evidence"]),
    })
}

/// `sketch_pair.json`.
pub fn sketch_pair(input: &Value) -> Value {
    let [first, second]: [Sketch; 2] = ["first", "second"].map(|key| {
        let values: Vec<i32> = list(&input[key])
            .map(|value| value.as_i64().expect("i64").try_into().expect("i32"))
            .collect();
        values.try_into().expect("64 values")
    });
    let factor = small(&input["factor"]);
    let differ = sketch::differ(&first, &second, factor);
    assert_eq!(differ, sketch::differ(&second, &first, factor));
    let hashes = [first, second].map(|one| hex(sketch::hash(&one)));
    json!({"differ": differ, "hashes": hashes})
}

/// `audit_panel.json`: null where the number of reports cannot be.
pub fn audit_panel(input: &Value) -> Value {
    let sketches: Vec<Option<Sketch>> = list(&input["reports"])
        .map(|report| report[2].as_i64())
        .map(|value| value.map(|value| [i32::try_from(value).expect("i32"); 64]))
        .collect();
    let reports: Vec<Report> = list(&input["reports"])
        .zip(&sketches)
        .map(|(report, sketch)| Report {
            has_committed: flag(&report[0]),
            verdict: verdict(&report[1]),
            sketch: sketch.as_ref(),
        })
        .collect();
    let panel = Panel::new(&reports, small(&input["factor"]));
    let Some(outcome) = panel.outcome(index(&input["num_available"])) else {
        return Value::Null;
    };
    let case = case(number(&input["case"]));
    let fault = |place| panel.fault(place, case).map_or(0, |fault| fault as u8);
    let faults: Vec<u8> = (0..reports.len()).map(fault).collect();
    let jurors = [true, false].map(|is_work| {
        let paid = case.map_or(0, |case| panel.paid_jurors(case, is_work));
        places(paid.into())
    });
    json!({
        "outcome": outcome as u8,
        "outvoted": places(panel.outvoted().into()),
        "paid": places(panel.paid_seats().into()),
        "faults": faults,
        "jurors": jurors,
    })
}

fn case(number: u64) -> Option<CaseOutcome> {
    let all = [
        CaseOutcome::Convicted,
        CaseOutcome::Acquitted,
        CaseOutcome::NotProven,
        CaseOutcome::Excluded,
        CaseOutcome::NoOpenings,
    ];
    all.into_iter().find(|one| u64::from(*one as u8) == number)
}

/// `case_outcome.json`.
pub fn case_outcome(input: &Value) -> Value {
    let votes: Vec<Option<Verdict>> = list(&input["votes"]).map(verdict).collect();
    let is_work = input["is_work"] == true;
    (quorum::case_outcome(&votes, is_work) as u8).into()
}

/// `slash.json`.
pub fn slash(input: &Value) -> Value {
    let [claimable, unvested, stake, unbonding] = four(&input["funds"]);
    let funds = Funds {
        claimable,
        unvested,
        stake,
        unbonding,
    };
    let intent = intent(input, &funds);
    let taken = intent.take(&funds);
    json!({
        "small": intent.is_small,
        "unvested": intent.takes_unvested,
        "strike": intent.is_strike,
        "barred": intent.is_barred,
        "acquitted": intent.pays_acquitted,
        "fault": intent.fault as u8,
        "principal": intent.principal.to_string(),
        "taken": [taken.claimable, taken.unvested, taken.stake, taken.unbonding],
        "shortfall": taken.shortfall,
    })
}

fn intent(input: &Value, funds: &Funds) -> SlashIntent {
    let [reward_per_payload, witness_fee, recompute_cost] = three(&input["prices"]);
    let prices = Prices {
        reward_per_payload,
        witness_fee,
        recompute_cost,
    };
    match input["kind"].as_str().expect("kind") {
        "malformed" => slashing::malformed(funds),
        "vouched_for_malformed" => slashing::vouched_for_malformed(),
        "work" => slashing::work(funds, flag(&input["is_repeated"])),
        "no_openings" => {
            let (price, doublings) = (number(&input["price"]), small(&input["doublings"]));
            slashing::no_openings(funds, price, doublings)
        }
        "seat" => {
            let fault = seat_fault(number(&input["seat_fault"]));
            slashing::seat(fault, flag(&input["is_second"]), funds, &prices)
        }
        "false_root" => slashing::false_root(funds),
        "false_possession" => slashing::false_possession(funds),
        other => panic!("unknown penalty {other}"),
    }
}

fn seat_fault(number: u64) -> SeatFault {
    let all = [
        SeatFault::NoCommit,
        SeatFault::NoReveal,
        SeatFault::WrongOk,
        SeatFault::FalseMismatch,
        SeatFault::OutvotedSketch,
    ];
    let found = all.into_iter().find(|one| u64::from(*one as u8) == number);
    found.expect("fault of a seat")
}

/// `slash_split.json`.
pub fn slash_split(input: &Value) -> Value {
    let total = number(&input["total"]);
    parts(if let Some(most) = input["acquittal"].as_u64() {
        slashing::fine(total, most)
    } else {
        slashing::split(total, flag(&input["has_bond"]))
    })
}

/// `failed_case.json`.
pub fn failed_case(input: &Value) -> Value {
    parts(slashing::failed_case(number(&input["bond"])))
}

/// `openings_price.json`.
pub fn openings_price(input: &Value) -> Value {
    let (p_ppm, limit) = (small(&input["p_ppm"]), small(&input["limit"]));
    let (reward, sum_ppm) = (number(&input["reward"]), number(&input["sum_ppm"]));
    refusal::openings_price(reward, p_ppm, sum_ppm, limit).into()
}

/// `openings_step.json`.
pub fn openings_step(input: &Value) -> Value {
    let mut known = Refusals {
        step: 0,
        mark: 0,
        decided_round: u64::MAX,
    };
    let steps: Vec<Value> = list(&input["refusals"])
        .map(three)
        .map(|[round, now, included]| {
            let is_new = known.add(round, now, included);
            assert_eq!(known.doublings(), known.step.saturating_sub(1));
            json!([is_new, known.step])
        })
        .collect();
    json!(steps)
}

fn parts(split: Split) -> Value {
    json!([split.challenger, split.acquitted, split.burned])
}

fn verdict(number: &Value) -> Option<Verdict> {
    Verdict::from_number(small(number))
}

/// The bits of a bitmap, ascending.
fn places(bitmap: u64) -> Value {
    let all: Vec<usize> = (0..64).filter(|i| bitmap::contains(bitmap, *i)).collect();
    json!(all)
}
