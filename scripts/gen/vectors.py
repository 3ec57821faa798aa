"""Write the golden vectors (tests/golden/*.json) that Rust and Python both have to reproduce.

Owns: the choice of cases. Never: uses the packages; vector_reference.py defines the answers.
With --reference FILE (a Python file with the functions H, merkle_root, perm, nearest_fp32, initial,
state_root, residual_root) the answers are compared with a third implementation first.
Next: tests/golden/README.md for the format.
"""

import argparse
import importlib.util
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import vector_audit
import vector_judge
import vector_params
import vector_reference as ref
import vector_start
import vector_work
from vector_reference import NONE, H, u64, var
from vector_stream import Stream

Case = tuple[dict[str, object], object]
Cases = Iterator[Case]


def hashing(s: Stream) -> Cases:
    """H over encoded fields."""
    for fields in ([], [b""], [b"a", b"bc"], [var(b"abc")], [s.bytes(32), u64(NONE)]):
        given = {"tag": "troth:test", "fields": [f.hex() for f in fields]}
        yield given, H("troth:test", *fields).hex()
    yield {"tag": "", "fields": []}, H("").hex()


def root_vote(s: Stream) -> Cases:
    """Votes for a state root."""
    for round_ in (0, 1, 2**32, NONE):
        run, owner, root = s.bytes(32), s.bytes(32), s.bytes(32)
        given = {
            "run": run.hex(),
            "round": round_,
            "owner": owner.hex(),
            "state_root": root.hex(),
        }
        yield given, H("troth:root", run, u64(round_), owner, root).hex()


def sigma(s: Stream) -> Cases:
    """Seeds of audits."""
    for round_ in (0, 7, NONE):
        slot_hash, run = s.bytes(32), s.bytes(32)
        given = {"slot_hash": slot_hash.hex(), "run": run.hex(), "round": round_}
        yield given, H("troth:sigma", slot_hash, run, u64(round_)).hex()


def wanted_slot(s: Stream) -> Cases:
    """Find the slots of seeds, around every edge of grids; a short delay has none."""
    for delay, part in ((2, 40), (3, 40), (4, 40), (8, 0), (8, 1), (8, 62), (8, 375), (20, 513)):
        step = 1 if delay < 4 else next(n for n in (part or 1, 512) if n <= 512)
        for slot in (0, step - 1, 20 * step - delay, 20 * step - delay + 1, s.bits(40)):
            found = slot + delay
            while found % step:
                found += 1
            yield {"slot": slot, "delay": delay, "part": part}, found


def expected_members(s: Stream) -> Cases:
    """Follow opens through epochs, with the sets of all epochs instead of two bitmaps."""
    for length in (1, 2, 3, 5, 9, 17, 33):
        epochs = sorted(s.below(1 + length // 3) for _ in range(length))
        opens = [{"epoch": epoch, "members": s.bits(64)} for epoch in epochs]
        opens = [{**one, "gone": s.bits(64) & s.bits(64) & s.bits(64)} for one in opens]
        yield {"opens": opens}, ref.expected_members(opens)


def phase_due(s: Stream) -> Cases:
    """Around every edge of the three rules."""
    edges = [
        (100, 220, NONE, 3, 10, (100, 219, 220, 221)),
        (100, 220, NONE, 10, 10, (100, 101, 220)),
        (100, 220, NONE, 0, 0, (100,)),
        (100, 220, 100, 8, 10, (107, 108, 109)),
        (100, 220, 131, 8, 10, (138, 139)),
        (100, 220, 132, 8, 10, (139, 140)),
        (100, 220, 136, 9, 10, (144, 145)),
        (100, 220, 163, 9, 10, (177, 178)),
        (100, 220, 219, 9, 10, (220, 221)),
        (0, NONE - 1, NONE, 0, 64, (NONE - 1, NONE)),
    ]
    for start, end, quorum, acted, every, slots in edges:
        for slot in slots:
            yield _due(start, end, quorum, (acted, every), slot)
    for _ in range(40):
        start, length, every = s.below(1000), 1 + s.below(60), s.below(6)
        quorum = NONE if s.below(3) == 0 else start + s.below(length + 1)
        slot = start + s.below(length + 12)
        yield _due(start, start + length, quorum, (s.below(every + 1), every), slot)


def _due(start: int, end: int, quorum: int, counts: tuple[int, int], slot: int) -> Case:
    given: dict[str, object] = {"start": start, "end": end, "quorum_slot": quorum}
    given |= {"acted": counts[0], "all": counts[1], "slot": slot}
    return given, ref.is_due(start, end, quorum, counts, slot)


def round_decision(s: Stream) -> Cases:
    """Small rounds exhaustively random, and full ones."""
    for number in range(160):
        width = 64 if number % 8 == 0 else 1 + s.below(9)
        members = 2**width - 1 if s.below(2) else s.bits(width)
        trainers = members & (s.bits(width) | s.bits(width) | s.bits(width))
        committed = trainers & (s.bits(width) | s.bits(width))
        attested = members & (s.bits(width) | s.bits(width))
        votes = committed & (s.bits(width) | s.bits(width)) | s.bits(width) & ~trainers
        held = [s.bits(width) | s.bits(width) | s.bits(width) for _ in range(64)]
        bitmaps = [held[i] if attested >> i & 1 else 0 for i in range(64)]
        sets = {"trainers": trainers, "members": members, "committed": committed}
        given = {**sets, "attested": attested, "votes": votes, "attest_bitmaps": bitmaps}
        received = [bitmaps[i] for i in sorted(ref.bits(attested))]
        yield given, ref.decision({**sets, "votes": votes}, received)


def root_only(s: Stream) -> Cases:
    """Decide the root-only step of Cooldown."""
    for number in range(24):
        trainers = s.bits(6)
        committed = trainers & s.bits(6) if number else 0
        votes = s.bits(6)
        out = "closed" if ref.is_canonical(trainers, committed, votes) else "not_canonical"
        out = "void" if ref.is_too_thin(trainers, committed) else out
        yield {"trainers": trainers, "committed": committed, "votes": votes}, out


def unavailable_strikes(s: Stream) -> Cases:
    """P4: only where half of the commits were included."""
    for _ in range(24):
        committed = s.bits(8)
        included = committed & s.bits(8)
        unavailable = committed & ~included & s.bits(8)
        given = {"committed": committed, "included": included, "unavailable": unavailable}
        enough = len(ref.bits(included)) >= Fraction(len(ref.bits(committed)), 2)
        yield given, unavailable if enough else 0


def vesting(s: Stream) -> Cases:
    """Credits into the three buckets."""
    for length in (1, 2, 3, 7, 100, 101, 3000):
        buckets: dict[int, tuple[int, int]] = {at: (at, 10 + at) for at in range(3)}
        slot = 0
        for _ in range(8):
            slot += s.below(2 * length)
            credit, window = s.below(1000), slot // ref.window_length(length)
            given = _buckets(buckets) | {"vesting_slots": length, "slot": slot, "credit": credit}
            held, amount = buckets[window % 3]
            vested = 0 if held == window else amount
            buckets[window % 3] = (window, credit + (amount if held == window else 0))
            yield given, _buckets(buckets) | {"vested": vested}


def _buckets(buckets: dict[int, tuple[int, int]]) -> dict[str, object]:
    amounts = [buckets[at][1] for at in range(3)]
    return {"windows": [buckets[at][0] for at in range(3)], "amounts": amounts}


def vesting_release(s: Stream) -> Cases:
    """Release what is claimable in a slot."""
    for vesting_slots in (1, 5, 100):
        for first in (0, 3, 4, 50):
            windows = [w for at in range(3) for w in range(first, first + 3) if w % 3 == at]
            amounts = [s.below(100) for _ in range(3)]
            base = ref.claimable_from(first, vesting_slots)
            for slot in (base - 1, base, base + vesting_slots, base + 2 * vesting_slots):
                due = [ref.claimable_from(w, vesting_slots) <= slot for w in windows]
                given = {"vesting_slots": vesting_slots, "slot": slot}
                out = [0 if d else a for d, a in zip(due, amounts, strict=True)]
                released = sum(amounts) - sum(out)
                yield (
                    given | {"windows": windows, "amounts": amounts},
                    {"amounts": out, "released": released},
                )


def vesting_take(s: Stream) -> Cases:
    """Fees out of the buckets, oldest window first."""
    for lamports in (0, 5, 7, 12, 16, 24, 100):
        windows, amounts = [3, 1, 2], [7, 8, 9]
        left, rest = lamports, list(amounts)
        for _, at in sorted((w, at) for at, w in enumerate(windows)):
            part = min(left, rest[at])
            rest[at], left = rest[at] - part, left - part
        yield (
            {"windows": windows, "amounts": amounts, "lamports": lamports},
            {"amounts": rest, "taken": lamports - left},
        )


def scaled_reward(s: Stream) -> Cases:
    """Full reward, scaled reward, empty pool, nobody included."""
    for reward, pool, num in ((100, 1000, 4), (100, 400, 4), (100, 399, 4), (7, 0, 3), (7, 9, 0)):
        given = {"reward_per_payload": reward, "pool": pool, "num_included": num}
        yield given, 0 if not num else min(reward, pool // num)


def chain_close(s: Stream) -> Cases:
    """Fold in rounds with and without commits and attestations."""
    for commits, attests in (([], []), ([0], [0]), ([0, 3, 63], [1, 63]), ([5, 6], [])):
        round_, members, trainers = s.below(2**64), s.bits(64), s.bits(64)
        listed = [(i, s.bytes(32), s.bytes(32)) for i in commits]
        vouched = [(i, s.bits(64), s.bytes(64)) for i in attests]
        previous, root, included = s.bytes(32), s.bytes(32), s.bits(64)
        given = {
            "previous": previous.hex(),
            "round": round_,
            "members": members,
            "trainers": trainers,
            "commits": [
                {"index": i, "header_hash": h.hex(), "root_vote": v.hex()} for i, h, v in listed
            ],
            "attests": [{"index": i, "bitmap": b, "possession": p.hex()} for i, b, p in vouched],
            "included": included,
            "canonical_root": root.hex(),
        }
        first = H("troth:commits", *(ref.le(i, 2) + h + v for i, h, v in listed))
        second = H("troth:attests", *(ref.le(i, 2) + u64(b) + p for i, b, p in vouched))
        head = [previous, u64(round_), u64(members), u64(trainers)]
        yield given, H("troth:chain", *head, first, second, u64(included), root).hex()


def chain_event(s: Stream) -> Cases:
    """Absorbed events."""
    for sequence, kind, size in ((0, 0, 0), (1, 1, 1), (NONE, 255, 300)):
        previous, body = s.bytes(32), s.bytes(size)
        given = {"previous": previous.hex(), "sequence": sequence, "kind": kind}
        digest = H("troth:event", previous, u64(sequence), ref.le(kind, 1), var(body))
        yield given | {"body": body.hex()}, digest.hex()


def misses(s: Stream) -> Cases:
    """Misses in a row."""
    lists = [[[(False, True)]] * n for n in range(5)]
    lists += [[[(False, False)] * 2] * n for n in (5, 6, 7)]
    lists += [[[(False, True), (True, True)]] * n for n in (2, 3)]
    for _ in range(40):
        phases = 1 + s.below(2)
        lists.append(
            [[(s.below(3) > 0, s.below(3) == 0) for _ in range(phases)] for _ in range(s.below(16))]
        )
    for rounds in lists:
        yield {"rounds": [[list(p) for p in phases] for phases in rounds]}, ref.misses(rounds)


def return_round(s: Stream) -> Cases:
    """Find the way back after an inactivity."""
    pairs = ((NONE, 70, 50), (60, 70, 50), (60, 560, 50), (60, 561, 50), (0, 49, 1), (9, 5, 50))
    for before, now, epoch in pairs:
        repeated = before != NONE and now - before <= 500
        given = {"inactive_round": before, "round": now, "rounds_per_epoch": epoch}
        yield given, (now // epoch + 1) * epoch if repeated else now


def stake_to_stay(s: Stream) -> Cases:
    """Stakes to keep or, after a conviction, to join with."""
    for keep, min_ in ((60, 100), (50, 50), (2**56, 2**56)):
        for faults in (0, 1, 2, 255):
            yield {"keep": keep, "min": min_, "work_faults": faults}, min_ if faults else keep


def strikes(s: Stream) -> Cases:
    """Fill the ring of strikes."""
    for steps in ([10, 50, 109], [10, 50, 110], [0, 100, 150, 180], [7, 7, 7], [1, 2, 3, 4, 5, 6]):
        ring = [NONE] * 3
        for round_ in steps:
            out = ref.strike(ring, round_)
            after = out["ring"]
            recent = sum(one != NONE and round_ - one < 100 for one in after)
            yield {"ring": ring, "round": round_}, out | {"recent": recent}
            ring = after


def slot_hashes(s: Stream) -> Cases:
    """Lookups in the sysvar, newest entry first, with skipped slots."""
    for slots in ([20, 19, 15, 14, 10], [20], [], [2**63, 2**63 - 5]):
        entries = [(slot, s.bytes(32)) for slot in slots]
        data = u64(len(slots)) + b"".join(u64(slot) + hash_ for slot, hash_ in entries)
        near = {slot + d for slot in slots for d in (-1, 0, 1)} | {3}
        for wanted in sorted(near):
            yield {"data": data.hex(), "wanted": wanted}, ref.slot_hash(entries, wanted)
    broken = {"outcome": "malformed", "slot": 0, "hash": bytes(32).hex()}
    for data in (b"", bytes(7), u64(1), u64(2) + bytes(79), b"\xff" * 8):
        yield {"data": data.hex(), "wanted": 1}, broken


RUST: tuple[Callable[[Stream], Cases], ...] = (
    hashing,
    root_vote,
    sigma,
    wanted_slot,
    expected_members,
    phase_due,
    round_decision,
    root_only,
    unavailable_strikes,
    vesting,
    vesting_release,
    vesting_take,
    scaled_reward,
    chain_close,
    chain_event,
    misses,
    return_round,
    stake_to_stay,
    strikes,
    slot_hashes,
    vector_params.params,
    vector_params.params_update,
    *vector_audit.RUST,
    *vector_judge.RUST,
)


def write(folder: Path, reference: ModuleType | None) -> None:
    """Write every vector file; the Python-only ones are in vectors_python.py."""
    import vectors_python  # noqa: PLC0415  it compares with the reference while generating

    folder.mkdir(parents=True, exist_ok=True)
    makers = {make.__name__: make for make in RUST}
    python_only = (
        *vectors_python.makers(reference),
        *vector_start.PYTHON,
        *vector_audit.PYTHON,
        *vector_work.PYTHON,
    )
    makers |= {f"py_{make.__name__}": make for make in python_only}
    for name, make in makers.items():
        cases = [{"in": given, "out": out} for given, out in make(Stream(name))]
        lines = ",\n  ".join(json.dumps(case, separators=(",", ":")) for case in cases)
        text = f'{{"name":"{name}","cases":[\n  {lines}\n]}}\n'
        (folder / f"{name}.json").write_text(text, encoding="ascii")


def load(path: Path | None) -> ModuleType | None:
    """Import the third implementation from a file."""
    if path is None:
        return None
    spec = importlib.util.spec_from_file_location("third", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Parse the arguments and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).parents[2] / "tests" / "golden"
    parser.add_argument("--out", type=Path, default=default)
    parser.add_argument("--reference", type=Path, default=None)
    args = parser.parse_args()
    write(args.out, load(args.reference))


if __name__ == "__main__":
    main()
