"""Golden vectors of the tests of work: what a trainer sends, and what a judge makes of it.

Owns: the choice of cases, and definitions in exact fractions, written from the protocol alone.
Never: uses the packages. Next: vectors_python.py, which lists the generators.

A tile is sparse here: index -> bit pattern of an fp32 number; every other entry is +0.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction

from vector_reference import fp32_of, value_of
from vector_stream import Stream

Case = tuple[dict[str, object], object]
Cases = Iterator[Case]
Tile = dict[int, int]
Tiles = tuple[Tile, Tile, Tile]
"""g, u and the u before of one tile."""

SIGN = 1 << 31
LEAST_NORMAL = 1 << 23
ONE = 127 << 23
SECONDS = SAME, SHOWN, FAR = "same", "shown", "far"


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


def audit_work(s: Stream) -> Cases:
    """Whole audits of a few tiles: every test, both sides of its bounds, a second computation."""
    one = Fraction(1)
    for error in (0, 29, 31, 99, 101):
        yield _audit([_tile(one, Fraction(error, 1000)) for _ in range(5)], None)
    for error in (31, 99, 101, 250, 499, 501):
        for second in SECONDS:
            yield _audit([_tile(one, Fraction(error, 1000)) for _ in range(5)], second)
    for errors in ([119] * 3, [121] * 3, [179] * 6, [181] * 5, [181] * 6, [499] * 2, [501]):
        yield _audit(_beside(errors, 16), SAME)
    for errors in ([501] * 3, [2999], [3001], [181] * 6, [3001, 3001, 3001]):
        for second in SECONDS:
            yield _audit(_beside(errors, 16), second)
    for residual in (19, 21, 199, 201):
        yield _audit([_tile(one, Fraction(0), residual) for _ in range(5)], None)
        yield _audit([_tile(one, Fraction(0), residual * (n < 1)) for n in range(9)], None)
        yield _audit([_tile(one, Fraction(0), residual * (n < 3)) for n in range(9)], None)
    yield _audit([_tile(one, Fraction(0), 61 * (n < 3)) for n in range(9)], None)
    for exponent in (39, 41, 42, 44, 45, 47):
        small = Fraction(1, 2**exponent)
        for idle in (1, 3):
            # The trainer's noise stands on 2^-39; the judge has less, or nothing, or as much.
            tiles = [_tile(small, Fraction(1, 2**39) / small) for _ in range(idle)]
            yield _audit([*tiles, *(_tile(one, Fraction(0)) for _ in range(7))], SAME)
    yield _audit([_tile(Fraction(0), Fraction(0)) for _ in range(3)], None)
    for n in (1, 2, 3):
        yield _audit([_tile(one, Fraction(501, 1000)) for _ in range(n)], SAME)


def agreement(s: Stream) -> Cases:
    """Cut models of every size into groups; find the least agreement over counted tiles."""
    models = ([1], [12], [31, 32, 33], [64, 5, 100, 6], [20, 20, 24], [40] * 3, [32 * 600, 7])
    for tensor_tiles in models:
        groups = _groups(tensor_tiles)
        count = min(sum(tensor_tiles), 170)
        for most in (1, 3):
            tiles = []
            for _ in range(count):
                values = [[s.below(2), s.below(17) - 8] for _ in range(2)]
                tiles.append([int(s.below(most + 1) > 0), values])
            given: dict[str, object] = {"tensor_tiles": tensor_tiles, "tiles": tiles}
            short = [[tile for tile in group if tile < count] for group in groups]
            least = _least(short, tiles)
            rounded = None if least is None else round(least * 10**6)
            yield given, {"sizes": [len(group) for group in groups], "least": rounded}


def _groups(tensor_tiles: list[int]) -> list[list[int]]:
    size = max(32, -(-sum(tensor_tiles) // 512))
    tensors, first = [], 0
    for count in tensor_tiles:
        tensors.append(list(range(first, first + count)))
        first += count
    pool = [tile for tensor in tensors if len(tensor) < size for tile in tensor]
    found = []
    for tensor in [*(t for t in tensors if len(t) >= size), *([pool] if pool else [])]:
        number = max(1, len(tensor) // size)
        found += [tensor[n * size : (n + 1) * size] for n in range(number - 1)]
        found.append(tensor[(number - 1) * size :])
    return found


def _least(groups: list[list[int]], tiles: list[list[object]]) -> Fraction | None:
    """Return the lowest mean of a group of eight counted tiles or more, groups joined."""
    joined: list[list[Fraction]] = [[]]
    for group in groups:
        joined[-1] += [_score(tiles[tile][1]) for tile in group if tiles[tile][0]]
        if len(joined[-1]) >= 8:
            joined.append([])
    rest = joined.pop()
    if not joined:
        return None
    joined[-1] += rest
    return min(sum(scores, Fraction(0)) / len(scores) for scores in joined)


def _score(votes: object) -> Fraction:
    """Return the share of the gradient on the side of the votes, each [negative, gradient]."""
    assert isinstance(votes, list)
    total = sum(abs(g) for _, g in votes)
    return Fraction(sum(-g if n else g for n, g in votes), total) if total else Fraction(0)


def _beside(errors: list[int], count: int) -> list[Tiles]:
    """Return tiles with these errors in thousandths, and exact ones up to the count."""
    shares = [Fraction(error, 1000) for error in errors] + [Fraction(0)] * (count - len(errors))
    return [_tile(Fraction(1), share) for share in shares]


def _tile(size: Fraction, error: Fraction, residual: int = 0) -> Tiles:
    """Return g, u and the u before of a tile: `error` x |g| at another entry, M of so many |g|."""
    # These two are the top k of the round before, and left the residual with it.
    first = {200 + i: nearest(Fraction(10**6)) for i in range(2)}
    kept = {100: nearest(residual * size)} if residual else {}
    before = (first | kept) if residual else {}
    without = scaled(kept, 950_000, set(kept)) if before else {}
    g = {5: nearest(size)} if size else {}
    return g, {**without, **g, **({9: nearest(error * size)} if error else {})}, before


def _audit(tiles: list[Tiles], kind: str | None) -> Case:
    """Return one audit of all tiles of a model; `kind`: the second computation, if there is one.

    It is the first again, the u that the trainer showed, or three times as far from the first.
    """
    second = None if kind is None else [_second(g, u, kind) for g, u, _ in tiles]
    listed = [[_listed(part) for part in tile] for tile in tiles]
    given: dict[str, object] = {"tiles": listed}
    given["second"] = None if second is None else [_listed(tile) for tile in second]
    return given, _judged(tiles, second)


def _second(g: Tile, u: Tile, kind: str) -> Tile:
    far = {i: nearest(3 * size) for i, size in _minus(u, g).items() if size}
    return {SAME: g, SHOWN: u, FAR: g | far}[kind]


def _judged(tiles: list[Tiles], second: list[Tile] | None) -> dict[str, object]:
    norms = [_norm(g) for g, _, _ in tiles]
    if not any(norms):
        return {"kind": "INCONCLUSIVE", "reason": "ZERO_GRADIENT"}
    middle = _median([norm for norm in norms if norm])
    f = [max(norm, middle * Decimal(1) / 100) for norm in norms]
    residuals = [scaled(before, 0, set(top(before, 2))) for _, _, before in tiles]
    moved = [
        _minus(u, scaled(m, 950_000, set(m))) for (_, u, _), m in zip(tiles, residuals, strict=True)
    ]
    sent = [max(map(abs, one.values()), default=0) >= Fraction(1, 2**40) for one in moved]
    each = range(len(tiles))
    errors = [_size(_less(moved[t], tiles[t][0])) / f[t] for t in each]
    found = {
        "median_error": _median([errors[t] for t in each if norms[t]]),
        "residual_ratio": _median([_norm(residuals[t]) / f[t] for t in each if norms[t]]),
    }
    beside = [_norm(residuals[t]) / max(norms[t], middle) for t in each if sent[t]]
    largest = [max((abs(value(p)) for p in g.values()), default=Fraction(0)) for g, _, _ in tiles]
    is_large = found["median_error"] > Decimal("0.5")
    nothing = [Decimal(0)] * len(tiles)
    lenient = _verdict(
        found, errors, nothing, beside, _idle(sent, largest, 0), median_counts=is_large
    )
    counted, both, median_counts = errors, largest, True
    if second is not None and not any(map(_norm, second)):
        second = None
    if second is not None:
        apart = [_size(_minus(tiles[t][0], second[t])) / f[t] for t in each]
        others = [_size(_less(moved[t], second[t])) / f[t] for t in each]
        least = [min(pair) for pair in zip(errors, others, strict=True)]
        counted = [
            one if one > 4 * two else Decimal(0) for one, two in zip(least, apart, strict=True)
        ]
        median = min(found["median_error"], _median([others[t] for t in each if norms[t]]))
        noise = _median([apart[t] for t in each if norms[t]])
        median_counts = is_large or (median >= Decimal("0.1") and median > 2 * noise)
        there = [max((abs(value(p)) for p in g.values()), default=Fraction(0)) for g in second]
        both = [max(pair) for pair in zip(largest, there, strict=True)]
    strict = _verdict(found, errors, errors, beside, _idle(sent, largest, 46), median_counts=True)
    certain = {**found, "median_error": found["median_error"] if is_large else Decimal(0)}
    best = _verdict(certain, nothing, nothing, beside, (0, 0), median_counts=is_large)
    idle = _idle(sent, both, 46, largest)
    excused = _verdict(found, errors, counted, beside, idle, median_counts=median_counts)
    verdict = strict
    if strict[0] != best[0]:
        if second is not None:
            instead = [(g, *tile[1:]) for g, tile in zip(second, tiles, strict=True)]
            other = _judged(instead, None)
            if other["kind"] == "OK":
                return other
        verdict = lenient if second is None else excused
    rounded = {name: round(number * 10**6) for name, number in found.items()}
    return {"kind": verdict[0], "reason": verdict[1], **rounded}


def _idle(
    sent: list[bool], largest: list[Fraction], log2: int, mildly: list[Fraction] | None = None
) -> tuple[int, int]:
    """Count sent tiles below 2^-43, and surely below 2^-log2; 0 asks for none."""
    limit = Fraction(1, 2**43)
    mild = sum(is_sent and x < limit for is_sent, x in zip(sent, mildly or largest, strict=True))
    if not log2:
        return mild, 0
    sure = [is_sent and x < Fraction(1, 2**log2) for is_sent, x in zip(sent, largest, strict=True)]
    return mild, sum(sure)


def _verdict(
    found: dict[str, Decimal],
    errors: list[Decimal],
    counted: list[Decimal],
    beside: list[Decimal],
    idle: tuple[int, int],
    *,
    median_counts: bool,
) -> tuple[str, str]:
    """Return the worst of all findings, and of equal ones the first."""
    n = len(errors)
    median, ratio = found["median_error"], found["residual_ratio"]

    def beyond(values: list[Decimal], bound: str) -> int:
        return sum(value > Decimal(bound) for value in values)

    tests = (
        ("RESIDUAL_TOO_LARGE", ratio > 200, False),
        ("RESIDUAL_UNUSUAL", False, ratio > 20),
        (
            "RESIDUAL_OF_TILES",
            beyond(beside, "200") >= min(3, n),
            beyond(beside, "200") > 0 or beyond(beside, "60") > 2,
        ),
        ("VOTES_WITHOUT_GRADIENT", idle[1] >= 3, idle[0] > 0),
        (
            "WORK_DIFFERS",
            (median >= Decimal("0.1") and median_counts) or beyond(counted, "0.18") >= min(6, n),
            False,
        ),
        (
            "TILES_FORGED",
            beyond(counted, "3") > 0 or beyond(counted, "0.5") >= min(3, n),
            beyond(errors, "0.5") > 0,
        ),
        ("BETWEEN_BOUNDS", False, median > Decimal("0.03") or beyond(errors, "0.12") > 2),
    )
    for kind, at in (("MISMATCH", 1), ("INCONCLUSIVE", 2)):
        for test in tests:
            if test[at]:
                return kind, str(test[0])
    return "OK", "WORK_MATCHES"


def _minus(first: Tile, second: Tile) -> dict[int, Fraction]:
    places = {*first, *second}
    return {i: value(first.get(i, 0)) - value(second.get(i, 0)) for i in places}


def _less(first: dict[int, Fraction], second: Tile) -> dict[int, Fraction]:
    places = {*first, *second}
    return {i: first.get(i, Fraction(0)) - value(second.get(i, 0)) for i in places}


def _size(entries: dict[int, Fraction]) -> Decimal:
    total = sum((one * one for one in entries.values()), Fraction(0))
    return (Decimal(total.numerator) / Decimal(total.denominator)).sqrt()


def _norm(tile: Tile) -> Decimal:
    return _size(_minus(tile, {}))


def _median(values: list[Decimal]) -> Decimal:
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _listed(tile: Tile) -> list[list[int]]:
    return [[i, tile[i]] for i in sorted(tile)]


PYTHON: tuple[Callable[[Stream], Cases], ...] = (presence, audit_work, agreement)
