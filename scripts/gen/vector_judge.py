"""Golden vectors of the judge: what seats and juries decide, and what a fault costs.

Owns: the choice of cases, and definitions written from the protocol alone, slow and plain.
Never: uses the packages. Next: vectors.py, which writes the files.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations

from vector_reference import NONE
from vector_stream import Stream

Case = tuple[dict[str, object], object]
Cases = Iterator[Case]

Report = tuple[bool, int, int | None]
"""Committed, verdict (0: not revealed), the one value of all 64 places of the sketch."""

OK, MISMATCH, UNAVAILABLE, INCONCLUSIVE = 1, 2, 3, 4
CLEARED, EXTEND, ACCUSED, NO_OPENINGS, UNPROVEN = 1, 2, 3, 4, 5
CONVICTED, ACQUITTED, NOT_PROVEN, EXCLUDED, REFUSED = 1, 2, 3, 4, 5
VALUES = (1_000, 1_000, 1_000, 1_090, 1_200, -700, 0)
"""At factor 100, 1,000 and 1,200 differ, and 1,090 agrees with both."""
FACTORS = (100, 100, 25, 600, 2_500)


def sketches(reports: list[Report]) -> dict[int, int]:
    """Return what is compared, by seat."""
    return {n: s for n, (_, kind, s) in enumerate(reports) if s is not None and kind != UNAVAILABLE}


def agree(first: int, second: int, factor: int) -> bool:
    """Tell whether two sketches of one value each lie within a part of the larger."""
    part = Fraction(first - second, max(1, abs(first), abs(second)))
    return part**2 <= Fraction(1, factor)


def outvoted(reports: list[Report], factor: int) -> set[int]:
    """Return the seats that three agreeing ones contradict."""
    shown = sketches(reports)
    return {
        seat
        for seat in shown
        for others in combinations(sorted(set(shown) - {seat}), 3)
        if all(agree(shown[a], shown[b], factor) for a, b in combinations(others, 2))
        and not any(agree(shown[seat], shown[other], factor) for other in others)
    }


def outcome(reports: list[Report], available: int, factor: int) -> int | None:
    """Return how an audit stands; None for a number of reports that cannot be."""
    if not 3 <= available <= 5 or len(reports) not in {3, available}:
        return None
    shown = list(sketches(reports).values())
    all_ok = all(kind == OK for _, kind, _ in reports) and len(shown) == 3 == len(reports)
    if all_ok and all(agree(a, b, factor) for a, b in combinations(shown, 2)):
        return CLEARED
    if len(reports) < available:
        return EXTEND
    out = outvoted(reports, factor)
    counted = [kind for n, (_, kind, _) in enumerate(reports) if n not in out]
    decided = {OK: CLEARED, MISMATCH: ACCUSED, UNAVAILABLE: NO_OPENINGS}
    return next((decided[kind] for kind in decided if counted.count(kind) >= 3), UNPROVEN)


def paid(reports: list[Report], settled: int, factor: int) -> list[int]:
    """Return who earns the fee."""
    shown = sketches(reports)
    seats = [
        n
        for n, own in shown.items()
        if Fraction(sum(agree(own, s, factor) for s in shown.values()), len(shown)) > Fraction(1, 2)
    ]
    silent = [n for n, report in enumerate(reports) if report[1] == UNAVAILABLE]
    return sorted(seats + silent * (settled == NO_OPENINGS))


def fault(reports: list[Report], seat: int, case: int, factor: int) -> int:
    """Return the fault of a seat, 0 for none: P6 before an outvoted sketch before a wrong word."""
    committed, kind, _ = reports[seat]
    if not kind:
        return 2 if committed else 1
    if seat in outvoted(reports, factor) and kind != INCONCLUSIVE:
        return 5
    return {(OK, CONVICTED): 3, (MISMATCH, ACQUITTED): 4}.get((kind, case), 0)


def draw_report(s: Stream, usual: int) -> Report:
    """Draw a report that mostly says the usual thing with the usual sketch."""
    kind = usual if s.below(10) < 7 else s.below(5)
    if kind == 0:
        return s.below(2) == 1, 0, None
    value = VALUES[s.below(len(VALUES))] if s.below(2) else 1_000
    has_sketch = s.below(12) > 0 and (kind != UNAVAILABLE or s.below(3) == 0)
    return True, kind, value if has_sketch else None


def audit_panel(s: Stream) -> Cases:
    """Count seats: every outcome, every fault, and numbers of reports that cannot be."""
    sizes = ((3, 3), (3, 5), (5, 5), (5, 5), (4, 4), (3, 4), (5, 5), (4, 5), (2, 3), (6, 6), (3, 2))
    seen: set[object] = set()
    for number in range(275):
        count, available = sizes[number % len(sizes)]
        reports = [draw_report(s, 1 + number // len(sizes) % 4) for _ in range(count)]
        case, factor = number % 6, FACTORS[number % len(FACTORS)]
        given = {"reports": reports, "num_available": available, "case": case, "factor": factor}
        settled = outcome(reports, available, factor)
        if settled is None:
            yield given, None
            continue
        faults = [fault(reports, seat, case, factor) for seat in range(count)]
        seen |= {f"outcome {settled}"} | {f"fault {one}" for one in faults}
        out = {"outcome": settled, "outvoted": sorted(outvoted(reports, factor))}
        yield given, out | {"paid": paid(reports, settled, factor), "faults": faults}
    assert len(seen) == 11, seen


def case_outcome(s: Stream) -> Cases:
    """Count juries of every size at both edges."""
    for size in range(8):
        for number in range(18):
            usual = (OK, MISMATCH, UNAVAILABLE)[number % 3]
            silent = s.below(3)
            votes = [usual if s.below(4) else s.below(5) for _ in range(size)]
            votes = votes if number < 12 else [usual] * (size - silent) + [0] * silent
            votes = votes[:size]
            for is_work in (False, True):
                named = {MISMATCH: CONVICTED, OK: ACQUITTED}
                named |= {UNAVAILABLE: REFUSED} if is_work else {}
                share = {kind: Fraction(votes.count(kind), max(1, size)) for kind in named}
                decided = [named[kind] for kind in named if share[kind] >= Fraction(2, 3)]
                out = decided[0] if decided else NOT_PROVEN
                yield {"votes": votes, "is_work": is_work}, out if size >= 3 else EXCLUDED


PERCENT = {"malformed": 10, "work": 50, "false_root": 25, "false_possession": 2}
NUMBERS = {"malformed": 2, "vouched_for_malformed": 2, "false_root": 8, "false_possession": 10}


def penalty(given: dict[str, object], funds: list[int], prices: list[int]) -> dict[str, object]:
    """Return what is asked for, from the table of section 8."""
    kind, principal = str(given["kind"]), funds[0] + funds[1]
    none = {"unvested": False, "strike": False, "barred": False, "acquitted": False}
    share = {name: principal * percent // 100 for name, percent in PERCENT.items()}
    if kind == "no_openings":
        ago = int(str(given["round"])) - int(str(given["last_round"]))
        if given["last_round"] == NONE or ago > 500 or ago <= 0:
            return none | {"fault": 5, "principal": 10 * prices[0], "unvested": True}
        kind = "work"
    if kind == "work":
        full = none | {"fault": 3, "principal": principal, "unvested": True, "barred": True}
        half = full | {"principal": share["work"], "barred": False}
        return full if given["is_repeated"] else half
    if kind == "seat":
        wrong, false_mismatch = 10 * prices[2], principal * 10 // 100
        costs = (2 * prices[1], max(wrong, false_mismatch), wrong, false_mismatch, wrong)
        number = int(str(given["seat_fault"]))
        asked = {"fault": 6 if number <= 2 else 7, "principal": costs[number - 1]}
        return none | asked | {"acquitted": number == 4}
    strike = kind in {"vouched_for_malformed", "false_possession"}
    return none | {"fault": NUMBERS[kind], "principal": share.get(kind, 0), "strike": strike}


def slash(s: Stream) -> Cases:
    """Ask for every penalty of the rich, the poor, and those with all lamports there could be."""
    kinds: list[dict[str, object]] = [{"kind": kind} for kind in (*NUMBERS,)]
    kinds += [{"kind": "work", "is_repeated": repeated} for repeated in (False, True)]
    kinds += [{"kind": "seat", "seat_fault": number} for number in (1, 2, 3, 4, 5)]
    rounds = ((9, NONE), (600, 99), (600, 100), (5, 9), (9, 9), (9, 8), (NONE - 1, NONE - 501))
    kinds += [
        {"kind": "no_openings", "round": now, "last_round": last, "is_repeated": repeated}
        for now, last in rounds
        for repeated in (False, True)
    ]
    fortunes = [[60_000, 20_000, 7_001], [3, 2, 4], [0, 0, 0], [0, 99, 0], [NONE - 1] * 3]
    fortunes += [[s.below(10**12), s.below(10**11), s.below(10**10)] for _ in range(4)]
    prices_of = ([1_000, 200, 900], [2**56, 2**56, 2**56], [0, 0, 0])
    for number, funds in enumerate(fortunes):
        for asked in kinds:
            prices = prices_of[number % 3]
            given = asked | {"funds": funds, "prices": prices}
            intent = penalty(given, funds, prices)
            yield (
                given,
                intent | {"principal": str(intent["principal"]), "taken": take(intent, funds)},
            )


def take(intent: dict[str, object], funds: list[int]) -> list[int]:
    """Return stake, unbonding, unvested taken and the shortfall, lamport by lamport in order."""
    missing, kept = int(str(intent["principal"])), funds[2] * (not intent["unvested"])
    taken = []
    for there in (funds[0], funds[1], kept):
        taken.append(there if missing > there else missing)
        missing -= taken[-1]
    return [taken[0], taken[1], taken[2] + funds[2] - kept, missing]


def slash_split(s: Stream) -> Cases:
    """Divide small, odd and huge sums: challenger, acquitted, burned."""
    totals = [
        0,
        1,
        2,
        19,
        20,
        21,
        99,
        100,
        1_000_039,
        2**63 + 1,
        NONE,
        *(s.bits(50) for _ in "123"),
    ]
    for total in totals:
        bounty = int(Fraction(total, 20))
        for has_bond in (False, True):
            given = {"total": total, "has_bond": has_bond, "acquittal": None}
            yield given, [bounty, 0, total - bounty] if has_bond else [0, 0, total]
        for most in (0, 20, 2**40):
            given = {"total": total, "has_bond": False, "acquittal": most}
            yield given, [0, total, 0] if total < most else [0, most, total - most]


def failed_case(s: Stream) -> Cases:
    """Divide the bond of a failed case: the odd lamport burns."""
    for bond in (0, 1, 2, 5_000_001, NONE, s.bits(60)):
        yield {"bond": bond}, [0, bond // 2, -(-bond // 2)]


RUST: tuple[Callable[[Stream], Cases], ...] = (
    audit_panel,
    case_outcome,
    slash,
    slash_split,
    failed_case,
)
