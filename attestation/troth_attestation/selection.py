"""The part of a residual that a trainer sends: presence, places and signs, exact (section 5.2).

Owns: numbers that count as zero, the decayed residual, the top k of a tile, whether a tile is sent,
the residual after an included round.
Never: reads openings or payload bytes, compares, or judges. The trainer computes the same on its
device (`troth_client.compression`); tests hold the two together bit for bit.
Next: `work.py`, which compares a payload with what follows from the opened tiles.

All of it is a function of u alone, this round's and the one before. So presence and places can be
checked exactly, whatever gradient the judge itself computed.

Shape legend: n tiles of 4096 coefficients, k of them chosen.
"""

from dataclasses import dataclass

import numpy as np

from troth_attestation.pieces import Float32
from troth_attestation.signs import Bools, Indices, Signs
from troth_attestation.sizes import TILE_COEFFICIENTS
from troth_coordinator.rules.config import MICRO, DemoSection

LEAST_NORMAL = np.float32(2.0**-126)
"""Smaller magnitudes count as zero: some devices flush them."""

_MAGNITUDE = np.int32(0x7FFFFFFF)
_NEGATIVE_ZERO = np.int32(-0x80000000)
_FEW = 64


@dataclass(frozen=True, slots=True)
class TopK:
    """The k entries of largest magnitude of every tile, sent or not.

    indices: int16 [n, k], ascending in each tile; negative: bool [n, k], in their order.
    """

    indices: Indices
    negative: Bools

    def signs(self, is_sent: Bools) -> Signs:
        """Return what a payload holds: the entries of the sent tiles, bool [n]."""
        shown = is_sent[:, None]
        return Signs(is_sent, self.indices * shown, self.negative & shown)


def flush(values: Float32) -> Float32:
    """Return fp32 values with +0 in place of -0 and of everything below the least normal number."""
    flushed = values.copy()
    np.copyto(flushed, np.float32(0), where=np.abs(values) < LEAST_NORMAL)
    return flushed


def top_k(u: Float32, k: int) -> TopK:
    """Choose the k entries of largest |u| in each row of u, fp32 [n, 4096], flushed or not.

    Ties go to the lowest index; u must be finite. The work is done on bits, which order as
    magnitudes do: so subnormal numbers count also on a processor that flushes them.
    """
    bits = np.ascontiguousarray(u).view(np.int32)
    magnitude = bits & _MAGNITUDE
    least = np.partition(magnitude, -k, axis=1)[:, -k, None]
    chosen = magnitude >= least
    places = np.flatnonzero(chosen)
    if len(places) > k * len(u):  # ties for the last entry of a row
        crowded = np.flatnonzero(np.count_nonzero(chosen, axis=1) > k)
        ties = magnitude[crowded] == least[crowded]
        above = chosen[crowded] & ~ties
        room = k - np.count_nonzero(above, axis=1)
        chosen[crowded] = above | (ties & (np.cumsum(ties, axis=1) <= room[:, None]))
        places = np.flatnonzero(chosen)
    indices = places.reshape(len(u), k) % TILE_COEFFICIENTS
    values = np.take_along_axis(bits, indices, axis=1)
    return TopK(indices.astype(np.int16), (values < 0) & (values != _NEGATIVE_ZERO))


def after_included(u: Float32, demo: DemoSection) -> Float32:
    """Return M after an included round: a copy of u, the top k of every tile times 1 - alpha.

    u is flushed fp32 [n, 4096].
    """
    indices = top_k(u, demo.k).indices.astype(np.int64)
    residual = u.copy()
    kept = np.float32((MICRO - demo.alpha_micro) / MICRO)
    values = np.take_along_axis(residual, indices, axis=1) * kept
    np.put_along_axis(residual, indices, flush(values), axis=1)
    return residual


def decayed(residual: Float32, demo: DemoSection) -> Float32:
    """Return b = beta * M: what u would be without a gradient; rounded once, then flushed."""
    return flush(residual * np.float32(demo.beta_micro / MICRO))


def is_sent(u: Float32, without: Float32, floor_log2: int) -> Bools:
    """Return for each tile whether it is sent, bool [n].

    It is if the gradient moved one entry of u from `without`, the decayed residual, by at least
    2^-floor_log2, and u is not all zero. Both are flushed fp32 [n, 4096].
    """
    moved = u - without
    is_far = np.abs(moved, out=moved).max(axis=1) >= np.float32(2.0**-floor_log2)
    found: Bools = is_far & (u != 0).any(axis=1)
    return found


def votes(u: Float32, before: Float32, demo: DemoSection, floor_log2: int) -> Signs:
    """Return what a payload holds of tiles, from their u and the u before, fp32 [n, 4096].

    The same as `top_k(u).signs(is_sent(u, b))`, but b is computed only for few tiles. In most of
    them one of the first entries was moved, whether the round before sent that entry or not.
    """
    u, few = flush(u), flush(before[:, :_FEW])
    kept = flush(few * np.float32((MICRO - demo.alpha_micro) / MICRO))
    ways = [np.abs(u[:, :_FEW] - decayed(one, demo)) for one in (few, kept)]
    sent: Bools = np.minimum(*ways).max(axis=1) >= np.float32(2.0**-floor_log2)
    rest = np.flatnonzero(~sent)
    if len(rest):
        without = decayed(after_included(flush(before[rest]), demo), demo)
        sent[rest] = is_sent(u[rest], without, floor_log2)
    sent &= (u != 0).any(axis=1)
    return top_k(u, demo.k).signs(sent)
