"""Any kernels beside torch: the same weights, places and signs, whatever shape, layout or tie.

Owns: drawn shapes, tensors in odd layouts, the properties that every kind of kernels has, and
kernels that are broken.
Never: knows how a kind computes. Next: the tests of each kind in `tests/unit/compression`.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

from support import reference
from troth_attestation import bulk
from troth_attestation.sizes import TILE_COEFFICIENTS
from troth_client.compression import apply, known_answer
from troth_client.compression.codec import VerifiedPayload, decode, encode
from troth_client.compression.encoder import Encoder
from troth_client.compression.errors import NonFiniteError
from troth_client.compression.host import leaves_of
from troth_client.compression.kernels.base import Encoded, Kernels
from troth_client.compression.known_answer import ApplyPath
from troth_client.compression.residual import Carried, Residual, flushed
from troth_client.compression.tiles import TileLayout
from troth_client.compression.topk import select
from troth_coordinator.rules.ids import Digest

CPU = torch.device("cpu")
TORCH = known_answer.choose_path("cpu")
A = float(np.uint32(known_answer.DECAY).view(np.float32))
B = float(np.uint32(known_answer.RATE).view(np.float32))
HARD = torch.tensor([0.0, -0.0, 1e-40, -1e-45, 2.0**-126, 1.0, float("inf"), float("nan")])
"""A GPU answers NaN with other bits of it; no run begins with one (`checkpoint/start.py`)."""
RULE = Residual(950_000, 400_000)

_SIDE = st.sampled_from([1, 2, 63, 64, 65, 100, 129])
_SHAPE = st.one_of(
    st.just(()),
    st.tuples(st.integers(1, 200)),
    st.tuples(_SIDE, _SIDE),
    st.tuples(st.integers(1, 3), st.integers(1, 5), _SIDE),
)
SHAPES = st.lists(_SHAPE, min_size=1, max_size=4).map(
    lambda s: {f"t{n}": x for n, x in enumerate(s)}
)
KS = st.sampled_from(reference.ALL_K)
Tensors = dict[str, Tensor]


def path_with(kernels: Kernels | None, device: torch.device = CPU, note: str = "") -> ApplyPath:
    """Return a path with these kernels, whatever the known-answer test says."""
    seal = known_answer._MADE_HERE
    return ApplyPath(device, torch.float64, "", (kernels, note), seal=seal)


def tensors(layout: TileLayout, seed: int, scale: float = 1.0) -> Tensors:
    """Return random tensors of a layout."""
    draw = torch.Generator().manual_seed(seed)
    return {n: torch.randn(s, generator=draw) * scale for n, s in layout.shapes.items()}


def strided(given: Tensors, step: int) -> Tensors:
    """The same values at every `step`-th place of a larger memory, transposed where possible."""
    found = {}
    for name, values in given.items():
        memory = torch.full(
            (*values.T.shape, step) if values.ndim == 2 else (*values.shape, step), 7.0
        )
        view = memory[..., 0].T if values.ndim == 2 else memory[..., 0]
        found[name] = view.copy_(values)
    return found


def moved(given: Tensors, device: torch.device) -> Tensors:
    """Return tensors on a device; the same ones if they are there."""
    return {name: values.to(device) for name, values in given.items()}


def carried(u: Tensor, k: int) -> Carried:
    """Return a momentum from u that keeps less of k places of each tile: any, not the largest."""
    draw = torch.Generator().manual_seed(k)
    places = torch.rand(len(u), 4096, generator=draw).topk(k).indices.sort().values
    return Carried(u, places.to(torch.int16).numpy())


def momentum_of(rule: Residual, held: Carried) -> Tensor:
    """Return M as a tensor of its own: u, of whose top k the rule keeps a share."""
    momentum = held.u.clone()
    rows = momentum.view(-1, TILE_COEFFICIENTS)
    indices = torch.from_numpy(held.indices).long()
    return rows.scatter_(1, indices, flushed(rows.gather(1, indices) * rule.kept)).view_as(held.u)


def payload(seed: int, tiles: int, k: int, absent: set[int] | tuple[()] = ()) -> VerifiedPayload:
    """Return the checked payload of a random u; absent tiles are zero in it."""
    u = torch.randn(tiles, 64, 64, generator=torch.Generator().manual_seed(seed))
    u[list(absent)] = 0
    return decode(encode(select(u, k)), tiles, k)


def hashed_here(given: Iterable[Tensor], leaf_bytes: int) -> list[Digest]:
    """Return the leaf hashes of tensors of the processor, one tensor after another, by the host."""
    return bulk.leaf_hashes(leaves_of((one.contiguous().numpy() for one in given), leaf_bytes))


def bits(tensor: Tensor) -> list[int]:
    """Return the values as integers, so that NaN, -0.0 and +0.0 compare."""
    found: list[int] = tensor.detach().cpu().contiguous().numpy().view(np.int32).tolist()
    return found


def same(found: Encoded, expected: Encoded) -> None:
    """Assert that two encodings are equal to the bit."""
    assert bits(found.u) == bits(expected.u)
    assert found.top.indices.tolist() == expected.top.indices.tolist()
    assert found.top.negative.tolist() == expected.top.negative.tolist()
    assert found.is_sent.tolist() == expected.is_sent.tolist()


def step_is_that_of_torch(
    path: ApplyPath, shapes: dict[str, tuple[int, ...]], k: int, data: st.DataObject
) -> None:
    """Assert that a step gives the weights of torch, in any memory layout."""
    layout = TileLayout.from_shapes(shapes)
    seed, decay = data.draw(st.integers(0, 99)), data.draw(st.sampled_from([1.0, A]))
    peers, step = data.draw(st.integers(0, 16)), data.draw(st.integers(1, 2))
    absent = data.draw(st.sets(st.integers(0, layout.num_tiles - 1)))
    included = [payload(seed + n, layout.num_tiles, k, absent) for n in range(peers)]
    start = tensors(layout, seed)
    for weight in start.values():
        hard = HARD if path.device == CPU else HARD[:-1]
        weight.view(-1)[: len(hard)] = hard[: weight.numel()]
    one, other = strided(start, 1), moved(strided(start, step), path.device)
    apply.update(one, [*included, None], layout, (decay, B), TORCH)
    apply.update(other, [*included, None], layout, (decay, B), path)
    assert {n: bits(w) for n, w in one.items()} == {n: bits(w) for n, w in other.items()}


def encoding_is_that_of_torch(
    path: ApplyPath, shapes: dict[str, tuple[int, ...]], k: int, data: st.DataObject
) -> None:
    """Assert that for the same D(g) the kernels choose as torch does, in place or not."""
    layout = TileLayout.from_shapes(shapes)
    seed, is_zero = data.draw(st.integers(0, 99)), data.draw(st.booleans())
    gradient = tensors(layout, seed)
    gradient[next(iter(gradient))].zero_()
    gradient = moved(strided(gradient, data.draw(st.integers(1, 2))), path.device)
    own, plain = Encoder(layout, RULE, k, path.kernels), Encoder(layout, RULE, k)
    draw = torch.Generator().manual_seed(seed)
    before = carried(torch.randn(layout.num_tiles, 64, 64, generator=draw).round(), k)  # many ties
    coefficients = own.encode(gradient, None).u.cpu()
    expected = plain.encode_tiles(coefficients, None if is_zero else before)
    there = None if is_zero else replace(before, u=before.u.to(path.device, copy=True))
    same(own.encode(gradient, there), expected)
    assert there is None or bits(there.u) == bits(before.u)
    found = own.encode(gradient, there, in_place=True)
    same(found, expected)
    assert there is None or found.u.data_ptr() == there.u.data_ptr()


def too_many_signs_go_through_torch(path: ApplyPath) -> None:
    """Assert that a step with more signs than the kernels take is that of torch, unasked."""
    assert path.kernels is not None
    layout = TileLayout.from_shapes({"w": (64, 64)})
    included = [payload(1, 1, 64)] * (path.kernels.max_fields // 64 + 1)
    one, other = {"w": torch.ones(64, 64)}, {"w": torch.ones(64, 64, device=path.device)}
    refusing = replace(path.kernels, update=lambda *_: pytest.fail("asked"))
    apply.update(one, included, layout, (A, B), TORCH)
    apply.update(other, included, layout, (A, B), path_with(refusing, path.device))
    assert bits(one["w"]) == bits(other["w"])


def values_that_are_not_finite_are_refused(
    kernels: Kernels | None, bad: float, device: torch.device = CPU
) -> None:
    """Assert that the tiles of a bad gradient and a bad momentum are named, and that both stay."""
    layout = TileLayout.from_shapes({"w": (320, 64), "norm": (9,)})
    gradient, before = tensors(layout, 1), torch.ones(6, 64, 64, device=device)
    gradient["w"][150, 3] = bad
    encoder, there = Encoder(layout, RULE, 4, kernels), moved(gradient, device)
    with pytest.raises(NonFiniteError, match=r"in 1 tile\(s\), the first is tile 2"):
        encoder.encode(there, carried(before, 4))
    assert bool((before == 1).all())
    before[4, 1, 1] = bad
    with pytest.raises(NonFiniteError, match=r"in 2 tile\(s\), the first is tile 2"):
        encoder.encode(there, carried(before, 4))


def one_bit_off(way: Callable[..., None]) -> Callable[..., None]:
    """Steps that get one weight wrong, by its last bit."""

    def broken(*arguments: Tensors) -> None:
        way(*arguments)
        arguments[0]["cut"].view(torch.int32)[69, 64] += 1

    return broken


def deaf_to_signs_of_zeros(way: Callable[..., None]) -> Callable[..., None]:
    """Steps that leave a weight of -0.0 as it is where b is zero, as numba's kernel once did."""

    def broken(*arguments: Any) -> None:
        before = {name: weight.clone() for name, weight in arguments[0].items()}
        way(*arguments)
        if arguments[3][1] == 0:
            for name, weight in arguments[0].items():
                weight.copy_(torch.where(before[name] == 0, before[name], weight))

    return broken


def greedy(way: Callable[..., Encoded]) -> Callable[..., Encoded]:
    """Encodings that choose one wrong place."""

    def broken(*arguments: object) -> Encoded:
        found = way(*arguments)
        found.top.indices[1, 63] -= 1
        return found

    return broken
