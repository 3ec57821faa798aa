"""The way back over past rounds: above a limit from disk, to the bit, never from a wrong file."""

import pytest
import torch
from support.kernels import TORCH, momentum_of
from support.proposals import proposed

from troth_client.compression.residual import Residual
from troth_client.state.past_states import Past, PastStates, RewindError
from troth_client.state.records import Closure
from troth_client.state.residual_state import ResidualState, Undo
from troth_client.storage import Store, Submission, WeightState
from troth_client.storage.entries import StoreIdentity
from troth_client.telemetry.losses import round_loss
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import NONE

KEEP = 4
ROUNDS = 6
VALUES = 1000
BYTES = 4 * VALUES
TILES = 3
K = 8


class Pieces:
    """The root under which the weights of a round are known."""

    def __init__(self, round_):
        self.root = bytes([round_]) * 32


def weights(round_):
    return {"w": torch.full((VALUES,), float(round_))}


def closure(round_):
    return Closure(round_, 1, 1, False, bytes(32), None, frozenset(), round_loss([]))


@pytest.fixture
def store(tmp_path):
    reports = []
    with Store(
        tmp_path / "state", StoreIdentity(bytes(32), bytes(32), bytes(32)), reports.append
    ) as it:
        yield it


def save(store, round_, root=None):
    arrays = {name: w.numpy() for name, w in weights(round_).items()}
    store.save_weights(WeightState(round_, 0, root or Pieces(round_).root, arrays))


def filled(past, rounds=range(ROUNDS)):
    """Past states of these rounds; the weights change in place afterwards, as apply does it."""
    now = weights(0)
    for round_ in rounds:
        now["w"].fill_(float(round_))
        past.add(Past(round_, 0, Pieces(round_), closure(round_)), now)
        past.tidy()
    now["w"].fill_(-1.0)
    return past


def kept(past):
    return [one.round for one in past.closures()]


@pytest.mark.parametrize(
    ("limit", "held"), [(0, 0), (BYTES, 1), (2 * BYTES + 1, 2), (BYTES * 9, 4)]
)
def test_what_the_disk_has_takes_memory_up_to_the_limit_only(store, limit, held):
    for round_ in range(ROUNDS):
        save(store, round_)
    past = filled(PastStates(KEEP, store, limit))
    assert past.memory_bytes == held * BYTES
    assert kept(past) == [2, 3, 4, 5]
    found, restored = past.find(3)
    assert found.round == 3
    assert torch.equal(restored["w"], weights(3)["w"])
    past.forget_from(3)
    assert kept(past) == [2]


def test_without_a_disk_the_newest_states_stay_in_memory():
    past = filled(PastStates(KEEP, None, 2 * BYTES))
    assert kept(past) == [4, 5]
    _, restored = past.find(4)
    assert torch.equal(restored["w"], weights(4)["w"])


def test_on_a_full_disk_the_unsaved_state_takes_the_place_of_saved_ones(store):
    """From round 4 on there was no room for weights on the disk."""
    for round_ in range(4):
        save(store, round_)
    past = filled(PastStates(KEEP, store, BYTES))
    assert past.memory_bytes == BYTES
    assert kept(past) == [5]
    _, restored = past.find(5)
    assert torch.equal(restored["w"], weights(5)["w"])


def test_one_unsaved_state_leaves_the_way_back_over_saved_ones(store):
    """Only round 6 found no room on the disk; round 3 lies there and takes no memory."""
    for round_ in range(6):
        save(store, round_)
    past = filled(PastStates(KEEP, store, 2 * BYTES), range(7))
    assert kept(past) == [3, 4, 5, 6]
    assert past.memory_bytes == 2 * BYTES
    _, restored = past.find(3)
    assert torch.equal(restored["w"], weights(3)["w"])


def test_a_file_of_another_state_saves_no_memory(store):
    for round_ in range(3):
        save(store, round_, bytes(32) if round_ == 2 else None)
    past = filled(PastStates(KEEP, store, 0), range(3))
    assert past.memory_bytes == BYTES
    _, restored = past.find(2)
    assert torch.equal(restored["w"], weights(2)["w"])


@pytest.mark.parametrize("damage", ["gone", "other root", "torn"])
def test_a_file_that_is_not_that_state_is_refused_and_nothing_is_forgotten(store, damage):
    for round_ in range(ROUNDS):
        save(store, round_)
    past = filled(PastStates(KEEP, store, 0))
    path = store.folder / f"weights-{3:020d}.record"
    if damage == "gone":
        path.unlink()
    elif damage == "other root":
        save(store, 3, bytes(32))
    else:
        path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    with pytest.raises(RewindError):
        past.find(3)
    assert kept(past) == [2, 3, 4, 5]
    assert past.find(2)[0].round == 2


def test_a_round_that_was_never_kept_is_refused(store):
    past = filled(PastStates(KEEP, store))
    with pytest.raises(RewindError, match="rounds"):
        past.find(1)


@pytest.mark.parametrize("limit", [BYTES, 1 << 30])
def test_a_state_that_finds_no_memory_takes_the_place_of_no_other(store, limit, monkeypatch):
    past = filled(PastStates(KEEP, store, limit))
    before, bytes_before = kept(past), past.memory_bytes
    monkeypatch.setattr(torch.Tensor, "clone", lambda _: (_ for _ in ()).throw(MemoryError("none")))
    with pytest.raises(MemoryError):
        past.add(Past(ROUNDS, 0, None, closure(ROUNDS)), weights(ROUNDS))
    assert kept(past) == before
    assert past.memory_bytes == bytes_before


RULE = Residual.of(RunConfig())


def residual_state(store):
    return ResidualState(RULE, TILES, Undo(KEEP, K, store.load_residual), TORCH)


def propose(state, store, round_):
    """Propose a round on the present momentum, and store it."""
    state.begin(state.momentum.previous)
    source = torch.Generator().manual_seed(round_)
    coefficients = torch.randn(TILES, 64, 64, generator=source)
    proposal = proposed(state, RULE, round_, coefficients, K)
    submission = Submission(round_, 0, b"header", bytes(64), b"payload")
    store.save_submission(submission, state.entry())
    return proposal


def settle(state, store, round_):
    """Propose, store and settle one included round."""
    proposal = propose(state, store, round_)
    state.settle(round_, proposal.root)


def momentum_in(state):
    """Return M as a tensor of its own; None where it is zero."""
    carried = state.momentum.carried
    return None if carried is None else momentum_of(RULE, carried)


def test_the_momentum_before_a_round_is_made_again_from_the_disk(store):
    state, seen = residual_state(store), {}
    for round_ in range(ROUNDS):
        seen[round_] = momentum_in(state)
        settle(state, store, round_)
    for round_ in (5, 3, 2):
        state.rewind(round_)
        assert torch.equal(momentum_in(state), seen[round_]), round_
        assert state.momentum.previous == round_ - 1


@pytest.mark.parametrize("damage", ["gone", "another u"])
def test_a_momentum_whose_file_is_lost_is_declared_zero(store, damage):
    state = residual_state(store)
    for round_ in range(3):
        settle(state, store, round_)
    if damage == "gone":
        store.drop_residuals([])
    else:
        settle(residual_state(store), store, 1)
    state.rewind(2)
    assert state.momentum.carried is None
    assert state.momentum.previous == NONE
    assert state.momentum.root == state.zero_root


@pytest.mark.parametrize("rounds", [1, 2, ROUNDS])
@pytest.mark.parametrize("is_included", [False, True])
def test_a_stopped_process_goes_on_with_the_same_momentum(store, rounds, is_included):
    """It stopped after it had stored what it commits to. Only u is stored of each round."""
    state, stopped = residual_state(store), residual_state(store)
    for round_ in range(rounds):
        settle(state, store, round_)
    propose(state, store, rounds)
    stopped.resume(store.newest_residual(), K)
    assert stopped.momentum.previous == state.momentum.previous == rounds - 1
    assert stopped.momentum.root == state.momentum.root
    assert torch.equal(momentum_in(stopped), momentum_in(state))
    for one in (state, stopped):
        one.settle(rounds, one.proposal.root if is_included else None)
    assert torch.equal(momentum_in(stopped), momentum_in(state))
    assert torch.equal(propose(stopped, store, rounds + 1).u, propose(state, store, rounds + 1).u)


def test_a_process_that_stopped_in_its_first_round_goes_on_from_zero(store):
    propose(residual_state(store), store, 0)
    stopped = residual_state(store)
    stopped.resume(store.newest_residual(), K)
    assert stopped.momentum.carried is None
    assert stopped.momentum.previous == NONE


def test_a_stopped_process_whose_older_file_is_lost_keeps_its_proposal(store):
    """M is declared zero. The committed u can still become the momentum."""
    state, stopped = residual_state(store), residual_state(store)
    settle(state, store, 0)
    proposal = propose(state, store, 1)
    store.drop_residuals([1])
    stopped.resume(store.newest_residual(), K)
    assert stopped.momentum.carried is None
    for one in (state, stopped):
        one.settle(1, proposal.root)
    assert stopped.momentum.previous == 1
    assert torch.equal(momentum_in(stopped), momentum_in(state))
