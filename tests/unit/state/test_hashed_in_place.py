"""Where a device hashes what it holds, roots and pieces are those that the host would make."""

from dataclasses import replace

import pytest
import torch
from support.kernels import RULE, TORCH, hashed_here, path_with, tensors

from troth_attestation.pieces import CHUNK_BYTES
from troth_attestation.sizes import TILE_BYTES
from troth_attestation.state import residual_root
from troth_client.compression.kernels.base import Kernels
from troth_client.compression.tiles import TileLayout
from troth_client.state.past_states import PastStates
from troth_client.state.replica import Replica
from troth_client.state.residual_state import ResidualState, Undo
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import NONE

SHAPES = {"w": (700, 65), "a": (3,), "é": (128, 128), "B": (1,)}
LAYOUT = TileLayout.from_shapes(SHAPES)
K = 8
UNDO = Undo(1, K, lambda _round: None)


class Device:
    """Hashes as a device does; remembers the length of the leaves it was asked for."""

    def __init__(self):
        self.asked = []

    def leaf_hashes(self, given, leaf_bytes):
        self.asked.append(leaf_bytes)
        return hashed_here(given, leaf_bytes)

    def path(self):
        def other(*_asked):
            pytest.fail("only hashes are asked for")

        return path_with(Kernels(other, other, leaf_hashes=self.leaf_hashes))


@pytest.fixture
def device():
    return Device()


def replica(path):
    return Replica(RunConfig().with_manifest(bytes(32)), tensors(LAYOUT, 1), path, PastStates(1))


def test_pieces_of_weights_are_those_of_the_host(device):
    assert replica(device.path()).pieces() == replica(TORCH).pieces()
    assert device.asked == [CHUNK_BYTES]


def test_the_root_of_u_is_that_of_the_host_and_u_is_there_to_be_stored(device):
    state = ResidualState(RULE, LAYOUT.num_tiles, UNDO, device.path())
    state.begin(NONE)
    encoded = TORCH.encoder(LAYOUT, RULE, K).encode(tensors(LAYOUT, 2), None)
    proposal = state.offer(0, encoded)
    assert proposal.root == residual_root(encoded.u.numpy())
    assert device.asked == [TILE_BYTES]
    assert proposal.copied is not None
    assert torch.equal(torch.from_numpy(state.entry().u), encoded.u)


@pytest.mark.cuda
def test_tensors_of_another_device_are_hashed_by_the_host(device):
    path = device.path()
    elsewhere = path_with(replace(path.kernels, device_type="cuda"))
    assert replica(elsewhere).pieces() == replica(TORCH).pieces()
    assert device.asked == []
