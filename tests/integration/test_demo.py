"""`troth demo` with real processes: its summary claims what the chain and the files show.

In these demos nobody cheats, and nobody witnesses alone; test_demo_trial.py has one with a cheat.
Three demos are performed once each, and every test looks at one or two of them. Demos that are
started by their command are in test_demo_ends.py.
"""

import ast
import asyncio
import contextlib
import inspect
from dataclasses import dataclass
from pathlib import Path

import pytest
from safetensors import safe_open
from solders.pubkey import Pubkey
from support.demos import (
    KeptChain,
    events_of,
    fees_of_all_transactions,
    perform,
    read_chain,
    roots_by_round,
)

from troth_cli.demo.report import verdict
from troth_cli.demo.summary import Summary
from troth_client import round as round_module
from troth_client.telemetry.board import Board
from troth_client.telemetry.event_log import EventTail
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RoundView, RunView
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions

pytestmark = [
    pytest.mark.processes,
    pytest.mark.long(reason="another whole demo; make test has the one with a cheat"),
]

# Slots are wall time here. A phase ends when all have acted: only the rounds that wait for a killed
# trainer need their deadlines.
SLOT = 100
KILL_SLOT = 60
ROUNDS = 6
KILL_ROUND, KILL_ROUNDS = 2, 8
HONEST = {"num_witnesses": 0, "cheat": "none"}
ANY_LOSS = -(10**9)


@dataclass(frozen=True)
class Performed:
    """A demo that is over: what it claims, what it printed, and what the chain shows."""

    folder: Path
    chain: KeptChain
    summary: Summary
    printed: str
    view: RunView
    rounds: dict[int, RoundView]
    fees_lamports: int

    @property
    def histories(self):
        """The roots by round of each trainer that saw the end."""
        return [roots_by_round(self.folder, name) for name in self.summary.roots]


@pytest.fixture(scope="module")
def perform_demo(tmp_path_factory):
    """Performs a demo on a chain that can still be read afterwards."""
    with contextlib.ExitStack() as stack:

        def make(slot, **options):
            launcher = EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=slot))
            chain = KeptChain(stack.enter_context(launcher))
            folder = tmp_path_factory.mktemp("honest") / "demo"
            options |= {"slot_milliseconds": slot, **HONEST}
            summary, printed = perform(folder, chain, **options)
            view, rounds = asyncio.run(read_chain(chain, Pubkey.from_string(summary.run)))
            fees = asyncio.run(fees_of_all_transactions(chain, summary.run))
            return Performed(folder, chain, summary, printed, view, rounds, fees)

        yield make


@pytest.fixture(scope="module")
def honest(perform_demo):
    return perform_demo(SLOT, num_rounds=ROUNDS, margin_micro=10_000, seed=1)


@pytest.fixture(scope="module")
def repeated(perform_demo):
    """The same demo once more, but asked for a loss that nobody reaches."""
    return perform_demo(SLOT, num_rounds=ROUNDS, margin_micro=10**7, seed=1)


@pytest.fixture(scope="module")
def killed(perform_demo):
    """Another seed, and one trainer that dies by kill -9 half-way."""
    return perform_demo(
        KILL_SLOT, num_rounds=KILL_ROUNDS, margin_micro=ANY_LOSS, kill_round=KILL_ROUND, seed=2
    )


def test_the_summary_says_what_the_chain_says(honest):
    summary, view = honest.summary, honest.view
    assert honest.chain.num_stops == 1
    assert summary.is_success, summary
    assert f"round {ROUNDS} of {ROUNDS}" in honest.printed
    assert "Nobody cheated, and nobody lost anything." in verdict(summary)
    assert view.phase == Phase.FINISHED
    assert view.round == summary.num_rounds == ROUNDS
    assert set(summary.roots.values()) == {view.root.hex()}
    assert list(summary.roots) == [f"trainer-{index}" for index in range(4)]
    included = sum(honest.rounds[r].included.bit_count() for r in range(ROUNDS))
    assert included == summary.num_included == 4 * ROUNDS


def test_the_summary_knows_every_lamport(honest):
    summary, view = honest.summary, honest.view
    assert summary.fees_lamports == honest.fees_lamports
    rewards = summary.num_included * view.params.reward_per_payload
    fees = sum(one.fees for one in summary.outcome.honest.values())
    assert fees > 0, "somebody was audited, and somebody was paid for it"
    assert view.total_unvested + view.total_claimable == rewards + fees
    # The fees on the live display equal the lamports that the chain lost, to the lamport.
    logs = [honest.folder, *(honest.folder / name for name in summary.roots)]
    board = Board()
    for event in (one for log in logs for one in EventTail(log / "events.jsonl").read()):
        board.take(event)
    assert board.fees == summary.fees_lamports


def test_the_root_on_chain_of_each_round_is_what_every_trainer_held(honest):
    on_chain = [honest.rounds[r].canonical_root.hex() for r in range(1, ROUNDS)]
    for name, roots in zip(honest.summary.roots, honest.histories, strict=True):
        assert roots[ROUNDS - 1] == honest.view.root.hex(), name
        assert [roots[r - 1] for r in range(1, ROUNDS)] == on_chain, name


def test_every_step_of_a_round_is_timed_and_nothing_else_is_printed(honest):
    for name in honest.summary.roots:
        assert_every_step_is_timed(events_of(honest.folder, name), num_rounds=ROUNDS)
        assert not (honest.folder / name / "output.txt").read_text()


def test_the_weights_of_a_successful_demo_are_left_in_its_folder(honest):
    summary = honest.summary
    weights = honest.folder / "trainer-2/state/weights/model.safetensors"
    with safe_open(weights, "numpy") as file:
        assert file.metadata()["state_root"] == honest.view.root.hex()
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
    "await_close": "close",
    "check_root": "check",
    "carry": "carry",
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


@pytest.mark.nightly(reason="a second whole demo; equal seeds and the margin are tested in process")
def test_a_seed_gives_the_same_run_to_the_bit(honest, repeated, killed):
    assert honest.summary.num_included == repeated.summary.num_included == 4 * ROUNDS
    assert honest.summary.run == repeated.summary.run
    assert honest.summary.state_root == repeated.summary.state_root
    assert honest.histories == repeated.histories
    # The first weights come from the run's address alone, and the address from the seed.
    first_root = honest.rounds[0].canonical_root
    assert first_root == repeated.rounds[0].canonical_root
    assert first_root != killed.rounds[0].canonical_root


@pytest.mark.nightly(reason="a second whole demo; equal seeds and the margin are tested in process")
def test_a_margin_that_is_missed_is_a_failure(repeated):
    assert repeated.summary.agrees
    assert not repeated.summary.is_success
    kept = repeated.folder / "trainer-0" / "state"
    assert list(kept.glob("weights-*.record")), "the state of a failed demo is kept"


@pytest.mark.nightly(reason="a second whole demo; test_processes.py kills in make test, too")
def test_the_others_go_on_when_one_is_killed(killed):
    """kill -9 half-way: the round in which it happens loses one payload, not the run."""
    summary, view, rounds = killed.summary, killed.view, killed.rounds
    assert summary.is_success, summary
    assert summary.killed == ["trainer-3"]
    assert sorted(summary.roots) == ["trainer-0", "trainer-1", "trainer-2"]
    assert view.phase == Phase.FINISHED
    assert view.round == KILL_ROUNDS
    assert set(summary.roots.values()) == {view.root.hex()}
    events = events_of(killed.folder, "trainer-3")
    index = next(event["index"] for event in events if event["event"] == "joined")
    assert rounds[KILL_ROUND].included >> index & 1
    for round_ in range(KILL_ROUNDS - 3, KILL_ROUNDS):
        assert not rounds[round_].included >> index & 1, round_
        assert rounds[round_].included.bit_count() == 3, round_
    assert not rounds[KILL_ROUNDS - 1].members >> index & 1
    first, *others = killed.histories
    assert others == [first, first]
    assert {event["event"] for event in events}.isdisjoint({"ended"})
