"""The display's line of an audit: findings, accusation, decision, money, in that order."""

import pytest

from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_client.telemetry.board import Board
from troth_client.telemetry.display import audit_text

SOL = 10**9


def board(*events):
    made = Board()
    made.take({"event": "joined", "participant": "free-rider", "index": 5})
    for event in events:
        made.take({"participant": "trainer-0", "round": 3, "target": 5, **event})
    return made


def judged(participant, verdict):
    return {"event": "judged", "participant": participant, "verdict": verdict}


def changed(stage, **fields):
    return {"event": "audit_changed", "stage": stage, **fields}


DECIDED = changed("DECIDED", outcome=3, case_outcome=CaseOutcome.CONVICTED, taken=SOL // 10)


def only(made):
    (audit,) = made.notable_audits()
    return audit


def test_cleared_work_does_not_matter():
    made = board(judged("a", "OK"), changed("SETTLED", outcome=AuditOutcome.CLEARED))
    assert made.notable_audits() == []


def test_the_story_is_told_step_by_step():
    made = board(judged("a", "MISMATCH"), judged("b", "OK"))
    assert audit_text(made, only(made)) == "round 3, free-rider → mismatch found by 1 of 2"
    made.take({"participant": "a", "round": 3, "target": 5, **changed("CASE_COMMIT", outcome=3)})
    assert audit_text(made, only(made)).endswith("→ accused → jury drawn")
    for event in (DECIDED, {"event": "judged_case", "verdict": "MISMATCH"}):
        made.take({"participant": "a", "round": 3, "target": 5, **event})
    assert audit_text(made, only(made)).endswith(
        "accused → convicted, 1 of 1 votes for mismatch → 0.1 SOL taken → jurors paid,"
        " rest burns when the appeal window ends"
    )
    made.take({"participant": "a", "round": 3, "target": 5, "event": "audit_closed"})
    assert audit_text(made, only(made)).endswith("→ 0.1 SOL taken → jurors paid, rest burned")


def test_who_pays_out_need_not_take_part():
    made = board(DECIDED)
    made.take({"round": 3, "target": 5, "event": "audit_closed"})
    assert only(made).is_closed
    assert list(made.participants) == ["free-rider", "trainer-0"]


def test_a_further_conviction_takes_no_more_than_its_jurors_cost():
    made = board(DECIDED | {"juror_fees": SOL // 10})
    assert audit_text(made, only(made)).endswith("→ 0.1 SOL taken → all of it paid the jurors")
    made.take({"round": 3, "target": 5, "event": "audit_closed"})
    assert audit_text(made, only(made)).endswith("→ 0.1 SOL taken → all of it paid the jurors")


def test_a_second_conviction_may_find_nothing():
    made = board(DECIDED | {"taken": 0})
    assert audit_text(made, only(made)).endswith("→ nothing left to take")


@pytest.mark.parametrize(
    ("outcome", "words"), [(AuditOutcome.NO_OPENINGS, "fined"), (AuditOutcome.UNPROVEN, "reward")]
)
def test_work_that_cannot_be_judged_is_told_too(outcome, words):
    made = board(changed("SETTLED", outcome=outcome))
    assert words in audit_text(made, only(made))


def test_openings_withheld_from_the_jury_are_told_as_no_conviction():
    said = {"event": "judged_case", "verdict": "UNAVAILABLE"}
    made = board(said, changed("DECIDED", outcome=1, case_outcome=CaseOutcome.NO_OPENINGS))
    text = audit_text(made, only(made))
    assert text.endswith("no openings, 1 of 1 votes for unavailable")
    assert not only(made).is_conviction


def test_a_node_that_lags_behind_takes_nothing_back():
    made = board(DECIDED, changed("ACCUSED", outcome=3))
    assert only(made).is_conviction


def test_a_log_tells_each_step_once():
    made = board(judged("a", "MISMATCH"))
    first = only(made).step
    made.take({"round": 3, "target": 5, **judged("b", "MISMATCH")})
    assert only(made).step == first, "another voice is no new step"
    made.take({"participant": "a", "round": 3, "target": 5, **changed("ACCUSED", outcome=3)})
    assert only(made).step != first
