"""The residual of a trainer signs the root of its u."""

import pytest
import torch

from troth_attestation.state import residual_root
from troth_client.compression.residual import Residual
from troth_client.state.residual_state import ResidualState, Undo
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import NONE

NUM_TILES = 6
K = 8
UNDO = Undo(1, K, lambda round_: None)


@pytest.fixture
def coefficients():
    return torch.randn(NUM_TILES, 64, 64, generator=torch.Generator().manual_seed(1))


def test_a_proposal_names_the_root_of_its_u(coefficients):
    state = ResidualState(Residual.of(RunConfig()), NUM_TILES, UNDO)
    state.begin(NONE)
    proposal = state.propose(0, coefficients, K)
    again = state.sign(0, proposal.u, K)
    assert proposal.root == again.root == residual_root(proposal.u.numpy())


@pytest.mark.parametrize("is_free", [False, True])
def test_u_changes_only_where_nobody_else_holds_it(coefficients, is_free):
    state = ResidualState(Residual(999_000, 500_000), NUM_TILES, UNDO)
    state.begin(NONE)
    proposal = state.propose(0, coefficients, K)
    before = proposal.u.clone()
    state.settle(0, proposal.root, is_free=is_free)
    assert torch.equal(proposal.u, before) is not is_free
    assert not torch.equal(state.momentum.matrix, before)


def test_the_zero_root_is_that_of_zero_tiles():
    state = ResidualState(Residual.of(RunConfig()), NUM_TILES, UNDO)
    zero = torch.zeros(NUM_TILES, 64, 64)
    assert state.zero_root == state.begin(NONE).root == residual_root(zero.numpy())
