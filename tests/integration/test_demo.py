"""`troth demo` with real processes: its summary claims what the chain and the files show.

The cheat is told in test_demo_trial.py; here nobody cheats, and nobody witnesses alone.
"""

import ast
import asyncio
import inspect
import json
import subprocess
import sys

import pytest
from safetensors import safe_open
from solders.pubkey import Pubkey
from support.demos import (
    KeptChain,
    events_of,
    fees_of_all_transactions,
    marked_environment,
    marked_processes,
    perform,
    read_chain,
    roots_by_round,
)
from support.waiting import wait_for

from troth_client import round as round_module
from troth_client.telemetry.board import Board
from troth_client.telemetry.events import EventTail
from troth_coordinator.rules.phase import Phase
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions

pytestmark = pytest.mark.processes


# Slots are wall time here: long ones, because these tests share two cores with others. They cost
# nothing, for a phase ends when all have acted; only the kill has to wait for deadlines.
SLOT = 200
KILL_SLOT = 60
HONEST = {"num_witnesses": 0, "cheat": "none"}


@pytest.fixture
def chain(request):
    with EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=request.param)) as launcher:
        yield KeptChain(launcher)


@pytest.mark.parametrize("chain", [SLOT], indirect=True)
def test_the_summary_says_what_the_chain_says(tmp_path, chain):
    folder = tmp_path / "demo"
    options = {"num_rounds": 8, "slot_milliseconds": SLOT, "margin_micro": 20_000, "seed": 1}
    summary, printed = perform(folder, chain, **options, **HONEST)
    assert chain.num_stops == 1
    assert summary.is_success, summary
    assert "round 8 of 8" in printed

    view, rounds = asyncio.run(read_chain(chain, Pubkey.from_string(summary.run)))
    assert view.phase == Phase.FINISHED
    assert view.round == summary.num_rounds == 8
    assert set(summary.peer_roots.values()) == {view.root.hex()}
    assert list(summary.peer_roots) == [f"trainer-{index}" for index in range(4)]
    included = sum(rounds[r].included.bit_count() for r in range(8))
    assert included == summary.num_included == 32
    assert summary.fees_lamports == asyncio.run(fees_of_all_transactions(chain, summary.run))
    rewards = included * view.params.reward_per_payload
    fees = sum(one.fees for one in summary.trial.honest.values())
    assert fees > 0, "somebody was audited, and somebody was paid for it"
    assert view.total_unvested + view.total_claimable == rewards + fees

    # What the live display adds up is what the chain is short of, to the lamport.
    logs = [folder, *(folder / name for name in summary.peer_roots)]
    board = Board()
    for event in (one for log in logs for one in EventTail(log / "events.jsonl").read()):
        board.take(event)
    assert board.fees == summary.fees_lamports
    for name in summary.peer_roots:
        assert_every_step_is_timed(events_of(folder, name), num_rounds=8)

    # The root on chain of each round is what every trainer held after the round before it.
    for name in summary.peer_roots:
        roots = roots_by_round(folder, name)
        assert roots[7] == view.root.hex()
        assert [roots[r - 1] for r in range(1, 8)] == [
            rounds[r].canonical_root.hex() for r in range(1, 8)
        ]
        assert not (folder / name / "output.txt").read_text()

    with safe_open(folder / "trainer-2/state/weights/model.safetensors", "numpy") as file:
        assert file.metadata()["state_root"] == view.root.hex()
        size = sum(file.get_tensor(name).size for name in file.keys())  # noqa: SIM118
    assert size == summary.num_parameters
    assert summary.bytes_per_parameter == summary.payload_bytes / size


# The name under which each call of round.py is timed.
STEPS = {
    "make_plan": "plan",
    "train": "train",
    "encode": "encode",
    "commit": "commit",
    "publish": "publish",
    "gather": "gather",
    "attest": "attest",
    "aggregate": "close",
    "check_root": "check",
    "apply": "apply",
    "settle": "settle",
}


def assert_every_step_is_timed(events, num_rounds):
    """The log holds all steps of round.py in their order, once a round, with their seconds."""
    tree = ast.parse(inspect.getsource(round_module.run_round))
    awaited = [node.value.func.id for node in ast.walk(tree) if isinstance(node, ast.Await)]
    assert sorted(awaited) == sorted(STEPS), "a step of round.py without a name here"
    timed = [event for event in events if event["event"] == "step_ended"]
    assert [event["step"] for event in timed if event["step"] != "check"] == [
        step for step in STEPS.values() if step != "check"
    ] * num_rounds
    # The stored roots before the first and after the last round are checked as well.
    assert [event["step"] for event in timed].count("check") >= num_rounds
    assert all(event["seconds"] >= 0 for event in timed)


def test_a_seed_gives_the_same_run_to_the_bit(tmp_path):
    options = {"num_rounds": 3, "slot_milliseconds": SLOT, "margin_micro": -(10**9), "seed": 7}
    options |= HONEST
    first, _ = perform(tmp_path / "first", None, **options)
    second, _ = perform(tmp_path / "second", None, **options)
    assert first.is_success
    assert first.num_included == second.num_included == 12
    assert (first.run, first.state_root) == (second.run, second.state_root)
    other, _ = perform(tmp_path / "other", None, **{**options, "seed": 8})
    assert other.state_root != first.state_root


@pytest.mark.parametrize("chain", [KILL_SLOT], indirect=True)
def test_the_others_go_on_when_one_is_killed(tmp_path, chain):
    """kill -9 half-way: the round in which it happens loses one payload, not the run."""
    folder = tmp_path / "demo"
    summary, _ = perform(
        folder,
        chain,
        num_rounds=10,
        slot_milliseconds=KILL_SLOT,
        margin_micro=-(10**9),
        kill_round=4,
        **HONEST,
    )
    assert summary.is_success, summary
    assert summary.killed_peers == ["trainer-3"]
    assert sorted(summary.peer_roots) == ["trainer-0", "trainer-1", "trainer-2"]

    view, rounds = asyncio.run(read_chain(chain, Pubkey.from_string(summary.run)))
    assert (view.phase, view.round) == (Phase.FINISHED, 10)
    assert set(summary.peer_roots.values()) == {view.root.hex()}
    killed = next(e["index"] for e in events_of(folder, "trainer-3") if e["event"] == "joined")
    assert rounds[4].included >> killed & 1
    assert all(not rounds[r].included >> killed & 1 for r in (7, 8, 9))
    assert all(rounds[r].included.bit_count() == 3 for r in (7, 8, 9))
    assert not rounds[9].members >> killed & 1
    histories = [roots_by_round(folder, name) for name in summary.peer_roots]
    assert histories[0] == histories[1] == histories[2]
    assert {event["event"] for event in events_of(folder, "trainer-3")}.isdisjoint({"ended"})


def test_a_margin_that_is_missed_is_a_failure(tmp_path):
    options = {"num_rounds": 1, "slot_milliseconds": SLOT, "margin_micro": 10**7}
    summary, _ = perform(tmp_path / "demo", None, **options, **HONEST)
    assert summary.agrees
    assert not summary.is_success
    kept = tmp_path / "demo" / "trainer-0" / "state"
    assert list(kept.glob("weights-*.record")), "the state of a failed demo is kept"


def test_the_command_prints_one_json_object(tmp_path):
    """`troth demo --json`: progress on stderr, the result on stdout, nothing left running."""
    folder = tmp_path / "demo"
    command = [sys.executable, "-m", "troth_cli.main", "demo", "--json", "--rounds", "6"]
    command += ["--margin-micro", "300000", "--out", str(folder), "--cheat", "none"]
    mark = str(tmp_path)
    done = subprocess.run(
        command,
        env=marked_environment(mark),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["is_success"] is True
    assert result["num_parameters"] == 656_256
    assert result["payload_bytes"] == 9_216
    assert set(result["peer_roots"].values()) == {result["chain_root"]}
    assert result["fell_by_micro"] >= 300_000
    assert "round 6 of 6" in done.stderr
    assert result["trial"]["cheat"] is None
    assert result["moved_stakes"] == []
    assert json.loads((folder / "events.jsonl").read_text().splitlines()[-1])["event"] == (
        "summarised"
    )
    wait_for(lambda: not marked_processes(mark))
