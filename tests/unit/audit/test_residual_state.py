"""The residual of a trainer signs the root of its u, and survives a lack of memory."""

import gc
import weakref
from dataclasses import replace

import pytest
import torch
from support.kernels import TORCH
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
    state = ResidualState(rule, NUM_TILES, UNDO, TORCH)
    state.begin(NONE)
    proposal = proposed(state, rule, 0, coefficients, K)
    assert proposal.root == residual_root(proposal.u.numpy())


def test_the_momentum_is_u_itself_which_an_audit_may_ask_for(coefficients):
    rule = Residual(999_000, 500_000)
    state = ResidualState(rule, NUM_TILES, UNDO, TORCH)
    state.begin(NONE)
    proposal = proposed(state, rule, 0, coefficients, K)
    before = proposal.u.clone()
    state.settle(0, proposal.root)
    assert state.momentum.carried.u is proposal.u
    assert torch.equal(proposal.u, before)
    proposed(state, rule, 1, coefficients, K)
    assert torch.equal(proposal.u, before)


def test_the_zero_root_is_that_of_zero_tiles():
    state = ResidualState(Residual.of(RunConfig()), NUM_TILES, UNDO, TORCH)
    zero = torch.zeros(NUM_TILES, 64, 64)
    assert state.zero_root == state.begin(NONE).root == residual_root(zero.numpy())


RULE = Residual(999_000, 500_000)


def test_a_way_back_that_found_no_memory_is_gone_the_next_time(coefficients):
    entries, is_short = {}, [True]

    def load(round_):
        if is_short:
            is_short.pop()
            raise MemoryError("none for the file")
        return entries[round_]

    state = ResidualState(RULE, NUM_TILES, Undo(4, K, load), TORCH)
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


class Played:
    """Three included rounds of which every u is on disk; `momenta` are M before and after them."""

    def __init__(self, coefficients):
        self.entries, self.num_reads, self.coefficients = {}, 0, coefficients
        self.state = self.fresh()
        self.momenta = [self.state.momentum]
        self.roots = []
        for round_ in (0, 1, 2):
            proposal = proposed(self.state, RULE, round_, coefficients, K)
            self.entries[round_] = self.state.entry()
            self.state.settle(round_, proposal.root)
            self.momenta.append(self.state.momentum)
            self.roots.append(proposal.root)

    def fresh(self):
        return ResidualState(RULE, NUM_TILES, Undo(4, K, self.load), TORCH)

    def load(self, round_):
        self.num_reads += 1
        return self.entries.get(round_)

    def assert_stands_after(self, round_, state=None):
        found, expected = (state or self.state).momentum, self.momenta[round_ + 1]
        assert found.previous == round_
        assert found.root == expected.root
        assert torch.equal(found.carried.u, expected.carried.u)
        assert found.carried.indices.tolist() == expected.carried.indices.tolist()


@pytest.fixture
def played(coefficients):
    return Played(coefficients)


@pytest.mark.parametrize("missed", [1, 2])
def test_a_stopped_process_that_missed_rounds_carries_its_last_one_on(played, missed):
    """It stopped after round 2; the run went on without it, and still names round 2."""
    stopped = played.fresh()
    stopped.resume(played.entries[2], K)
    for round_ in range(3, 3 + missed):
        stopped.settle(round_, None)
        assert 2 in stopped.origins(), "tidy would remove its u"
    stopped.begin(2)
    played.assert_stands_after(2, stopped)


def test_a_round_that_is_settled_again_otherwise_is_taken_back(played):
    """Our payload was struck before the weights moved."""
    played.state.settle(2, played.roots[2])
    played.assert_stands_after(2)
    played.state.settle(2, None)
    played.assert_stands_after(1)


def test_a_round_that_a_fork_takes_back_and_brings_again_is_carried_on(played):
    played.state.rewind(2)
    played.assert_stands_after(1)
    played.state.settle(2, played.roots[2])
    played.state.begin(2)
    played.assert_stands_after(2)


def test_another_u_than_that_on_disk_is_not_carried_on(played):
    played.state.rewind(2)
    played.state.settle(2, played.roots[1])
    assert played.state.begin(2) is played.momenta[0], "zero"


def test_a_way_back_over_rounds_without_us_reads_nothing(played):
    for round_ in (3, 4):
        played.state.settle(round_, None)
    played.state.rewind(3)
    played.assert_stands_after(2)
    assert played.num_reads == 0


@pytest.mark.parametrize("is_settled", [False, True])
def test_u_of_a_round_is_held_no_longer_than_its_proposal(coefficients, is_settled):
    state = ResidualState(RULE, NUM_TILES, UNDO, TORCH)
    u = weakref.ref(proposed(state, RULE, 0, coefficients, K).u)
    if is_settled:
        state.settle(0, None)
    else:
        state.proposal = None  # as a step that refuses the payload does
    gc.collect()
    assert u() is None


def test_no_momentum_of_a_past_round_is_held(coefficients):
    """The disk has each u: the way back takes no memory, of a GPU least of all."""
    state = ResidualState(RULE, NUM_TILES, Undo(4, K, lambda _round: None), TORCH)
    state.settle(0, proposed(state, RULE, 0, coefficients, K).root)
    past = weakref.ref(state.momentum.carried.u)
    state.settle(1, proposed(state, RULE, 1, coefficients, K).root)
    gc.collect()
    assert past() is None


def test_u_is_stored_as_it_was_replaced(coefficients):
    """A cheat puts another u in place of the hashed one."""
    state = ResidualState(RULE, NUM_TILES, UNDO, TORCH)
    proposal = proposed(state, RULE, 0, coefficients, K)
    other = torch.ones_like(proposal.u)
    state.proposal = replace(proposal, u=other)
    assert torch.equal(torch.from_numpy(state.entry().u), other)
