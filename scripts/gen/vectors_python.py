"""Golden vectors that only Python reads: what the program never computes.

Owns: the choice of cases for trees, orders, constants, roots and headers.
Never: uses the packages; vector_reference.py defines the answers. Next: vectors.py.
"""

import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import prod
from types import ModuleType

import vector_reference as ref
from blake3 import blake3
from vector_reference import NONE, H, u64, var
from vector_stream import Stream

Case = tuple[dict[str, object], object]
Cases = Iterator[Case]

SCHEDULES = (
    {"lr_nano": 1_000_000, "warmup_rounds": 10, "decay_from_round": 60, "rounds": 100},
    {"lr_nano": 999_999_999, "warmup_rounds": 3, "decay_from_round": 3, "rounds": 10},
    {"lr_nano": 7, "warmup_rounds": 0, "decay_from_round": 0, "rounds": 3},
    {"lr_nano": 500, "warmup_rounds": 0, "decay_from_round": 40, "rounds": 40},
)


def makers(reference: ModuleType | None) -> tuple[Callable[[Stream], Cases], ...]:
    """Return the generators, after comparing this reference with a third one if there is one."""
    if reference is not None:
        compare(reference)
    return (
        merkle,
        bulk_leaf,
        perm,
        lr,
        fp32,
        step_constants,
        init,
        tensor,
        state,
        pieces,
        residual,
        data,
        possession,
        header,
    )


def merkle(s: Stream) -> Cases:
    """Roots and paths of trees of every small size."""
    for count in (1, 2, 3, 4, 5, 6, 7, 8, 9, 17):
        leaves = [s.bytes(s.below(40)) for _ in range(count)]
        for index in sorted({0, count // 2, count - 1}):
            path = [node.hex() for node in ref.merkle_path(leaves, index)]
            given = {"leaves": [leaf.hex() for leaf in leaves], "index": index}
            yield given, {"root": ref.merkle(leaves).hex(), "path": path}


def bulk_leaf(s: Stream) -> Cases:
    """Hash leaves of tensors and residuals around BLAKE3's blocks and chunks; both full sizes."""
    for size in (1, 63, 64, 65, 1_024, 1_025, 2_049, 16_384, 65_532, 65_536):
        repeated = s.bytes(32)
        data = (repeated * (size // 32 + 1))[:size]
        yield {"repeated": repeated.hex(), "size": size}, ref.bulk_leaf(data).hex()


def perm(s: Stream) -> Cases:
    """Walk the endless order, across data epochs."""
    for n in (1, 2, 3, 4, 5, 16, 17, 1000, 2**20 + 1, 2**40):
        manifest = s.bytes(32)
        positions = [*range(min(n, 12)), n - 1, n, n + 1, 5 * n + 2]
        given = {"num_sequences": n, "manifest_hash": manifest.hex(), "positions": positions}
        yield given, [ref.perm(q, n, manifest) for q in positions]


def lr(s: Stream) -> Cases:
    """Learning rates around each corner of the schedule."""
    for schedule in SCHEDULES:
        corners = {0, schedule["warmup_rounds"], schedule["decay_from_round"], schedule["rounds"]}
        rounds = sorted({max(0, c + d) for c in corners for d in (-2, -1, 0, 1)})
        yield {**schedule, "at": rounds}, [ref.lr_nano(schedule, r) for r in rounds]


def fp32(s: Stream) -> Cases:
    """Nearest fp32 of rationals, ties included."""
    ratios = [(0, 1), (1, 1), (1, 10), (1, 3), (2**24 + 1, 1), (2**24 + 3, 1), (2**25 - 1, 2)]
    ratios += [(10**18 - 100 * 298023224, 10**18), (1, 10**9), (2**23, 2**149)]
    ratios += [((2**24 - 1) * 2**104, 1), (33554431, 2), (2**25 + 1, 2**50)]
    ratios += [(1 + s.bits(1 + s.below(70)), 1 + s.bits(1 + s.below(70))) for _ in range(60)]
    for num, den in ratios:
        out = ref.fp32_of(Fraction(num, den)).hex()
        yield {"numerator": str(num), "denominator": str(den)}, out


def step_constants(s: Stream) -> Cases:
    """Round the constants a and b of a weight step."""
    for rate, decay in ((1_000_000, 0), (1_000_000, 100_000_000), (298_023_224, 100), (0, 5)):
        a = ref.fp32_of(1 - Fraction(rate * decay, 10**18))
        b = ref.fp32_of(Fraction(rate, 10**9))
        yield {"lr_nano": rate, "wd_nano": decay}, {"a": a.hex(), "b": b.hex()}


def init(s: Stream) -> Cases:
    """Draw initial values of tensors."""
    for name, size, std in (("w", 1, 1), ("model.x", 17, 20_000_000), ("é", 9, 10**9)):
        run = s.bytes(32)
        given = {"run": run.hex(), "name": name, "size": size, "std_nano": std}
        yield given, ref.initial(run, name, size, std).hex()


def floats(s: Stream, count: int) -> bytes:
    """Finite fp32 values of ordinary size as bytes."""
    return b"".join(struct.pack("<f", s.below(2**20) / 1024 - 512) for _ in range(count))


def pattern(size: int, seed: int) -> bytes:
    """Make bytes that need not be written down: fp32 of (i * seed) mod 8191."""
    return b"".join(struct.pack("<f", float(i * seed % 8191)) for i in range(size))


def tensor(s: Stream) -> Cases:
    """Tensor roots on either side of a chunk's end; values (i * seed) mod 8191."""
    for size in (1, 16_383, 16_384, 16_385, 40_000):
        given = {"size": size, "seed": 7}
        yield given, ref.tensor_root(pattern(size, 7)).hex()


def state(s: Stream) -> Cases:
    """State roots: names in byte order, scalars, several dimensions, round and cursor."""
    sets = (
        {"w": [2, 3]},
        {"b": [5], "a": [1, 2, 2], "": [], "é": [3], "z": [2], "Z": [1]},
    )
    for shapes in sets:
        for round_, cursor in ((0, 0), (3, 96), (NONE, NONE)):
            config = s.bytes(32)
            tensors = {}
            for name, dims in shapes.items():
                tensors[name] = (dims, floats(s, prod(dims)))
            given = {
                "tensors": {n: {"dims": d, "data": v.hex()} for n, (d, v) in tensors.items()},
                "round": round_,
                "cursor": cursor,
                "config_hash": config.hex(),
            }
            yield given, ref.state_root(tensors, round_, cursor, config).hex()


def pieces(s: Stream) -> Cases:
    """Piece lists on either side of a piece's end; values (i * seed) mod 8191."""
    whole = 16 * 16_384
    sets = (
        {"w": [1]},
        {"w": [16_384, 15]},
        {"w": [whole]},
        {"w": [whole + 1]},
        {"w": [2, whole], "b": [5], "é": [3, whole // 2 - 7]},
    )
    for seed, shapes in enumerate(sets, 3):
        config = s.bytes(32)
        tensors = {n: (dims, pattern(prod(dims), seed)) for n, dims in shapes.items()}
        given = {
            "shapes": shapes,
            "seed": seed,
            "round": seed,
            "cursor": 32 * seed,
            "config_hash": config.hex(),
        }
        out = {
            "list": ref.piece_list(tensors).hex(),
            "root": ref.state_root(tensors, seed, 32 * seed, config).hex(),
        }
        yield given, out


def residual(s: Stream) -> Cases:
    """Residual roots; value i of all tiles is (i * seed) mod 8191; seed 0 is the zero state."""
    for tiles, seed in ((1, 3), (1, 0), (2, 5), (5, 11), (5, 0)):
        root = ref.residual_root(pattern(tiles * 4096, seed))
        yield {"tiles": tiles, "seed": seed}, root.hex()


def data(s: Stream) -> Cases:
    """Roots over assigned sequence ids."""
    for ids in ([0], [5, 3], [1, 2, 3], [2**63, 7, 7, 9, NONE]):
        yield {"ids": ids}, ref.merkle([u64(i) for i in ids]).hex()


def possession(s: Stream) -> Cases:
    """Possession bytes."""
    for held in ([], [0], [1, 5, 63]):
        run, owner, round_ = s.bytes(32), s.bytes(32), s.below(2**64)
        payloads = {i: s.bytes(s.below(200)) for i in held}
        proof = bytearray(64)
        for i, payload in payloads.items():
            key = H("troth:possession", run, u64(round_), owner, ref.le(i, 2))
            proof[i] = blake3(payload, key=key).digest()[0]
        given = {"run": run.hex(), "round": round_, "owner": owner.hex()}
        listed = {str(i): p.hex() for i, p in payloads.items()}
        yield given | {"payloads": listed}, proof.hex()


HEADER_FIELDS = (
    ("genesis_hash", 0),
    ("program_id", 0),
    ("run", 0),
    ("epoch", 4),
    ("round", 8),
    ("index", 2),
    ("owner", 0),
    ("session", 0),
    ("config_hash", 0),
    ("state_root", 0),
    ("data_root", 0),
    ("previous_included", 8),
    ("residual_before", 0),
    ("residual_after", 0),
    ("payload_root", 0),
    ("payload_bytes", 8),
    ("mean_loss", -8),
    ("salt", 0),
)


def header(s: Stream) -> Cases:
    """Header bytes, hashes and what is signed; width 0 is 32 bytes, negative is signed."""
    for number in range(4):
        given: dict[str, object] = {}
        encoded = b""
        for name, width in HEADER_FIELDS:
            if width == 0:
                raw = s.bytes(32)
                given[name] = raw.hex()
            else:
                bits = 8 * abs(width)
                value = s.bits(bits) if number else 0
                value = value - 2 ** (bits - 1) if width < 0 else value
                raw = ref.le(value, abs(width))
                given[name] = value
            encoded += raw
        hash_ = H("troth:header", encoded)
        where = (bytes.fromhex(str(given["run"])), u64(int(str(given["round"]))))
        message = H("troth:commit", *where, ref.le(int(str(given["index"])), 2), hash_)
        yield (
            given,
            {"bytes": encoded.hex(), "hash": hash_.hex(), "signed": message.hex()},
        )


def compare(third: ModuleType) -> None:
    """Raise if a third implementation disagrees with vector_reference.py."""
    import numpy as np  # noqa: PLC0415  only the third implementation needs it

    s = Stream("compare")
    leaves = [s.bytes(9) for _ in range(13)]
    weights = {"b": np.arange(70_000, dtype=np.float32), "a": np.ones((3, 5), np.float32)}
    named = {n: (list(w.shape), w.tobytes()) for n, w in weights.items()}
    run, config = s.bytes(32), s.bytes(32)
    tiles = np.arange(3 * 4096, dtype=np.float32).reshape(3, 64, 64)
    pairs = [
        (third.H("troth:x", var(b"y")), H("troth:x", var(b"y"))),
        (third.merkle_root(leaves), ref.merkle(leaves)),
        (third.state_root(weights, 4, 9, config), ref.state_root(named, 4, 9, config)),
        (third.residual_root(tiles), ref.residual_root(tiles.tobytes())),
        (third.initial(run, "w", (20,), 2 * 10**7).tobytes(), ref.initial(run, "w", 20, 2 * 10**7)),
    ]
    for n in (2, 17, 1000):
        pairs += [(third.perm(q, n, run), ref.perm(q, n, run)) for q in range(3 * n)]
    for num, den in ((1, 3), (10**18 - 7, 10**18), (123_456_789, 10**9)):
        pairs.append((third.nearest_fp32(num, den).tobytes(), ref.fp32_of(Fraction(num, den))))
    for number, (theirs, ours) in enumerate(pairs):
        if theirs != ours:
            raise SystemExit(f"comparison {number}: expected {theirs!r}, found {ours!r}")
    print(f"equal to the third implementation in {len(pairs)} comparisons")
