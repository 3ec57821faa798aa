"""A step that runs out of memory half way leaves the weights of its round, sooner or later."""

import pytest
import torch
from support.kernels import payload

from troth_client.compression import apply
from troth_client.compression.exact import step_
from troth_client.compression.known_answer import choose_path
from troth_client.state.past_states import PastStates, RewindError
from troth_client.state.records import Closure
from troth_client.state.replica import Replica
from troth_client.storage import Store
from troth_client.storage.entries import StoreIdentity
from troth_coordinator.rules.config import DataSection, RunConfig
from troth_coordinator.rules.ids import Bitmap, Digest, RoundIndex

CONFIG = RunConfig(data=DataSection(manifest_hash="ab" * 32))
K = 4


class BusyDisk:
    """A store that finds no memory for so many of the next reads."""

    def __init__(self, store: Store) -> None:
        self.store, self.num_failures = store, 0

    def load_weights(self, round_):
        if self.num_failures:
            self.num_failures -= 1
            raise MemoryError("none for the file")
        return self.store.load_weights(round_)

    def holds_weights(self, round_, root):
        return self.store.holds_weights(round_, root)


@pytest.fixture
def disk(tmp_path):
    identity = StoreIdentity(bytes(32), bytes(32), bytes(32))
    with Store(tmp_path / "state", identity, lambda _error: None) as store:
        yield BusyDisk(store)


def replica(past):
    draw = torch.Generator().manual_seed(1)
    weights = {name: torch.randn(64, 128, generator=draw) for name in ("a", "b")}
    return Replica(CONFIG, weights, choose_path("cpu"), past)


def closure(round_):
    return Closure(RoundIndex(round_), 1, Bitmap(1), False, Digest(bytes(32)))


def move(one):
    one.apply(closure(one.round), [payload(one.round, one.layout.num_tiles, K)])


def starve(monkeypatch):
    """Let the next step find memory for its first tensor only."""
    stepped = []

    def step(*arguments):
        stepped.append(arguments)
        if len(stepped) == 2:
            raise MemoryError("none for the second tensor")
        step_(*arguments)

    monkeypatch.setattr(apply, "step_", step)


def torn(monkeypatch, disk, num_failures):
    """A replica of round 1 whose past lies on disk, after a step and a way back that failed."""
    found = replica(PastStates(4, disk, memory_bytes=0))
    for _ in range(2):
        disk.store.save_weights(found.stored())
        if found.round == 0:
            move(found)
    starve(monkeypatch)
    disk.num_failures = num_failures
    with pytest.raises(MemoryError):
        move(found)
    return found


@pytest.fixture
def honest():
    found = replica(PastStates(4))
    move(found)
    return found


@pytest.mark.parametrize("num_failures", [0, 1])
def test_a_step_without_memory_leaves_the_root_and_the_next_step_as_they_were(
    monkeypatch, disk, honest, num_failures
):
    found = torn(monkeypatch, disk, num_failures)
    assert found.round == 1
    assert found.root() == honest.root()
    for one in (found, honest):
        move(one)
    assert found.root() == honest.root()


@pytest.mark.parametrize("ask", [move, Replica.root, Replica.pieces, Replica.stored])
def test_half_stepped_weights_are_never_used_however_often_the_way_back_fails(
    monkeypatch, disk, honest, ask
):
    found = torn(monkeypatch, disk, 3)
    for _ in range(2):
        with pytest.raises(MemoryError, match="none for the file"):
            ask(found)
    move(found)
    move(honest)
    assert found.root() == honest.root()


def test_half_stepped_weights_are_replaced_by_others_or_by_earlier_ones(monkeypatch, disk, honest):
    found = torn(monkeypatch, disk, 1)
    found.rewind(RoundIndex(0))
    move(found)
    assert found.root() == honest.root()
    found = torn(monkeypatch, disk, 1)
    found.restore(honest.weights, honest.round, honest.cursor)
    assert found.root() == honest.root()


def test_half_stepped_weights_whose_file_is_lost_have_no_root(monkeypatch, disk):
    found = torn(monkeypatch, disk, 1)
    (disk.store.folder / f"weights-{1:020d}.record").unlink()
    with pytest.raises(RewindError, match="no file of it that is whole"):
        found.root()


@pytest.mark.parametrize("limit", [0, 1 << 30])
def test_a_step_without_memory_costs_no_state_of_the_way_back(monkeypatch, disk, limit):
    found = replica(PastStates(2, disk, memory_bytes=limit))
    for _ in range(2):
        disk.store.save_weights(found.stored())
        move(found)
    disk.store.save_weights(found.stored())
    before, bytes_before = found.applied(), found.past.memory_bytes
    starve(monkeypatch)
    with pytest.raises(MemoryError):
        move(found)
    assert [one.round for one in found.applied()] == [0, 1]
    assert found.applied() == before
    assert found.past.memory_bytes == bytes_before
    assert found.oldest_round == 0
