"""All checkers of events together: a false open, close or checkpoint is one finding, never two."""

from collections.abc import Callable

import pytest
from support.program.recounted import changed, checked, telling
from support.program.trials import judged, moved, paid

from troth_audit.replay.findings import Rule
from troth_coordinator.chain.event_base import Event

STORIES: dict[str, Callable[[], tuple[Event, ...]]] = {
    "judged": judged,
    "moved": moved,
    "paid": paid,
}
FALSE = [
    ("paid", "RoundOpened", "epoch", Rule.ROUND_SETS),
    ("paid", "RoundOpened", "members", Rule.ROUND_SETS),
    ("paid", "RoundOpened", "trainers", Rule.ROUND_SETS),
    ("paid", "RoundOpened", "cursor", Rule.ROUND_SETS),
    ("paid", "RoundOpened", "ends_slot", Rule.PHASE),
    ("paid", "RoundClosed", "members", Rule.CLOSE),
    ("paid", "RoundClosed", "trainers", Rule.CLOSE),
    ("paid", "RoundClosed", "committed", Rule.CLOSE),
    ("paid", "RoundClosed", "attested", Rule.CLOSE),
    ("paid", "RoundClosed", "canonical_root", Rule.CLOSE),
    ("moved", "CheckpointStored", "root", Rule.CHECKPOINT),
    ("moved", "CheckpointStored", "created", Rule.CHECKPOINT),
    ("moved", "CheckpointStored", "epoch", Rule.CHECKPOINT),
]


@pytest.mark.parametrize("story", STORIES)
def test_an_honest_run_gives_no_finding(story: str) -> None:
    assert checked(STORIES[story]()) == []


@pytest.mark.parametrize(("story", "name", "field", "rule"), FALSE)
def test_one_false_decision_is_one_finding(story: str, name: str, field: str, rule: Rule) -> None:
    events = STORIES[story]()
    found = checked(changed(events, telling(events, name, field), field))
    assert [one.rule for one in found] == [rule]
