"""The agreement of all votes with a judge's own gradient, by groups of tiles (protocol section 7).

Owns: the groups of a model's tiles, and the least agreement of a group.
Never: looks at openings: it needs the payload only, so it covers every tile, drawn or not.
Next: `measure.py`, which asks for it where the config has a bound.

A vote of honest work is the sign of u, mostly of the gradient's side; momentum makes it noisy. So
one tile says little, and the mean over a group of them much. Shape legend: T tiles, k entries.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from troth_attestation.pieces import Float32
from troth_attestation.signs import Bools, Signs

Float64 = npt.NDArray[np.float64]
Group = tuple[int, ...]

LEAST_SIZE = 32
MOST_GROUPS = 512
LEAST_COUNTED = 8
"""A group with fewer counted tiles joins the next one."""


def groups(tensor_tiles: Sequence[int]) -> tuple[Group, ...]:
    """Cut the tiles of a model into groups; `tensor_tiles` are the tiles of its matrices, in order.

    A group is max(32, T / 512 rounded up) consecutive tiles of one matrix, the last takes the rest.
    Matrices with fewer tiles are pooled in their order, and cut alike.
    """
    total = sum(tensor_tiles)
    size = max(LEAST_SIZE, -(-total // MOST_GROUPS))
    found: list[Group] = []
    pool: list[int] = []
    first = 0
    for count in tensor_tiles:
        tiles = range(first, first + count)
        first += count
        if count < size:
            pool += tiles
        else:
            found += _cut(tiles, size)
    return (*found, *_cut(pool, size)) if pool else tuple(found)


def least_agreement(
    cut: Sequence[Group], signs: Signs, gradient: Float32, counted: Bools
) -> float | None:
    """Return the lowest mean score of a group; None where too few tiles count.

    `gradient` is fp32 [T, 64, 64]. A tile's score is sum(sign * g) / sum(|g|) over its sent
    entries, 0 where these have no gradient. `counted`, bool [T], are sent tiles above the floor.
    """
    return least_mean(cut, scores_of(signs, gradient), counted)


def scores_of(signs: Signs, gradient: Float32) -> Float64:
    """Return the score of every tile, fp64 [T]; `gradient` is fp32 [T, 64, 64]."""
    rows = gradient.reshape(len(gradient), -1)
    values = np.take_along_axis(rows, signs.indices.astype(np.int64), axis=1).astype(np.float64)
    total = np.abs(values).sum(axis=1)
    agreed = np.where(signs.negative, -values, values).sum(axis=1)
    found: Float64 = np.divide(agreed, total, out=np.zeros_like(total), where=total > 0)
    return found


def least_mean(cut: Sequence[Group], scores: Float64, counted: Bools) -> float | None:
    """Return the lowest mean of a group's scores; None where too few tiles count."""
    means = [float(scores[tiles].mean()) for tiles in _counted(cut, counted)]
    return min(means, default=None)


def _cut(tiles: Sequence[int], size: int) -> Iterator[Group]:
    number = max(1, len(tiles) // size)
    for place in range(number):
        end = (place + 1) * size if place + 1 < number else len(tiles)
        yield tuple(tiles[place * size : end])


def _counted(cut: Sequence[Group], counted: Bools) -> list[list[int]]:
    """Return the counted tiles of each group, small groups joined; a small last one joins back."""
    found: list[list[int]] = []
    pending: list[int] = []
    for group in cut:
        pending += [tile for tile in group if counted[tile]]
        if len(pending) >= LEAST_COUNTED:
            found.append(pending)
            pending = []
    if pending and found:
        found[-1] += pending
    return found
