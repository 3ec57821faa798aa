"""Our bytes against those of the protocol's reference implementation.

`reference_vectors.json` was written once by that implementation, which is numpy only and shares no
code with this project. Its inputs are drawn from SHAKE-256 as below, so that they need no file.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from troth_client.compression import apply, codec, known_answer
from troth_client.compression.dct import dct2
from troth_client.compression.limits import ALLOWED_K
from troth_client.compression.tiles import TileLayout
from troth_client.compression.topk import select
from troth_coordinator.rules.exact import step_constants

VECTORS = json.loads((Path(__file__).parent / "reference_vectors.json").read_text())
WEIGHT_SHAPES = {"w": (130, 100), "n": (77,)}


def numbers(label, count):
    """Fp32 numbers between -8 and 8 with 12 fractional bits, the same on every machine."""
    raw = hashlib.shake_256(label.encode()).digest(2 * count)
    return np.frombuffer(raw, "<i2").astype(np.float32) / np.float32(4096)


def residual(label, num_tiles):
    """Tiles with ties: one is zero, one nearly, and some hold whole numbers."""
    u = numbers(label, num_tiles * 4096).reshape(num_tiles, 64, 64).copy()
    draw = hashlib.sha256(label.encode()).digest()
    u[draw[0] % num_tiles] = 0
    u[draw[1] % num_tiles, 1:] = 0
    for tile in range(num_tiles):
        if draw[2 + tile % 30] < 77:
            u[tile] = np.round(u[tile])
    return u


def tensors_of(shapes, label):
    return {
        name: torch.from_numpy(numbers(f"{label} {name}", int(np.prod(shape, dtype=int))).copy())
        .reshape(shape)
        .contiguous()
        for name, shape in shapes.items()
    }


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("vector", VECTORS["tiles"], ids=lambda one: "-".join(one["shapes"]))
def test_tiles_both_ways(vector):
    shapes = {name: tuple(shape) for name, shape in vector["shapes"].items()}
    tensors = tensors_of(shapes, "tiles")
    layout = TileLayout.from_shapes(shapes)
    stack = layout.to_tiles(tensors)
    assert len(stack) == vector["num_tiles"]
    assert sha256(stack.numpy().tobytes()) == vector["tiles_sha256"]
    for name, tensor in layout.from_tiles(stack).items():
        assert torch.equal(tensor, tensors[name]), name


def test_every_k_has_vectors():
    assert {vector["k"] for vector in VECTORS["payloads"]} == set(ALLOWED_K)


@pytest.mark.parametrize(
    "vector", VECTORS["payloads"], ids=lambda one: f"{one['num_tiles']}-{one['k']}"
)
def test_payload_bytes_root_and_direction(vector):
    num_tiles, k = vector["num_tiles"], vector["k"]
    decoded = []
    for who, expected in enumerate(vector["payloads"]):
        u = torch.from_numpy(residual(f"payload {num_tiles} {who}", num_tiles))
        data = codec.encode(select(u, k))
        assert len(data) == expected["bytes"]
        assert sha256(data) == expected["sha256"]
        assert codec.payload_root(data).hex() == expected["root"]
        decoded.append(codec.decode(data, num_tiles, k, bytes.fromhex(expected["root"])))
    for path in (known_answer.choose_path("cpu"), known_answer.integer_path("compared")):
        found = apply.direction(decoded, num_tiles, path).numpy()
        assert sha256(found.tobytes()) == vector["direction_sha256"], path


@pytest.mark.parametrize("vector", VECTORS["steps"], ids=lambda one: one["weight_decay_nano"])
def test_weight_step(vector):
    weights = tensors_of(WEIGHT_SHAPES, "weights")
    layout = TileLayout.from_shapes(WEIGHT_SHAPES)
    raw = hashlib.shake_256(b"direction").digest(layout.num_tiles * 4096)
    signs = (np.frombuffer(raw, np.uint8) % 3).astype(np.int8) - 1
    d = torch.from_numpy(signs.reshape(layout.num_tiles, 64, 64))
    constants = step_constants(vector["lr_nano"], vector["weight_decay_nano"])
    apply.step(weights, d, layout, constants.a, constants.b, known_answer.choose_path("cpu"))
    for name, expected in vector["after_sha256"].items():
        assert sha256(weights[name].numpy().tobytes()) == expected, name


def test_transform_is_the_same_up_to_rounding():
    (vector,) = VECTORS["dct"]
    x = torch.from_numpy(numbers("dct", vector["num_tiles"] * 4096).reshape(-1, 64, 64).copy())
    found = dct2(x).numpy()
    for tile in range(vector["num_tiles"]):
        assert np.allclose(found[tile, 0], vector["first_row"][tile], atol=1e-5)
        assert np.allclose(np.diagonal(found[tile]), vector["diagonal"][tile], atol=1e-5)
