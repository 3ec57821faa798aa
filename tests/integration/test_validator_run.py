"""Whole runs on solana-test-validator with real trainers: nothing that only LiteSVM accepts.

The binary is the one on PATH or the one that TROTH_VALIDATOR names; without it the test is skipped.
"""

import asyncio
import json

import pytest
from solders.pubkey import Pubkey
from support.cli import process
from support.demos import (
    KeptChain,
    fees_of_all_transactions,
    perform,
    read_chain,
    roots_by_round,
)
from support.validator import validator_binary

from troth_attestation.quorum import AuditOutcome
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.event_types_audits import AuditOpened, AuditSettled
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import SeedStatus
from troth_localnet.validator import ValidatorLauncher, ValidatorOptions
from troth_simulation.cheats.catalogue import NOBODY

pytestmark = [pytest.mark.validator, pytest.mark.processes]

PUBLIC_TIME = pytest.mark.nightly(reason="ten rounds at public slot time are three minutes")
ANY_LOSS = -(10**9)
"""Five rounds are too few for a loss that falls for certain."""
SHORT = pytest.mark.long(reason="a whole demo, on a chain that needs a core of its own")
RUNS = [
    pytest.param(100, 5, ANY_LOSS, id="short", marks=SHORT),
    pytest.param(400, 10, 20_000, id="public-slot-time", marks=PUBLIC_TIME),
]
CLEARED = AuditOutcome.CLEARED


async def read_audits(launcher, run):
    """The events of opened audits, and those of settled audits."""
    async with HttpRpc(launcher.rpc_url) as rpc:
        client = CoordinatorClient(rpc)
        events = await client.history(run, run)
    return (
        [event for event in events if isinstance(event, AuditOpened)],
        [event for event in events if isinstance(event, AuditSettled)],
    )


@pytest.fixture
def validator(slot):
    options = ValidatorOptions(binary=validator_binary(), slot_milliseconds=slot)
    with ValidatorLauncher(options) as launcher:
        yield KeptChain(launcher)


@pytest.mark.parametrize(("slot", "num_rounds", "margin_micro"), RUNS)
def test_a_run_on_a_validator_ends_with_one_root(
    tmp_path, validator, slot, num_rounds, margin_micro
):
    """Confirmed commitment, V0 image at genesis; three trainers and a witness.

    All four judge each other: some payloads are audited, and every audit ends cleared and paid.
    """
    folder = tmp_path / "demo"
    summary, _ = perform(
        folder,
        validator,
        num_trainers=3,
        cheat=NOBODY,  # so few rounds are too few for a conviction by chance
        num_rounds=num_rounds,
        slot_milliseconds=slot,
        margin_micro=margin_micro,
    )
    assert summary.is_success, summary
    view, rounds = asyncio.run(read_chain(validator, Pubkey.from_string(summary.run)))
    assert view.phase == Phase.FINISHED
    assert view.round == num_rounds
    assert set(summary.roots.values()) == {view.root.hex()}
    assert len(summary.roots) == 4
    included = sum(one.included.bit_count() for one in rounds.values())
    assert included == summary.num_included
    assert included >= 2 * num_rounds
    # Slot hashes come from the real sysvar: every round but the last few has its seed.
    settled = [rounds[r].seed_status for r in range(num_rounds - view.params.keep_rounds)]
    assert settled == [SeedStatus.FROZEN] * len(settled)
    histories = [roots_by_round(folder, name) for name in summary.roots]
    assert all(history == histories[0] for history in histories)
    opened, settled = asyncio.run(read_audits(validator, Pubkey.from_string(summary.run)))
    assert len(opened) == len(settled) > 0
    assert {event.outcome for event in settled} == {CLEARED}
    assert {event.paid.bit_count() for event in settled} == {3}
    earned = sum(one.fees for one in summary.outcome.honest.values())
    assert earned == 3 * view.params.witness_fee * len(settled)
    assert summary.fees_lamports == asyncio.run(fees_of_all_transactions(validator, summary.run))


@pytest.mark.long(reason="another whole demo")
def test_the_demo_command_runs_on_a_validator(tmp_path):
    """`troth demo --validator PATH`: its chain and its processes end with it."""
    options = ["--out", tmp_path / "demo", "--slot-ms", 100, "--trainers", 2, "--witnesses", 0]
    options += ["--rounds", 3, "--cheat", NOBODY, "--margin-micro", ANY_LOSS, "--json"]
    done = process("demo", "--validator", validator_binary(), *options)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["is_success"] is True
