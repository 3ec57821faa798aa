"""The rules once more, written from docs/protocol.md alone: slow, plain, independent.

Owns: definitions that the golden vectors are computed with. They share no code with the packages,
so a mistake would have to be made twice, differently.
Never: imported by the packages. Next: vectors.py, which writes the files.
"""

import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import isqrt

from blake3 import blake3

NONE = 2**64 - 1
LEAF_KEY = hashlib.sha256(b"troth:leaf").digest()


def le(value: int, width: int) -> bytes:
    """Little-endian, fixed width, two's complement for negative values."""
    return value.to_bytes(width, "little", signed=value < 0)


def u64(value: int) -> bytes:
    """Eight little-endian bytes."""
    return le(value, 8)


def var(data: bytes) -> bytes:
    """Encode a field of variable length."""
    return le(len(data), 4) + data


def H(tag: str, *fields: bytes) -> bytes:  # noqa: N802  the protocol's own name
    """SHA-256 over the tag with its length, then the fields."""
    return hashlib.sha256(var(tag.encode()) + b"".join(fields)).digest()


def short_leaf(leaf: bytes) -> bytes:
    """Hash a leaf of a payload, of openings, of sequence ids, of tensors' digests."""
    return H("troth:leaf", leaf)


def bulk_leaf(leaf: bytes) -> bytes:
    """Hash a leaf of a tensor or a residual: BLAKE3 in keyed mode."""
    return blake3(leaf, key=LEAF_KEY).digest()


def top(nodes: list[bytes]) -> bytes:
    """Top of a tree: the left half is the largest power of two, so odd nodes are promoted."""
    if len(nodes) == 1:
        return nodes[0]
    left = 1 << (len(nodes) - 1).bit_length() - 1
    return H("troth:node", top(nodes[:left]), top(nodes[left:]))


def merkle(leaves: list[bytes], leaf: Callable[[bytes], bytes] = short_leaf) -> bytes:
    """Merkle root."""
    return H("troth:merkle", u64(len(leaves)), top([leaf(one) for one in leaves]))


def merkle_path(leaves: list[bytes], index: int) -> list[bytes]:
    """Siblings of a short leaf, bottom first."""
    return path([short_leaf(leaf) for leaf in leaves], index)


def path(nodes: list[bytes], index: int) -> list[bytes]:
    """Siblings of a node, bottom first."""
    if len(nodes) == 1:
        return []
    left = 1 << (len(nodes) - 1).bit_length() - 1
    if index < left:
        return [*path(nodes[:left], index), top(nodes[left:])]
    return [*path(nodes[left:], index - left), top(nodes[:left])]


def residual_root(data: bytes) -> bytes:
    """Root over the 16 KiB tiles of a residual's bytes."""
    return merkle([data[at : at + 16384] for at in range(0, len(data), 16384)], bulk_leaf)


def tensor_root(data: bytes) -> bytes:
    """Root over the 64 KiB chunks of a tensor's bytes."""
    return merkle([data[at : at + 65536] for at in range(0, len(data), 65536)], bulk_leaf)


def state_root(
    tensors: dict[str, tuple[list[int], bytes]], round_: int, cursor: int, config: bytes
) -> bytes:
    """State root; tensors by name as (dims, bytes)."""
    leaves = []
    for name in sorted(tensors, key=lambda n: n.encode()):
        dims, data = tensors[name]
        shape = b"\0" + le(len(dims), 1) + b"".join(map(u64, dims))
        leaves.append(H("troth:tensor", var(name.encode()), shape, tensor_root(data)))
    return H("troth:state", merkle(leaves), u64(round_), u64(cursor), config)


def piece_list(tensors: dict[str, tuple[list[int], bytes]]) -> bytes:
    """Hashes of all pieces, 16 chunks each, end to end; tensors by name as (dims, bytes)."""
    hashes = b""
    for name in sorted(tensors, key=lambda n: n.encode()):
        data = tensors[name][1]
        chunks = [bulk_leaf(data[at : at + 65536]) for at in range(0, len(data), 65536)]
        hashes += b"".join(top(chunks[at : at + 16]) for at in range(0, len(chunks), 16))
    return hashes


def perm(position: int, n: int, manifest: bytes) -> int:
    """Sequence id at a position of the endless order."""
    epoch, value = position // n, position % n
    b = next(b for b in range(2, 128, 2) if 2**b >= n)
    while True:
        high, low = divmod(value, 2 ** (b // 2))
        for k in range(4):
            seed = H("troth:perm", manifest, u64(epoch), le(k, 1), le(low, 4))
            f = struct.unpack("<I", seed[:4])[0] % 2 ** (b // 2)
            high, low = low, high ^ f
        value = high * 2 ** (b // 2) + low
        if value < n:
            return value


def is_due(start: int, end: int, quorum: int, counts: tuple[int, int], slot: int) -> bool:
    """Rules (a), (b), (c) of a phase's end; counts = (acted, all)."""
    grace = quorum != NONE and slot >= quorum + max(8, (quorum - start) // 4)
    return slot > end or counts[0] >= counts[1] or grace


def bits(bitmap: int) -> set[int]:
    """Return the indices of a bitmap."""
    return {i for i in range(64) if bitmap & 2**i}


def bitmap(indices: set[int]) -> int:
    """Bitmap of indices."""
    return sum(2**i for i in indices)


def is_canonical(trainers: int, committed: int, votes: int) -> bool:
    """More than half of the commits, no less than half of the trainers."""
    share = Fraction(len(bits(committed) & bits(votes)))
    return share > Fraction(len(bits(committed)), 2) and share >= Fraction(len(bits(trainers)), 2)


def is_too_thin(trainers: int, committed: int) -> bool:
    """Nobody, or less than half of the trainers, committed."""
    return not committed or len(bits(committed)) < Fraction(len(bits(trainers)), 2)


def decision(round_: dict[str, int], attests: list[int]) -> dict[str, object]:
    """Return what a close decides; `attests` are the bitmaps received."""
    few = len(attests) < Fraction(len(bits(round_["members"])), 2)
    if few or is_too_thin(round_["trainers"], round_["committed"]):
        return {"outcome": "void", "included": 0}
    if not is_canonical(round_["trainers"], round_["committed"], round_["votes"]):
        return {"outcome": "not_canonical", "included": 0}
    included = {
        i
        for i in bits(round_["committed"]) & bits(round_["votes"])
        if attests and Fraction(sum(i in bits(a) for a in attests), len(attests)) >= Fraction(2, 3)
    }
    return {"outcome": "closed", "included": bitmap(included)}


def window_length(vesting: int) -> int:
    """Half of the vesting time, rounded up."""
    return max(1, (vesting + 1) // 2)


def claimable_from(window: int, vesting: int) -> int:
    """First slot in which a window's amount is claimable."""
    return (window + 1) * window_length(vesting) + vesting


def misses(rounds: list[list[tuple[bool, bool]]]) -> dict[str, object]:
    """Counters after rounds of phases of (acted, ran to deadline)."""
    is_done = [all(acted for acted, _ in phases) for phases in rounds]
    since = is_done[::-1].index(True) if True in is_done else len(rounds)
    tail = [p for phases in rounds[len(rounds) - since :] for p in phases if not p[0]]
    deadline = sum(ran for _, ran in tail)
    inactive = deadline >= 3 or len(tail) >= 12
    counts = {"in_row": len(tail), "deadline_in_row": deadline}
    return counts | {"inactive": inactive, "fined": deadline >= 3}


def strike(ring: list[int], round_: int) -> dict[str, object]:
    """Ring after one more strike: the newest three, the new one last."""
    old = sorted((r for r in ring if r != NONE), reverse=True)[:2]
    kept = [*[*old, NONE, NONE][:2], round_]
    if all(r != NONE and round_ - r < 100 for r in kept):
        return {"ring": [NONE] * 3, "jailed": True}
    return {"ring": kept, "jailed": False}


def slot_hash(entries: list[tuple[int, bytes]], wanted: int) -> dict[str, object]:
    """First slot at or after the wanted one; entries newest first."""
    nothing = {"slot": 0, "hash": bytes(32).hex()}
    later = [e for e in entries if e[0] >= wanted]
    if not later:
        return {"outcome": "too_early", **nothing}
    if len(later) == len(entries):
        return {"outcome": "lost", **nothing}
    return {"outcome": "found", "slot": later[-1][0], "hash": later[-1][1].hex()}


def fp32_of(ratio: Fraction) -> bytes:
    """Find the nearest fp32 among the neighbours of a first guess; ties to even."""
    guess = struct.unpack("<I", struct.pack("<f", float(ratio)))[0]
    near = [c for c in (guess - 1, guess, guess + 1) if 0 <= c < 0x7F800000]
    best = min(near, key=lambda c: (abs(value_of(c) - ratio), c & 1))
    return struct.pack("<I", best)


def value_of(pattern: int) -> Fraction:
    """Exact value of a positive fp32 bit pattern."""
    return Fraction(struct.unpack("<f", struct.pack("<I", pattern))[0])


def initial(run: bytes, name: str, size: int, std_nano: int) -> bytes:
    """Draw the initial values of a tensor as fp32 bytes, in exact arithmetic."""
    scale = fp32_of(Fraction(isqrt(3 * std_nano**2 * 10**18), 2**31 * 10**18))
    factor, out = value_of(struct.unpack("<I", scale)[0]), b""
    for at in range(size):
        digest = H("troth:init", run, var(name.encode()), u64(at // 8))
        drawn = struct.unpack("<8i", digest)[at % 8]
        first = value_of(struct.unpack("<I", fp32_of(Fraction(abs(drawn))))[0])
        pattern = struct.unpack("<I", fp32_of(first * factor))[0]
        out += struct.pack("<I", pattern | (0x80000000 if drawn < 0 else 0))
    return out


def lr_nano(s: dict[str, int], r: int) -> int:
    """Learning rate of a round."""
    rate, w, d, end = s["lr_nano"], s["warmup_rounds"], s["decay_from_round"], s["rounds"]
    if r < w:
        return int(Fraction(rate * (r + 1), w))
    if r < d:
        return rate
    return max(0, int(Fraction(rate * (end - r), end - d))) if end > d else 0


def expected_members(opens: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Find the members of each of an open's last two epochs, by sets of indices."""
    kept: dict[int, set[int]] = {}
    for one in opens:
        members, gone = bits(one["members"]), bits(one["gone"])
        kept[one["epoch"]] = kept.get(one["epoch"], set()) | members
        kept = {epoch: those - gone for epoch, those in kept.items()}
    *former, of_epoch = [kept[epoch] for epoch in sorted(kept)]
    before = former[-1] if former else set()
    return {
        "of_epoch": bitmap(of_epoch),
        "before": bitmap(before),
        "number": max(len(of_epoch), len(before)),
    }
