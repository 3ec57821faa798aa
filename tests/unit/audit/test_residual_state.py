"""The residual of a trainer signs the root of its u, and survives a lack of memory."""

import gc
import weakref
from dataclasses import replace

import pytest
import torch
from support.proposals import proposed

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
    rule = Residual.of(RunConfig())
    state = ResidualState(rule, NUM_TILES, UNDO)
    state.begin(NONE)
    proposal = proposed(state, rule, 0, coefficients, K)
    assert proposal.root == residual_root(proposal.u.numpy())


@pytest.mark.parametrize("is_free", [False, True])
def test_u_changes_only_where_nobody_else_holds_it(coefficients, is_free):
    rule = Residual(999_000, 500_000)
    state = ResidualState(rule, NUM_TILES, UNDO)
    state.begin(NONE)
    proposal = proposed(state, rule, 0, coefficients, K)
    before = proposal.u.clone()
    state.settle(0, proposal.root, is_free=is_free)
    assert torch.equal(proposal.u, before) is not is_free
    assert not torch.equal(state.momentum.matrix, before)


def test_the_zero_root_is_that_of_zero_tiles():
    state = ResidualState(Residual.of(RunConfig()), NUM_TILES, UNDO)
    zero = torch.zeros(NUM_TILES, 64, 64)
    assert state.zero_root == state.begin(NONE).root == residual_root(zero.numpy())


RULE = Residual(999_000, 500_000)


@pytest.fixture
def short(monkeypatch):
    """Return a call after which the next momentum finds no memory, once."""
    real, is_short = Residual.after_included, []

    def after_included(rule, u, top, *, in_place=False):
        if is_short:
            is_short.pop()
            raise MemoryError("none for the momentum")
        return real(rule, u, top, in_place=in_place)

    monkeypatch.setattr(Residual, "after_included", after_included)
    return lambda: is_short.append(True)


@pytest.mark.parametrize("is_free", [False, True])
def test_a_round_that_found_no_memory_is_settled_the_next_time(coefficients, short, is_free):
    state = ResidualState(RULE, NUM_TILES, UNDO)
    proposal = proposed(state, RULE, 0, coefficients, K)
    short()
    with pytest.raises(MemoryError):
        state.settle(0, proposal.root, is_free=is_free)
    assert state.carried() is None
    assert state.proposal is proposal
    expected = RULE.after_included(proposal.u, proposal.top)
    state.settle(0, proposal.root, is_free=is_free)
    assert state.momentum.previous == 0
    assert torch.equal(state.momentum.matrix, expected)
    assert state.proposal is None


def test_a_proposal_of_a_stopped_process_waits_for_memory(coefficients, short):
    state = ResidualState(RULE, NUM_TILES, UNDO)
    proposal = proposed(state, RULE, 0, coefficients, K)
    short()
    with pytest.raises(MemoryError):
        state.begin(0)
    assert state.begin(0).previous == 0
    assert state.momentum.root == proposal.root


def test_a_way_back_that_found_no_memory_is_gone_the_next_time(coefficients):
    entries, is_short = {}, [True]

    def load(round_):
        if is_short:
            is_short.pop()
            raise MemoryError("none for the file")
        return entries[round_]

    state = ResidualState(RULE, NUM_TILES, Undo(4, K, load))
    for round_ in (0, 1, 2):
        proposal = proposed(state, RULE, round_, coefficients, K)
        entries[round_] = state.entry()
        state.settle(round_, proposal.root)
    after = state.momentum
    with pytest.raises(MemoryError):
        state.rewind(1)
    assert state.momentum is after
    state.rewind(1)
    assert state.momentum.previous == 0
    again = proposed(state, RULE, 1, coefficients, K)
    state.settle(1, again.root)
    assert state.momentum.previous == 1


@pytest.mark.parametrize("is_settled", [False, True])
def test_u_of_a_round_is_held_no_longer_than_its_proposal(coefficients, is_settled):
    state = ResidualState(RULE, NUM_TILES, UNDO)
    u = weakref.ref(proposed(state, RULE, 0, coefficients, K).u)
    if is_settled:
        state.settle(0, None)
    else:
        state.proposal = None  # as a step that refuses the payload does
    gc.collect()
    assert u() is None


def test_no_momentum_of_a_past_round_is_held(coefficients):
    """The disk has each u: the way back takes no memory, of a GPU least of all."""
    state = ResidualState(RULE, NUM_TILES, Undo(4, K, lambda _round: None))
    for round_ in (0, 1):
        past = weakref.ref(state.momentum.matrix)
        state.settle(round_, proposed(state, RULE, round_, coefficients, K).root)
    gc.collect()
    assert past() is None


def test_u_is_stored_as_it_was_replaced(coefficients):
    """A cheat puts another u in place of the hashed one."""
    state = ResidualState(RULE, NUM_TILES, UNDO)
    proposal = proposed(state, RULE, 0, coefficients, K)
    other = torch.ones_like(proposal.u)
    state.proposal = replace(proposal, u=other)
    assert torch.equal(torch.from_numpy(state.entry().u), other)
