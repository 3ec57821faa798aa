"""Between commit and reveal everything may crash: what was committed to is what is revealed."""

import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from troth_attestation.cases import NO_SKETCH, Vote
from troth_attestation.sketch import sketch_hash
from troth_attestation.verdict import Statement, VerdictKind
from troth_client.state.verdict_store import Duty, VerdictStore

RUN, KEY = b"r" * 32, b"k" * 32
SKETCH = tuple(range(-32, 32))
STATEMENT = Statement(RUN, 12, 3, 5, VerdictKind.OK, b"e" * 32, sketch_hash(SKETCH))
VOTE = Vote(RUN, 12, 3, 0, 5, VerdictKind.MISMATCH, b"e" * 32, sketch_hash(SKETCH))
SEAT, JUROR = Duty(12, 3, 0), Duty(12, 3, 0, is_juror=True)


@pytest.fixture
def damaged():
    return []


@pytest.fixture
def reopen(tmp_path, damaged):
    def open_it(key=KEY):
        return VerdictStore(tmp_path / "verdicts", key, damaged.append)

    return open_it


def test_a_restarted_process_finds_what_it_owes_and_can_reveal_it(reopen):
    entry = reopen().seal_verdict(STATEMENT, SKETCH)
    store = reopen()
    assert store.duties() == [SEAT]
    found = store.find(SEAT)
    assert found == entry
    assert found.kind == VerdictKind.OK
    assert found.sketch == SKETCH
    assert found.evidence == b"e" * 32
    assert found.commit() == STATEMENT.commit(found.salt)


def test_the_first_judgement_counts_even_if_a_second_one_differs(reopen):
    """The commit may be on chain already: another reveal would be a fault."""
    first = reopen().seal_verdict(STATEMENT, SKETCH)
    other = tuple(value + 1 for value in SKETCH)
    changed = Statement(RUN, 12, 3, 5, VerdictKind.MISMATCH, b"e" * 32, sketch_hash(other))
    assert reopen().seal_verdict(changed, other) == first


def test_a_judgement_of_other_evidence_takes_the_place_of_the_first(reopen):
    """A fork drew another seed, and the commit was on the fork that lost."""
    reopen().seal_verdict(STATEMENT, SKETCH)
    other = replace(STATEMENT, evidence=b"f" * 32)
    second = reopen().seal_verdict(other, SKETCH)
    assert second.evidence == other.evidence
    assert reopen().find(SEAT) == second


def test_a_seat_and_a_juror_of_the_same_work_are_two_entries(reopen):
    store = reopen()
    seat, juror = store.seal_verdict(STATEMENT, SKETCH), store.seal_vote(VOTE, SKETCH)
    assert store.find(JUROR) == juror
    assert juror.commit() == VOTE.commit(juror.salt)
    assert juror.sketch == SKETCH
    assert seat.salt != juror.salt
    assert store.duties() == [SEAT, JUROR]
    store.drop(SEAT)
    store.drop(SEAT)
    assert store.duties() == [JUROR]
    assert store.find(SEAT) is None


def test_cases_of_other_kinds_rounds_and_targets_have_salts_of_their_own(reopen):
    store = reopen()
    votes = [
        Vote(RUN, round_, target, kind, 5, VerdictKind.OK, bytes(32))
        for round_ in (12, 13)
        for target in (3, 4)
        for kind in (0, 1, 2, 3)
    ]
    entries = [store.seal_vote(vote, NO_SKETCH) for vote in votes]
    assert len({entry.salt for entry in entries}) == len(votes)
    assert all(len(entry.salt) == 32 for entry in entries)
    assert sorted(store.duties()) == [entry.duty for entry in entries]


def test_a_salt_cannot_be_made_without_the_key(reopen, tmp_path):
    first = reopen().seal_verdict(STATEMENT, SKETCH)
    other = VerdictStore(tmp_path / "other", b"K" * 32, print).seal_verdict(STATEMENT, SKETCH)
    assert first.salt != other.salt


def test_an_entry_outlives_the_key_it_was_made_with(reopen):
    first = reopen().seal_verdict(STATEMENT, SKETCH)
    assert reopen(b"K" * 32).find(SEAT) == first


def test_a_lost_entry_is_made_again_with_the_same_commit(reopen):
    first = reopen().seal_verdict(STATEMENT, SKETCH)
    reopen().drop(SEAT)
    assert reopen().seal_verdict(STATEMENT, SKETCH).commit() == first.commit()


def test_a_damaged_entry_is_reported_and_counts_as_none(reopen, damaged, tmp_path):
    reopen().seal_verdict(STATEMENT, SKETCH)
    path = tmp_path / "verdicts" / SEAT.file_name
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    assert reopen().find(SEAT) is None
    assert [error.path for error in damaged] == [path]


def test_an_entry_under_the_name_of_another_is_not_believed(reopen, damaged, tmp_path):
    reopen().seal_verdict(STATEMENT, SKETCH)
    folder = tmp_path / "verdicts"
    elsewhere = Duty(13, 3, 0)
    (folder / SEAT.file_name).rename(folder / elsewhere.file_name)
    assert reopen().find(elsewhere) is None
    assert len(damaged) == 1


def test_a_file_that_was_half_written_is_gone_after_a_restart(reopen, tmp_path):
    (tmp_path / "verdicts").mkdir()
    half = tmp_path / "verdicts" / (SEAT.file_name + ".tmp")
    half.write_bytes(b"half")
    store = reopen()
    assert not half.exists()
    assert store.duties() == []


KILLED = """
import os, signal, sys
from pathlib import Path
from troth_attestation.sketch import sketch_hash
from troth_attestation.verdict import Statement, VerdictKind
from troth_client.state.verdict_store import VerdictStore

sketch = tuple(range(-32, 32))
made = Statement(b"r" * 32, 12, 3, 5, VerdictKind.OK, b"e" * 32, sketch_hash(sketch))
entry = VerdictStore(Path(sys.argv[1]), b"k" * 32, print).seal_verdict(made, sketch)
print(entry.commit().hex(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_kill_9_right_after_the_commit_went_out_costs_nothing(reopen, tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path / "verdicts")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (duty,) = reopen().duties()
    assert reopen().find(duty).commit().hex() == done.stdout.strip()
