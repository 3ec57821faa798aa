"""The duties of a witness, from its own log."""

from troth_client.telemetry.duties import Duties


def of(*events):
    duties = Duties()
    for event in events:
        duties.take(event)
    return duties


def test_verdicts_votes_findings_time_and_rewards_are_summed():
    duties = of(
        {"event": "step_ended", "step": "train", "seconds": 4.0},
        {"event": "step_ended", "step": "apply", "seconds": 9.0},
        {"event": "judged", "round": 1, "target": 2, "verdict": "OK", "seconds": 0.5},
        {"event": "judged", "round": 3, "target": 5, "verdict": "MISMATCH", "seconds": 0.5},
        {"event": "judged_case", "round": 3, "target": 5, "verdict": "MISMATCH"},
        {"event": "verdict_revealed"},
        {"event": "vote_revealed"},
        {"event": "verdict_committed_refused"},
        {"event": "ended", "rewards": 7},
    ).to_json()
    assert duties["verdicts"] == {"mismatch": 1, "ok": 1}
    assert duties["num_judged"] == 2
    assert duties["num_cases"] == 1
    assert duties["num_revealed"] == 2
    assert duties["num_refused"] == 1
    assert duties["judging_seconds"] == 1.0
    assert duties["share_of_training"] == 0.25
    assert duties["rewards_lamports"] == 7
    assert [one["round"] for one in duties["findings"]] == [3, 3]
    assert [one["target"] for one in duties["findings"]] == [5, 5]


def test_who_does_not_train_has_no_share():
    found = of({"event": "judged", "verdict": "OK", "seconds": None}).to_json()
    assert found["share_of_training"] is None
    assert found["judging_seconds"] == 0
