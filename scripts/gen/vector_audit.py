"""Golden vectors of the judge: who is drawn, what is hidden behind a hash, which sketches differ.

Owns: the choice of cases, and definitions written from the protocol alone, slow and plain.
Never: uses the packages. Next: vector_judge.py for what is decided and what it costs.
"""

import hashlib
from collections.abc import Callable, Iterator
from fractions import Fraction

from vector_reference import H, le, merkle, perm, u64
from vector_stream import Stream

Case = tuple[dict[str, object], object]
Cases = Iterator[Case]

STREAM_TAG = b"troth:sketch-stream"


def x(tag: str, seed: bytes, *fields: bytes) -> int:
    """First 8 bytes, little-endian, of H."""
    return int.from_bytes(H(tag, seed, *fields)[:8], "little")


def bits(bitmap: int) -> list[int]:
    """Return the indices of a bitmap."""
    return [i for i in range(64) if bitmap >> i & 1]


def audit_sample(s: Stream) -> Cases:
    """Draw targets: every rate, limits that bite, the doubled round, those on probation."""
    for number in range(90):
        sigma, included, is_new = s.bytes(32), s.bits(64), s.bits(64) & s.bits(64)
        due = s.bits(64) & s.bits(64) & s.bits(64) & s.bits(64) if number % 3 else 0
        given = {
            "sigma": sigma.hex(),
            "included": included,
            "is_new": is_new,
            "on_probation": due,
            "p_base_ppm": (0, 50_000, 100_000, 300_000, 10**6)[number % 5],
            "p_new_ppm": (500_000, 10**6, 300_000)[number % 3],
            "limit": (1, 2, 4, 15, 64)[number // 5 % 5],
            "is_doubled": number % 7 == 0,
        }
        first, drawn = [], []
        for i in bits(included):
            p = int(str(given["p_new_ppm" if is_new >> i & 1 else "p_base_ppm"]))
            p = min(10**6, 2 * p) if given["is_doubled"] else p
            value = x("troth:sample", sigma, le(i, 2))
            if due >> i & 1:
                first.append((value, i))
            elif Fraction(value, 2**64) < Fraction(p, 10**6):
                drawn.append((Fraction(value, p), i))
        ordered = [i for _, i in sorted(first)] + [i for _, i in sorted(drawn)]
        yield given, sorted(ordered[: int(str(given["limit"]))])


def audit_limit(s: Stream) -> Cases:
    """Limit the audits of a round: newcomers around one half, witnesses around each third."""
    for number in range(60):
        width = (3, 4, 8, 64)[number % 4]
        trainers, is_new = s.bits(width), s.bits(width)
        eligible = 2 ** (number % 20) - 1 if number % 5 else s.bits(64)
        cap = (0, 1, 2, 4, 15, 64)[number % 6]
        new, old = len(bits(trainers & is_new)), len(bits(trainers & ~is_new))
        load = (1, 1, 3, 15)[number // 4 % 4]
        given = {"cap": cap, "trainers": trainers, "is_new": is_new, "eligible": eligible}
        judged = int(Fraction(len(bits(eligible)) * load, 3))
        yield given | {"seat_load": load}, min(cap * (2 if new > old else 1), max(1, judged))


def eligible_at_open(s: Stream) -> Cases:
    """Fix who may be seated: founders, newcomers, short benches, nobody."""
    for number in range(60):
        count = (0, 1, 4, 5, 6, 9, 64)[number % 7]
        span = (1, 3, 30, 600)[number % 4]
        seen = [
            (i, s.below(span), s.below(span)) for i in sorted({s.below(64) for _ in range(count)})
        ]
        after = (0, 1, 20)[number % 3]
        earned = [i for i, served, joined in seen if served >= after or served >= joined]
        most = sorted((-served, i) for i, served, _ in seen if i not in earned)
        chosen = earned + [i for _, i in most[: max(0, 5 - len(earned))]]
        given = {"witnesses": [list(one) for one in seen], "seat_after": after}
        yield given, sum(1 << i for i in chosen)


def audit_seats(s: Stream) -> Cases:
    """Seats in order, from too few eligible ones to all."""
    for number in range(40):
        sigma, target = s.bytes(32), s.below(64)
        eligible = s.bits(64) if number % 2 else s.bits(64) & s.bits(64) & s.bits(64) & s.bits(64)
        eligible = (
            (2**64 - 1, 0, 1 << target | 3, 1 << target | 7)[number] if number < 4 else eligible
        )
        others = [j for j in bits(eligible) if j != target]
        order = sorted(others, key=lambda j: (x("troth:seat", sigma, le(target, 2), le(j, 2)), j))
        given = {"sigma": sigma.hex(), "target": target, "eligible": eligible}
        yield given, order[:7] if len(order) >= 3 else []


def audit_jury(s: Stream) -> Cases:
    """Juries: without the seats, filled up with seats of both kinds, too small ones."""
    for number in range(60):
        seed, width = s.bytes(32), (64, 16, 10, 8, 6, 4)[number % 6]
        eligible = s.bits(width) | s.bits(width)
        barred = [s.below(width) for _ in range(1 + number % 2)]
        seats = [s.below(width) for _ in range(5)]
        if number < 8:  # Three to six remain beside the seats: the edge, on both sides.
            eligible, barred, seats = 2 ** (7 + number % 4) - 1, [0], [1, 2, 3]
        accusers = [j for j in seats if s.below(2)]
        order = sorted(bits(eligible), key=lambda j: (x("troth:committee", seed, le(j, 2)), j))
        able = [j for j in order if j not in barred]
        pool = [j for j in able if j not in seats]
        filling = [j for j in able if j in seats and j not in accusers]
        filling += [j for j in able if j in seats and j in accusers]
        pool += filling[: max(0, 5 - len(pool))]
        given = {"seed": seed.hex(), "eligible": eligible, "barred": barred, "seats": seats}
        drawn = [j for j in order if j in pool]
        yield given | {"accusers": accusers}, drawn[:7] if len(drawn) >= 3 else []


def audit_case_seed(s: Stream) -> Cases:
    """Seeds of cases."""
    for target, kind in ((0, 0), (63, 3), (7, 1)):
        slot_hash, run, round_ = s.bytes(32), s.bytes(32), s.bits(64)
        given = {"slot_hash": slot_hash.hex(), "run": run.hex(), "round": round_}
        fields = (slot_hash, run, u64(round_), le(target, 2), le(kind, 1))
        yield given | {"target": target, "kind": kind}, H("troth:case", *fields).hex()


def audit_tiles(s: Stream) -> Cases:
    """Draw tiles: fewer than are asked for, exactly as many, many."""
    for num_tiles in (1, 2, 12, 31, 32, 33, 64, 65, 244, 1_000_003, 2**40 + 1):
        for count in (1, 32, 64):
            sigma, target = s.bytes(32), s.below(64)
            key = H("troth:tile", sigma, le(target, 2))
            drawn = [perm(q, num_tiles, key) for q in range(min(count, num_tiles))]
            given: dict[str, object] = {"sigma": sigma.hex(), "target": target}
            yield given | {"num_tiles": num_tiles, "count": count}, sorted(drawn)


def audit_openings_root(s: Stream) -> Cases:
    """Roots over bytes around the piece size."""
    for size in (1, 16_384, 16_385, 40_000):
        data = (s.bytes(32) * (size // 32 + 1))[:size]
        leaves = [data[at : at + 16_384] for at in range(0, size, 16_384)]
        yield {"repeated": data[:32].hex(), "size": size}, merkle(leaves).hex()


def audit_verdict(s: Stream) -> Cases:
    """Commit to verdicts."""
    for kind in (1, 2, 3, 4):
        given: dict[str, object] = {"run": s.bytes(32).hex(), "round": s.bits(64)}
        given |= {"target": s.below(64), "witness": s.below(64), "kind": kind}
        given |= {name: s.bytes(32).hex() for name in ("evidence", "sketch_hash", "salt")}
        raw = [bytes.fromhex(str(given[n])) for n in ("run", "evidence", "sketch_hash", "salt")]
        numbers = (int(str(given["round"])), int(str(given["target"])), int(str(given["witness"])))
        who = (u64(numbers[0]), le(numbers[1], 2), le(numbers[2], 2), le(kind, 1))
        yield given, H("troth:verdict", raw[0], *who, *raw[1:]).hex()


def audit_vote(s: Stream) -> Cases:
    """Commit to votes of a jury, in every kind of case."""
    for kind in (1, 2, 3, 4):
        run, evidence, salt, sketch_hash = (s.bytes(32) for _ in range(4))
        round_, target, witness = s.bits(64), s.below(64), s.below(64)
        given = {"run": run.hex(), "round": round_, "target": target, "witness": witness}
        given |= {"case_kind": 4 - kind, "kind": kind}
        given |= {"evidence": evidence.hex(), "sketch_hash": sketch_hash.hex(), "salt": salt.hex()}
        about = (u64(round_), le(target, 2), le(4 - kind, 1), le(witness, 2), le(kind, 1))
        yield given, H("troth:vote", run, *about, evidence, sketch_hash, salt).hex()


def sketch_pair(s: Stream) -> Cases:
    """Hash two sketches, and tell whether they differ: both sides of the edge, the extremes."""
    low, high = -(2**31), 2**31 - 1
    pairs = [
        ([0] * 64, [0] * 64, 2_500),
        ([0] * 64, [0] * 63 + [1], 25),
        ([low] * 64, [high] * 64, 2_500),
        ([low] * 64, [low] * 64, 2_500),
        ([low] * 64, [low // 10 * 9] * 64, 100),
        # Norm 100 * 64, distance 64: the edge itself agrees, one more on one side differs.
        ([10] * 64, [9] * 64, 100),
        ([9] * 64, [10] * 64, 100),
        ([10] * 64, [9] * 63 + [8], 100),
        ([-10] * 64, [-9] * 64, 100),
        # The same edge at the two ends of what a run may choose, and beside the last one.
        ([10] * 64, [8] * 64, 25),
        ([10] * 64, [8] * 63 + [7], 25),
        ([50] * 64, [49] * 64, 2_500),
        ([50] * 64, [49] * 63 + [48], 2_500),
        ([50] * 64, [49] * 64, 2_501),
    ]
    for width in (3, 8, 20, 31, 32):
        first = [s.below(2**width) - 2 ** (width - 1) for _ in range(64)]
        noise = [s.below(max(1, 2**width // 8)) - 2**width // 16 for _ in range(64)]
        second = [min(high, max(low, a + b)) for a, b in zip(first, noise, strict=True)]
        pairs += [(first, second, 100), (first, second, 25), (first, second, 2_500)]
        pairs += [(second, [-value for value in second[:-1]] + [0], 100)]
    for first, second, factor in pairs:
        distance = sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
        norm = max(sum(a * a for a in first), sum(b * b for b in second))
        hashes = [
            H("troth:sketch", b"".join(le(v, 4) for v in one)).hex() for one in (first, second)
        ]
        given = {"first": first, "second": second, "factor": factor}
        yield given, {"differ": distance > Fraction(norm, factor), "hashes": hashes}


def audit_sketch(s: Stream) -> Cases:
    """Sketches of small integers times a power of two, so that no sum rounds; one saturates."""
    for size, shift in ((1, 23), (255, 25), (256, 24), (257, 27), (2_000, 26), (40, 0)):
        sigma, target = s.bytes(32), s.below(64)
        numerators = [s.below(20_000) - 10_000 for _ in range(size)]
        name = le(len(STREAM_TAG), 4) + STREAM_TAG + sigma + le(target, 2) + u64(0)
        totals = [0] * 64
        for byte, value in zip(hashlib.shake_128(name).digest(size), numerators, strict=True):
            totals[byte % 64] += -value if byte // 64 % 2 else value
        exact = [Fraction(total * 2**23, 2**shift) for total in totals]
        sketch = [max(-(2**31), min(2**31 - 1, round(value))) for value in exact]
        hash_ = H("troth:sketch", b"".join(le(value, 4) for value in sketch))
        given = {"sigma": sigma.hex(), "target": target, "shift": shift, "numerators": numerators}
        yield given, {"sketch": sketch, "hash": hash_.hex()}


RUST: tuple[Callable[[Stream], Cases], ...] = (
    audit_sample,
    audit_limit,
    eligible_at_open,
    audit_seats,
    audit_jury,
    audit_case_seed,
    audit_verdict,
    audit_vote,
    sketch_pair,
)
PYTHON: tuple[Callable[[Stream], Cases], ...] = (audit_tiles, audit_openings_root, audit_sketch)
