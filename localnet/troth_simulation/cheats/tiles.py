"""Cheats about single tiles: a part of the gradient that is left out, forged, or bent.

Owns: plain numpy transformations of D(g), the coefficients that go into the residual.
Never: cuts, transforms, or signs. Next: `work.py` for cheats about whole tensors, `cheat.py`.

They know the judge and its bounds, but not which tiles will be drawn.
"""

from collections.abc import Callable
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from troth_coordinator.rules.config import MICRO, JudgeSection

Tiles = NDArray[np.float32]
"""The coefficients of a gradient, [tiles, 64, 64]."""

PLANTED = 5.0
"""A planted tile has so many times its gradient, and keeps its votes for some rounds."""
SMUGGLED = 1_000.0
TURNS, OF_32 = 6, 12
"""Twelve 32nds of the model are smuggled into, two in a round."""
INSIDE = 0.999
"""The share of a bound that is used up."""
TOUCH = 2.0**-20


def same_tiles(gradient: Tiles) -> Tiles:
    """Return the gradient as it was computed."""
    return gradient


def half_absent(gradient: Tiles) -> Tiles:
    """Claim that every second tile has no gradient: it is not sent, and was not computed."""
    found = gradient.copy()
    found[::2] = 0
    return found


def planted(of_32: int) -> Callable[[Tiles], Tiles]:
    """Send a direction of its own choice in the first so many 32nds of the model."""

    def plant(gradient: Tiles) -> Tiles:
        found = gradient.copy()
        part = slice(0, max(1, len(gradient) * of_32 // 32))
        found[part] = PLANTED * _size(gradient[part]) * _direction()
        return found

    return plant


def smuggled_in_turn(gradient: Tiles) -> Tiles:
    """Fill the residual of two 32nds of the model, in each round two others out of twelve."""
    found = gradient.copy()
    tiles = np.arange(max(1, len(gradient) * OF_32 // 32))
    parts = np.array_split(tiles, min(TURNS, len(tiles)))
    part = parts[crc32(gradient.tobytes()) % len(parts)]
    found[part] = SMUGGLED * _size(gradient[part]) * _direction()
    return found


def smallest_forged(share: float) -> Callable[[Tiles], Tiles]:
    """Forge this share of the tiles, those of the smallest gradients, at their own size."""

    def forge(gradient: Tiles) -> Tiles:
        found = gradient.copy()
        sizes = _size(gradient).reshape(-1)
        count = max(1, round(share * np.count_nonzero(sizes)))
        part = np.argsort(np.where(sizes > 0, sizes, np.inf))[:count]
        found[part] = _size(gradient[part]) * _direction()
        return found

    return forge


def forged_below_floor(gradient: Tiles) -> Tiles:
    """Forge the tiles whose gradient is far below the judge's floor, by what a tile is forgiven.

    An error is measured against the floor there, so that a tile may be forged within its bound.
    """
    found = gradient.copy()
    sizes = _size(gradient).reshape(-1)
    if not sizes.any():
        return found
    judge = JudgeSection()
    floor = judge.gradient_floor_micro / MICRO * np.median(sizes[sizes > 0])
    size = np.float32(INSIDE * judge.tile_bound_micro / MICRO * floor)
    is_small = (sizes > 0) & (sizes < size / 2)
    found[is_small] = gradient[is_small] + size * _direction()
    return found


def touched(gradient: Tiles) -> Tiles:
    """Move one entry of every tile without gradient, so that its old residual votes again."""
    found = gradient.copy()
    found[_size(gradient).reshape(-1) == 0, 0, 0] = TOUCH
    return found


def at_the_edge(judge: JudgeSection) -> Callable[[Tiles], Tiles]:
    """Bend every tile by what the median forgives, and a third by what a single tile may."""

    def bend(gradient: Tiles) -> Tiles:
        share = np.full((len(gradient), 1, 1), INSIDE * judge.ok_bound_micro / MICRO, np.float32)
        share[::3] = INSIDE * judge.tile_bound_micro / MICRO
        return gradient + share * _size(gradient) * _direction()

    return bend


def _size(gradient: Tiles) -> Tiles:
    """Return the norm of every tile, [tiles, 1, 1]."""
    found: Tiles = np.sqrt((gradient.astype(np.float64) ** 2).sum(axis=(1, 2), keepdims=True))
    return found.astype(np.float32)


def _direction() -> Tiles:
    """Return the direction that a cheat wants, [64, 64], norm 1."""
    wanted: Tiles = np.random.default_rng(7).standard_normal((64, 64)).astype(np.float32)
    return wanted / np.float32(np.linalg.norm(wanted))
