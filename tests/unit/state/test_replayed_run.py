"""A recorded run of 20 rounds gives the same state roots in every way that a client may take."""

import base64
import json
import lzma
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from support import reference

from troth_attestation.state import state_root
from troth_client.compression.codec import VerifiedPayload, payload_root
from troth_client.compression.known_answer import (
    COMPILED_FROM_TILES,
    ApplyPath,
    choose_path,
    integer_path,
)
from troth_client.model.init import initial_weights
from troth_client.state.audited import AuditedWeights
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.schedule import constants_of

FILE = Path(__file__).parents[2] / "golden/replayed_run.json.xz"
ROUNDS = 20


@dataclass(frozen=True)
class Told:
    """One round of the recording; `root` is that before the round."""

    num_trainers: int
    root: bytes
    payloads: tuple[bytes, ...]


@dataclass(frozen=True)
class Recorded:
    """The recording; `last_root` is that after all rounds."""

    run: bytes
    config: RunConfig
    rounds: tuple[Told, ...]
    last_root: bytes


class Nobody:
    """No source of pieces."""

    def get(
        self,
        kind: str,
        key: bytes,
        most_bytes: int,
        is_right: Callable[[bytes], bool] | None = None,
    ) -> bytes | None:
        return None


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    found = json.loads(lzma.decompress(FILE.read_bytes()))
    rounds = (
        Told(
            one["num_trainers"],
            bytes.fromhex(one["root"]),
            tuple(map(base64.b64decode, one["payloads"])),
        )
        for one in found["rounds"]
    )
    config = RunConfig.model_validate_json(json.dumps(found["config"]))
    run, last = bytes.fromhex(found["run"]), bytes.fromhex(found["last_root"])
    return Recorded(run, config, tuple(rounds), last)


def replay(recorded: Recorded, path: ApplyPath, order: Random | None = None) -> list[bytes]:
    """The root before each round, and the last one, from the payloads alone."""
    with ThreadPoolExecutor(2) as hashers:
        weights = AuditedWeights(recorded.run, recorded.config, Nobody(), hashers, path=path)
        assert weights.take_up(0, 0, recorded.rounds[0].root)
        roots: list[bytes] = [weights.root()]
        for told in recorded.rounds:
            payloads = list(told.payloads)
            if order is not None:
                order.shuffle(payloads)
            weights.apply(told.num_trainers, [decoded(weights, one) for one in payloads])
            roots.append(weights.root())
        return roots


def decoded(weights: AuditedWeights, payload: bytes) -> VerifiedPayload:
    found = weights.decode(payload, payload_root(payload))
    assert isinstance(found, VerifiedPayload)
    return found


def roots_of(recorded: Recorded) -> list[bytes]:
    return [*(told.root for told in recorded.rounds), recorded.last_root]


def test_the_recording_is_small_and_says_something(recorded):
    assert FILE.stat().st_size < 300_000
    assert len(recorded.rounds) == ROUNDS
    assert sum(len(told.payloads) for told in recorded.rounds) >= 2 * ROUNDS
    assert len(set(roots_of(recorded))) == ROUNDS + 1


@pytest.mark.parametrize("threads", [1, 2])
def test_payloads_alone_give_every_root_under_any_number_of_threads(recorded, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert replay(recorded, choose_path("cpu")) == roots_of(recorded)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_payloads_does_not_matter(recorded, seed):
    assert replay(recorded, choose_path("cpu"), Random(seed)) == roots_of(recorded)


def test_int64_gives_the_same_roots(recorded):
    path = integer_path("tested")
    assert path.dtype is torch.int64
    assert replay(recorded, path) == roots_of(recorded)


def test_compiled_kernels_give_the_same_roots(recorded):
    path = choose_path("cpu", num_tiles=COMPILED_FROM_TILES)
    if path.kernels is None:
        pytest.skip(f"no compiled kernels here: {path.note}")
    assert replay(recorded, path) == roots_of(recorded)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device at hand")
@pytest.mark.parametrize("num_tiles", [0, COMPILED_FROM_TILES], ids=["torch", "compiled"])
def test_a_cuda_device_gives_the_same_roots(recorded, num_tiles):
    path = choose_path("cuda", num_tiles=num_tiles)
    assert path.device.type == "cuda"
    assert (path.kernels is not None) == bool(num_tiles), path.note
    assert replay(recorded, path) == roots_of(recorded)


@pytest.mark.long(reason="a whole run in Python integers; test_apply.py has single steps")
def test_numpy_alone_gives_the_same_roots(recorded):
    """A second implementation, in Python integers and numpy, reads the payloads by itself."""
    config, cursor = recorded.config, 0
    weights = dict(initial_weights(recorded.run, config.model))
    shapes = {name: array.shape for name, array in weights.items()}
    num_tiles, places = reference.locate(shapes)
    found = []
    for number, told in enumerate(recorded.rounds):
        found.append(state_root(weights, number, cursor, config.config_hash()))
        signs = [reference.unpack(one, num_tiles, config.demo.k) for one in told.payloads]
        direction = reference.direction(signs, num_tiles).reshape(-1)
        constants = constants_of(config.schedule, number)
        for name, place in places.items():
            d = direction[place].reshape(shapes[name])
            weights[name] = reference.step(weights[name], d, constants.a, constants.b)
            assert weights[name].dtype == np.float32
        cursor += told.num_trainers * config.train.sequences_per_payload
    assert found == [told.root for told in recorded.rounds]


def test_the_state_that_was_remembered_last_comes_back(recorded):
    weights = AuditedWeights(recorded.run, recorded.config, Nobody(), path=choose_path("cpu"))
    assert weights.take_up(0, 0, recorded.rounds[0].root)
    assert not weights.recall(0, 0, recorded.rounds[0].root)
    for told, root in zip(recorded.rounds[:2], roots_of(recorded)[1:], strict=False):
        weights.apply(told.num_trainers, [decoded(weights, one) for one in told.payloads])
        cursor = weights.cursor
        weights.remember()
        weights.apply(1, [decoded(weights, recorded.rounds[2].payloads[0])])
        assert weights.root() != root
        assert not weights.recall(weights.round - 1, cursor, weights.root())
        assert weights.recall(weights.round - 1, cursor, root)
        assert weights.root() == root
