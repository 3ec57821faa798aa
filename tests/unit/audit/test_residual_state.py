"""The residual of a trainer signs the root of its u, whoever hashes it."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from troth_attestation.bulk import LEAVES_PER_TASK
from troth_attestation.state import residual_root
from troth_client.compression.residual import Residual
from troth_client.state.residual_state import ResidualState, Undo
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import NONE

NUM_TILES = LEAVES_PER_TASK + 6
K = 8
UNDO = Undo(1, K, lambda round_: None)


class Counted(ThreadPoolExecutor):
    """Two threads that count how often they were asked."""

    asked = 0

    def map(self, *args, **kwargs):
        self.asked += 1
        return super().map(*args, **kwargs)


@pytest.fixture
def coefficients():
    return torch.randn(NUM_TILES, 64, 64, generator=torch.Generator().manual_seed(1))


def test_the_threads_for_hashing_hash_u(coefficients):
    with Counted(2) as hashers:
        state = ResidualState(Residual.of(RunConfig()), NUM_TILES, UNDO, hashers)
        state.begin(NONE)
        proposal = state.propose(0, coefficients, K)
        again = state.sign(0, proposal.u, K)
    assert proposal.root == again.root == residual_root(proposal.u.numpy())
    assert hashers.asked == 2


def test_the_zero_root_is_that_of_zero_tiles():
    state = ResidualState(Residual.of(RunConfig()), NUM_TILES, UNDO)
    zero = torch.zeros(NUM_TILES, 64, 64)
    assert state.zero_root == state.begin(NONE).root == residual_root(zero.numpy())
