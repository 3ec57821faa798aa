"""Golden vectors of the tests of work: what a trainer sends, and what a judge makes of it.

Owns: the choice of cases, and definitions in exact fractions, written from the protocol alone.
Never: uses the packages. Next: vectors_python.py, which lists the generators.

A tile is sparse here: index -> bit pattern of an fp32 number; every other entry is +0.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction

from vector_reference import fp32_of, value_of
from vector_stream import Stream

Case = tuple[dict[str, object], object]
Cases = Iterator[Case]
Tile = dict[int, int]

SIGN = 1 << 31
LEAST_NORMAL = 1 << 23
ONE = 127 << 23


def value(pattern: int) -> Fraction:
    """Exact value of an fp32 bit pattern."""
    size = value_of(pattern & ~SIGN)
    return -size if pattern & SIGN else size


def nearest(number: Fraction) -> int:
    """Bit pattern of the nearest fp32 number, flushed: no subnormal numbers, no -0."""
    pattern = int.from_bytes(fp32_of(abs(number)), "little")
    return 0 if pattern < LEAST_NORMAL else pattern | (SIGN if number < 0 else 0)


def flushed(tile: Tile) -> Tile:
    """Return the tile without subnormal numbers and zeros."""
    return {i: p for i, p in tile.items() if p & ~SIGN >= LEAST_NORMAL}


def top(u: Tile, k: int) -> list[int]:
    """Return the indices of the k largest magnitudes, ties to the lowest index, ascending."""
    rest = [i for i in range(4096) if i not in u][:k]
    return sorted(sorted([*u, *rest], key=lambda i: (-abs(value(u.get(i, 0))), i))[:k])


def scaled(tile: Tile, micro: int, places: set[int]) -> Tile:
    """Multiply the entries at these places by micro / 10^6 as an fp32 factor."""
    factor = value_of(int.from_bytes(fp32_of(Fraction(micro, 10**6)), "little"))
    changed = {i: nearest(value(p) * factor) if i in places else p for i, p in tile.items()}
    return flushed(changed)


def presence(s: Stream) -> Cases:
    """Around the floor, with ties, subnormal numbers, -0, and fewer entries than k."""
    for number in range(48):
        k, floor = (1, 2, 4)[number % 3], (40, 30)[number // 24]
        before = {s.below(4096): s.below(24 << 23) + (100 << 23) | s.below(2) << 31}
        before |= {s.below(4096): (90 << 23) + s.below(8) * (1 << 22) for _ in range(5)}
        before |= {7: s.below(LEAST_NORMAL), 9: SIGN, 11: LEAST_NORMAL + s.below(9)}
        alpha, beta = (10**6, 200_000, 0)[number // 3 % 3], (950_000, 999_999)[number % 2]
        u_before = flushed(before)
        residual = scaled(u_before, 10**6 - alpha, set(top(u_before, k)))
        without = scaled(residual, beta, set(residual))
        least = 127 - floor << 23
        steps = (0, least, least - 1, LEAST_NORMAL, LEAST_NORMAL - 1, ONE, SIGN | least, SIGN)
        after = dict(without) | {13: steps[number % 8]}
        if number % 5 == 0 and without:
            place = min(without)
            after[place] = nearest(value(without[place]) + Fraction(1, 2**floor))
        yield _case(before, after, k, (alpha, beta, floor))
    yield _case({5: ONE, 6: ONE}, {}, 1, (10**6, 950_000, 40))


def _case(before: Tile, after: Tile, k: int, rule: tuple[int, int, int]) -> Case:
    alpha, beta, floor = rule
    first, u = flushed(before), flushed(after)
    residual = scaled(first, 10**6 - alpha, set(top(first, k)))
    without = scaled(residual, beta, set(residual))
    places = {*u, *without}
    change = [value(u.get(i, 0)) - value(without.get(i, 0)) for i in places]
    moved = max((abs(value(nearest(one))) for one in change), default=Fraction(0))
    given: dict[str, object] = {"before": _listed(before), "after": _listed(after), "k": k}
    given |= {"alpha_micro": alpha, "beta_micro": beta, "floor_log2": floor}
    chosen = top(u, k)
    return given, {
        "without": _listed(without),
        "is_sent": bool(u) and moved >= Fraction(1, 2**floor),
        "indices": chosen,
        "negative": [value(u.get(i, 0)) < 0 for i in chosen],
        "next": _listed(scaled(u, 10**6 - alpha, set(chosen))),
    }


def _listed(tile: Tile) -> list[list[int]]:
    return [[i, tile[i]] for i in sorted(tile)]


PYTHON: tuple[Callable[[Stream], Cases], ...] = (presence,)
