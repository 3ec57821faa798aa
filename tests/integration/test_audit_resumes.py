"""An audit that was killed goes on where it was, and says the same in the end."""

import shutil
from pathlib import Path

import pytest
from support.forgeries import blobs, flip
from support.recordings import audit_of, play

from troth_audit.replay.report import Verdict
from troth_cli.workflows import audit_point
from troth_cli.workflows.audit import Plan

ROUNDS = 6


class KilledError(Exception):
    """The process ends here."""


@pytest.fixture(scope="module")
def recorded(data, tmp_path_factory) -> Path:
    """The archive of an honest run of two."""
    return play(data, tmp_path_factory.mktemp("recorded"), ROUNDS, ("ada", "bob"))


@pytest.fixture
def archive(recorded, tmp_path, monkeypatch) -> Path:
    """A copy to forge; points are kept at every round."""
    monkeypatch.setattr(audit_point, "REST_SECONDS", 0.0)
    monkeypatch.setattr(audit_point, "SHARE", 0)
    return Path(shutil.copytree(recorded, tmp_path / "archive"))


def kill_at(last: int):
    def on_round(round_: int) -> None:
        if round_ == last:
            raise KilledError

    return on_round


@pytest.mark.parametrize("last", [0, 1, 3, ROUNDS - 1])
def test_a_killed_audit_goes_on_and_counts_everything_once(archive, tmp_path, last):
    plan = Plan(num_threads=1, state=tmp_path / "state")
    with pytest.raises(KilledError):
        audit_of(archive, plan=plan, on_round=kill_at(last))
    rounds: list[int] = []
    resumed = audit_of(archive, plan=plan, on_round=rounds.append)
    whole = audit_of(archive)
    assert resumed.verdict is Verdict.GOOD
    assert resumed.counts == whole.counts
    assert resumed.rounds == whole.rounds


def test_what_was_found_before_the_kill_is_in_the_end_result(archive, tmp_path):
    payloads = blobs(archive, "payload")
    whole = audit_of(archive)
    flip(blobs(archive, "header")[0], -1)
    found = audit_of(archive).findings
    plan = Plan(num_threads=1, state=tmp_path / "state")
    with pytest.raises(KilledError):
        audit_of(archive, plan=plan, on_round=kill_at(ROUNDS - 1))
    for path in payloads:
        path.unlink()  # the resumed audit reads those of the last round alone
    resumed = audit_of(archive, plan=plan)
    assert whole.findings == []
    assert [one for one in resumed.findings if one in found] == found
    assert {one.round for one in resumed.findings if one not in found} == {ROUNDS - 1}


@pytest.mark.parametrize("name", ["audit.json", ".weights"])
def test_a_damaged_point_is_not_taken(archive, tmp_path, name):
    plan = Plan(num_threads=1, state=tmp_path / "state")
    with pytest.raises(KilledError):
        audit_of(archive, plan=plan, on_round=kill_at(3))
    for path in (tmp_path / "state").glob(f"*{name}"):
        flip(path, 5)
    assert audit_of(archive, plan=plan).counts == audit_of(archive).counts


def test_the_point_holds_two_states_at_most(archive, tmp_path):
    plan = Plan(num_threads=1, state=tmp_path / "state")
    audit_of(archive, plan=plan)
    assert len(list((tmp_path / "state").glob("*.weights"))) <= 2
