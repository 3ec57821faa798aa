"""While a gradient is encoded and payloads are applied, only choices leave the device."""

import math

import pytest
import torch
from support.kernels import carried
from torch.overrides import TorchFunctionMode

from troth_client.compression import apply, exact, known_answer, topk
from troth_client.compression.codec import decode, encode
from troth_client.compression.encoder import Encoder
from troth_client.compression.residual import Residual
from troth_client.compression.tiles import TileLayout
from troth_client.compression.topk import select

LAYOUT = TileLayout.from_shapes({"w": (200, 130), "norm": (70,)})
LEAVING = (torch.Tensor.cpu, torch.Tensor.numpy, torch.Tensor.tolist)
K = 4


class Departures(TorchFunctionMode):
    """Notes the size of every tensor that is asked for on the host."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in LEAVING or (func is torch.Tensor.to and args[1] == "cpu"):
            self.sizes.append(args[0].numel())
        return func(*args, **(kwargs or {}))


def gradient(seed):
    draw = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=draw) for name, shape in LAYOUT.shapes.items()}


@pytest.fixture
def departures():
    with Departures() as found:
        yield found


def test_encode_shows_its_choice_and_nothing_of_the_size_of_u(departures, monkeypatch):
    # A processor chooses with numpy; here it stands for a device.
    monkeypatch.setattr(topk, "_as_the_judge", topk._on_the_device)
    before = carried(torch.ones(LAYOUT.num_tiles, 64, 64), K)
    departures.sizes.clear()
    Encoder(LAYOUT, Residual(999_000), K).encode(gradient(1), before)
    chosen = LAYOUT.num_tiles * K
    assert sorted(set(departures.sizes)) == [LAYOUT.num_tiles, chosen]


def test_a_step_shows_nothing(departures, monkeypatch):
    # A processor multiplies with numpy; here it stands for a device.
    monkeypatch.setattr(exact, "multiply_here", exact.multiply_there)
    found = Encoder(LAYOUT, Residual(999_000), K).encode(gradient(1), None)
    payload = decode(encode(select(found.u, K)), LAYOUT.num_tiles, K)
    path = known_answer.choose_path("cpu")
    departures.sizes.clear()
    weights = gradient(2)
    apply.update(weights, [payload], LAYOUT, (1.0, 2.0**-10), path)
    assert departures.sizes == []


def test_a_copy_of_u_would_be_noticed(departures):
    torch.zeros(LAYOUT.num_tiles, 64, 64).cpu().numpy()
    torch.zeros(7).to("cpu")
    assert departures.sizes == [math.prod((LAYOUT.num_tiles, 64, 64))] * 2 + [7]
