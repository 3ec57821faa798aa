"""The demo at full length, as it is and with a death half-way: what a user would try, nightly."""

import json
import subprocess
import sys

import pytest
from support.demos import (
    events_of,
    marked_environment,
    marked_processes,
    roots_by_round,
)
from support.waiting import wait_for

FORTY_ROUNDS = pytest.mark.nightly(reason="two demos of forty rounds, as a user starts them")
pytestmark = [pytest.mark.processes, FORTY_ROUNDS]
ROUNDS = 40
KILL_ROUND = 20


def test_the_demo_as_it_is_convicts_the_free_rider_and_trains_on(tmp_path):
    """Forty rounds: one root, a lower loss, a stake that is gone, and honest ones that are not."""
    folder, mark = tmp_path / "demo", str(tmp_path)
    command = [
        sys.executable,
        "-m",
        "troth_cli",
        "demo",
        "--json",
        "--out",
        str(folder),
    ]
    done = subprocess.run(
        command,
        env=marked_environment(mark),
        capture_output=True,
        text=True,
        check=False,
        timeout=1_200,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    outcome = result["outcome"]
    assert result["num_rounds"] == ROUNDS
    assert outcome["cheat"] == "free-rider"
    assert outcome["is_caught"]
    assert outcome["is_paid_out"]
    assert result["moved_stakes"] == []
    taken = sum(case["taken_lamports"] for case in outcome["cases"])
    parts = [sum(case["split"].values()) for case in outcome["cases"]]
    assert outcome["slashed_lamports"] == taken == sum(parts) > 0
    assert all(one["fees"] > 0 for one in outcome["honest"].values())
    wait_for(lambda: not marked_processes(mark))


def test_forty_rounds_with_a_kill_half_way_end_in_one_root_and_a_lower_loss(tmp_path):
    """kill -9 when round 20 has closed: three go on to round 40, agree, and have learnt."""
    folder, mark = tmp_path / "demo", str(tmp_path)
    command = [sys.executable, "-m", "troth_cli", "demo", "--json", "--seed", "1"]
    command += ["--kill-round", str(KILL_ROUND), "--out", str(folder)]
    command += ["--cheat", "none", "--witnesses", "0"]
    done = subprocess.run(
        command,
        env=marked_environment(mark),
        capture_output=True,
        text=True,
        check=False,
        timeout=1_200,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["is_success"]
    assert result["num_rounds"] == ROUNDS
    assert result["killed"] == ["trainer-3"]
    assert set(result["roots"]) == {"trainer-0", "trainer-1", "trainer-2"}
    assert set(result["roots"].values()) == {result["chain_root"]}

    histories = [roots_by_round(folder, name) for name in result["roots"]]
    assert sorted(histories[0]) == list(range(ROUNDS))
    assert histories[0] == histories[1] == histories[2]
    dead = roots_by_round(folder, "trainer-3")
    assert KILL_ROUND - 1 <= max(dead) <= KILL_ROUND + 1, "killed half-way"
    assert dead.items() <= histories[0].items()
    included = [
        e["included"] for e in events_of(folder, "trainer-0") if e["event"] == "round_closed"
    ]
    assert [len(those) for those in included[:KILL_ROUND]] == [4] * KILL_ROUND
    assert [len(those) for those in included[-5:]] == [3] * 5
    wait_for(lambda: not marked_processes(mark))
