"""Ten rounds on solana-test-validator with real trainers: nothing that only LiteSVM accepts.

The binary comes packed in ../shared/tools; without it (or one on PATH) the test is skipped.
"""

import asyncio

import pytest
from integration.demo_support import (
    KeptChain,
    fees_of_all_transactions,
    perform,
    read_chain,
    roots_by_round,
)
from solders.pubkey import Pubkey
from unit.localnet.validator_binary import validator_binary

from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import SeedStatus
from troth_localnet.faults.catalogue import NOBODY
from troth_localnet.validator import ValidatorLauncher, ValidatorOptions

pytestmark = [pytest.mark.validator, pytest.mark.processes]

SLOT = 400
NUM_ROUNDS = 10


@pytest.fixture
def validator(request):
    binary = validator_binary(request)
    with ValidatorLauncher(ValidatorOptions(binary=binary, slot_milliseconds=SLOT)) as launcher:
        yield KeptChain(launcher)


def test_ten_rounds_end_with_one_root(tmp_path, validator):
    """Public slot time, confirmed commitment, V0 image at genesis; three trainers and a witness."""
    folder = tmp_path / "demo"
    summary, _ = perform(
        folder,
        validator,
        num_trainers=3,
        cheat=NOBODY,  # ten rounds are few for a conviction by chance
        num_rounds=NUM_ROUNDS,
        slot_milliseconds=SLOT,
        margin_micro=20_000,
    )
    assert summary.is_success, summary
    view, rounds = asyncio.run(read_chain(validator, Pubkey.from_string(summary.run)))
    assert (view.phase, view.round) == (Phase.FINISHED, NUM_ROUNDS)
    assert set(summary.peer_roots.values()) == {view.root.hex()}
    assert len(summary.peer_roots) == 4
    included = sum(one.included.bit_count() for one in rounds.values())
    assert included == summary.num_included
    assert included >= 2 * NUM_ROUNDS
    # Slot hashes come from the real sysvar: every round but the last few has its seed.
    settled = [rounds[r].seed_status for r in range(NUM_ROUNDS - view.params.keep_rounds)]
    assert settled == [SeedStatus.FROZEN] * len(settled)
    histories = [roots_by_round(folder, name) for name in summary.peer_roots]
    assert all(history == histories[0] for history in histories)
    assert summary.fees_lamports == asyncio.run(fees_of_all_transactions(validator, summary.run))
