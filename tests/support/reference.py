"""An independent, slow and plain reading of protocol sections 5.1 to 5.5, for tests to agree with.

Owns: nothing that ships. Never: imports the code under test; numpy and Python integers only.
"""

import hashlib
import itertools
import math
from decimal import Decimal, getcontext
from functools import cache

import numpy as np

Signs = list[tuple[bool, list[int], list[bool]]]
"""Present, indices and negative of each tile of one payload."""

TILE = 64
LEAF_BYTES = 1024
ALL_K = (1, 2, 4, 8, 16, 32, 64)


@cache
def basis() -> list[list[int]]:
    """B with 50 decimal digits of cosine, so that no rounding of libm can matter."""
    getcontext().prec = 50
    return [[_entry(i, j) for j in range(TILE)] for i in range(TILE)]


def _entry(i: int, j: int) -> int:
    if i == 0:
        return 2**14 // 8
    exact = 2**14 * Decimal(2).sqrt() / 8 * _cos(Decimal((2 * j + 1) * i) / 128 * _pi())
    return int(exact.to_integral_value(rounding="ROUND_HALF_EVEN"))


def _pi() -> Decimal:
    """Machin: pi = 16 atan(1/5) - 4 atan(1/239)."""

    def atan_inverse(n: int) -> Decimal:
        terms = (Decimal((-1) ** i) / ((2 * i + 1) * Decimal(n) ** (2 * i + 1)) for i in range(40))
        return sum(terms, Decimal(0))

    return 16 * atan_inverse(5) - 4 * atan_inverse(239)


def _cos(x: Decimal) -> Decimal:
    x %= 2 * _pi()
    term = total = Decimal(1)
    for n in range(1, 60):
        term *= -x * x / ((2 * n - 1) * (2 * n))
        total += term
    return total


def locate(shapes: dict[str, tuple[int, ...]]) -> tuple[int, dict[str, np.ndarray]]:
    """Number of tiles, and for each tensor the flat position of each of its elements."""
    places: dict[str, np.ndarray] = {}
    first = 0
    names = sorted(shapes, key=lambda name: name.encode())

    def position(rows: np.ndarray, columns: np.ndarray, tile_columns: int) -> np.ndarray:
        tile = first + rows // TILE * tile_columns + columns // TILE
        found: np.ndarray = tile * TILE * TILE + rows % TILE * TILE + columns % TILE
        return found

    for name in (n for n in names if len(shapes[n]) >= 2):
        rows, columns = math.prod(shapes[name][:-1]), shapes[name][-1]
        grid = np.indices((rows, columns))
        tile_columns = math.ceil(columns / TILE)
        places[name] = position(grid[0], grid[1], tile_columns).reshape(shapes[name])
        first += math.ceil(rows / TILE) * tile_columns
    at = 0
    for name in (n for n in names if len(shapes[n]) < 2):
        numbers = np.arange(at, at + math.prod(shapes[name]))
        places[name] = position(numbers // TILE, numbers % TILE, 1).reshape(shapes[name])
        at += len(numbers)
    return first + math.ceil(at / TILE / TILE), places


def choose(tile: np.ndarray, k: int) -> tuple[bool, list[int], list[bool]]:
    """Present, indices, negative of one tile on a zero residual."""
    values = [float(x) for x in tile.reshape(-1)]
    if max(map(abs, values)) < 2.0**-40:
        return False, [0] * k, [False] * k
    best = sorted(range(len(values)), key=lambda i: (-abs(values[i]), i))[:k]
    return True, sorted(best), [values[i] < 0 for i in sorted(best)]


def pack(chosen: Signs, k: int) -> bytes:
    """Payload bytes of the signs of all tiles."""
    per_leaf = 8 * LEAF_BYTES // (13 * k + 1)
    out = b""
    for first in range(0, len(chosen), per_leaf):
        part = chosen[first : first + per_leaf]
        bits: list[int] = [present for present, _, _ in part]
        bits += [index >> n & 1 for _, indices, _ in part for index in indices for n in range(12)]
        bits += [sign for _, _, signs in part for sign in signs]
        out += sum(int(bit) << n for n, bit in enumerate(bits)).to_bytes(LEAF_BYTES, "little")
    return out


def unpack(data: bytes, num_tiles: int, k: int) -> Signs:
    """Signs of all tiles; ValueError with the set of the rules of section 5.4 that are broken."""
    per_leaf = 8 * LEAF_BYTES // (13 * k + 1)
    if len(data) != math.ceil(num_tiles / per_leaf) * LEAF_BYTES:
        raise ValueError({"length"})
    chosen, broken = [], set()
    for leaf, first in enumerate(range(0, num_tiles, per_leaf)):
        m = min(per_leaf, num_tiles - first)
        stream = int.from_bytes(data[leaf * LEAF_BYTES : (leaf + 1) * LEAF_BYTES], "little")

        def field(at: int, width: int, stream: int = stream) -> int:
            return stream >> at & ((1 << width) - 1)

        if stream >> (m * (13 * k + 1)):
            broken.add("padding")
        for tile in range(m):
            indices = [field(m + 12 * (tile * k + n), 12) for n in range(k)]
            signs = [bool(field(m + 12 * m * k + tile * k + n, 1)) for n in range(k)]
            if not field(tile, 1) and (any(indices) or any(signs)):
                broken.add("absent")
            if field(tile, 1) and any(b <= a for a, b in itertools.pairwise(indices)):
                broken.add("order")
            chosen.append((bool(field(tile, 1)), indices, signs))
    if broken:
        raise ValueError(broken)
    return chosen


def direction(payloads: list[Signs], num_tiles: int) -> np.ndarray:
    """The sign of B^T C B in Python integers, int8 [num_tiles, 64, 64]."""
    counts = np.zeros((num_tiles, TILE * TILE), object)
    for chosen in payloads:
        for tile, (present, indices, signs) in enumerate(chosen):
            for index, sign in zip(indices, signs, strict=True):
                counts[tile, index] += present * (-1 if sign else 1)
    b = np.array(basis(), object)
    q = [b.T.dot(c.reshape(TILE, TILE)).dot(b) for c in counts]
    return np.array([[(x > 0) - (x < 0) for x in t.reshape(-1)] for t in q], np.int8).reshape(
        num_tiles, TILE, TILE
    )


def step(w: np.ndarray, d: np.ndarray, a: float, b: float) -> np.ndarray:
    """One fp32 weight step in two roundings."""
    return (w * np.float32(a)) - np.float32(b) * d.astype(np.float32)


def merkle_root(leaves: list[bytes]) -> bytes:
    """Root of section 1, recursively."""

    def tagged(tag: str, data: bytes) -> bytes:
        return hashlib.sha256(len(tag).to_bytes(4, "little") + tag.encode() + data).digest()

    def top(nodes: list[bytes]) -> bytes:
        if len(nodes) == 1:
            return nodes[0]
        half = 2 ** ((len(nodes) - 1).bit_length() - 1)  # the left subtree is a full one
        return tagged("troth:node", top(nodes[:half]) + top(nodes[half:]))

    count = len(leaves).to_bytes(8, "little")
    return tagged("troth:merkle", count + top([tagged("troth:leaf", x) for x in leaves]))


def payload_root(data: bytes) -> bytes:
    """Merkle root over 1024-byte leaves."""
    return merkle_root([data[i : i + LEAF_BYTES] for i in range(0, len(data), LEAF_BYTES)])
