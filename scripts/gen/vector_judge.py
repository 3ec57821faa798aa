"""Golden vectors of the judge: what seats and juries decide, and what a fault costs.

Owns: the choice of cases, and definitions written from the protocol alone, slow and plain.
Never: uses the packages. Next: vectors.py, which writes the files.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, pairwise

from vector_reference import NONE
from vector_stream import Stream

Case = tuple[dict[str, object], object]
Cases = Iterator[Case]

Report = tuple[bool, int, int | None]
"""Committed, verdict (0: not revealed), the one value of all 64 places of the sketch."""

OK, MISMATCH, UNAVAILABLE, INCONCLUSIVE = 1, 2, 3, 4
CLEARED, EXTEND, ACCUSED, UNPROVEN, UNSERVED = 1, 2, 3, 5, 7
CONVICTED, ACQUITTED, NOT_PROVEN, EXCLUDED, REFUSED = 1, 2, 3, 4, 5
VALUES = (1_000, 1_000, 1_000, 1_090, 1_200, -700, 0)
"""At factor 100, 1,000 and 1,200 differ, and 1,090 agrees with both."""
FACTORS = (100, 100, 25, 600, 2_500)


def needs_sketch(reports: list[Report]) -> dict[int, int]:
    """Return the revealed sketches of verdicts that need one, by seat."""
    return {n: s for n, (_, kind, s) in enumerate(reports) if s is not None and kind != UNAVAILABLE}


def sketches(reports: list[Report]) -> dict[int, int]:
    """Return what is compared, by seat: zeros prove nothing."""
    return {n: s for n, s in needs_sketch(reports).items() if s}


def agree(first: int, second: int, factor: int) -> bool:
    """Tell whether two sketches of one value each lie within a part of the larger."""
    part = Fraction(first - second, max(1, abs(first), abs(second)))
    return part**2 <= Fraction(1, factor)


def outvoted(reports: list[Report], factor: int) -> set[int]:
    """Return the seats that agree with nobody while two agree, or that a majority contradicts."""
    shown = sketches(reports)
    sure = [n for n in shown if reports[n][1] != INCONCLUSIVE]

    def is_one(group: tuple[int, ...]) -> bool:
        return all(agree(shown[a], shown[b], factor) for a, b in combinations(group, 2))

    def is_against(seat: int, group: tuple[int, ...]) -> bool:
        return not any(agree(shown[seat], shown[n], factor) for n in group)

    out = set()
    if any(is_one(pair) for pair in combinations(sure, 2)):
        for seat in needs_sketch(reports):
            rest = tuple(n for n in shown if n != seat)
            if seat not in shown or is_against(seat, rest):
                out.add(seat)
    for size in range(1, len(sure) + 1):
        for group in combinations(sure, size):
            if Fraction(size, len(shown)) > Fraction(1, 2) and is_one(group):
                out |= {n for n in shown if n not in group and is_against(n, group)}
    return out


def outcome(reports: list[Report], available: int, factor: int) -> int | None:
    """Return how an audit stands; None for a number of reports that cannot be."""
    if not 3 <= available <= 7 or len(reports) not in {3, min(5, available), available}:
        return None
    shown = list(sketches(reports).values())
    all_ok = all(kind == OK for _, kind, _ in reports) and len(shown) == 3 == len(reports)
    if all_ok and all(agree(a, b, factor) for a, b in combinations(shown, 2)):
        return CLEARED
    if len(reports) == 3 < available:
        return EXTEND
    out = outvoted(reports, factor)
    counted = [kind for n, (_, kind, _) in enumerate(reports) if kind and n not in out]
    decided = {OK: CLEARED, MISMATCH: ACCUSED, UNAVAILABLE: UNSERVED}
    for kind, decision in decided.items():
        rivals = [counted.count(other) for other in range(1, 5) if other != kind]
        if counted.count(kind) >= 3 and counted.count(kind) > max(rivals):
            return decision
    if len(reports) < available:
        return EXTEND
    accusing = sum(counted.count(kind) for kind in (MISMATCH, UNAVAILABLE))
    is_starved = accusing >= 3 and accusing > max(counted.count(OK), counted.count(INCONCLUSIVE))
    return UNSERVED if is_starved else UNPROVEN


def paid(reports: list[Report], factor: int) -> list[int]:
    """Return who earns the fee."""
    shown = sketches(reports)
    revealed = sum(1 for _, kind, _ in reports if kind)
    seats = []
    for n, (_, kind, _) in enumerate(reports):
        friends = [m for m in shown if n in shown and agree(shown[n], shown[m], factor)]
        doubting = [m for m in friends if reports[m][1] == INCONCLUSIVE]
        if kind == INCONCLUSIVE:
            is_paid = Fraction(len(doubting), revealed) > Fraction(1, 2)
        else:
            is_paid = n in shown and Fraction(len(friends), len(shown)) > Fraction(1, 2)
        seats += [n] * is_paid
    return seats


def paid_jurors(reports: list[Report], case: int, factor: int, is_work: bool) -> list[int]:
    """Return which jurors earn the fee, had these reports been votes."""
    right = {CONVICTED: [MISMATCH], ACQUITTED: [OK], REFUSED: [UNAVAILABLE, MISMATCH]}
    right |= {NOT_PROVEN: [OK, MISMATCH] + [INCONCLUSIVE] * is_work}
    agreed = [n for n, (_, kind, _) in enumerate(reports) if kind in right.get(case, [])]
    diligent = paid(reports, factor)
    return [n for n in agreed if not is_work or n in diligent or reports[n][1] == UNAVAILABLE]


def fault(reports: list[Report], seat: int, case: int, factor: int) -> int:
    """Return the fault of a seat, 0 for none: P6 before an outvoted sketch before a wrong word."""
    committed, kind, _ = reports[seat]
    if not kind:
        return 2 if committed else 1
    if seat in outvoted(reports, factor):
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
    sizes = ((3, 3), (3, 7), (5, 5), (5, 7), (4, 4), (3, 4), (7, 7), (4, 5), (2, 3), (6, 6), (7, 7))
    sizes += ((8, 8), (3, 2), (5, 6))
    seen: set[object] = set()
    for number in range(392):
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
        jurors = [paid_jurors(reports, case, factor, is_work) for is_work in (True, False)]
        yield given, out | {"paid": paid(reports, factor), "faults": faults, "jurors": jurors}
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
                named = {(MISMATCH,): CONVICTED, (OK,): ACQUITTED}
                named |= {(UNAVAILABLE, MISMATCH): REFUSED} if is_work else {}
                share = {side: sum(map(votes.count, side)) for side in named}
                decided = [named[side] for side in named if 3 * share[side] >= 2 * size]
                out = decided[0] if decided else NOT_PROVEN
                yield {"votes": votes, "is_work": is_work}, out if size >= 3 else EXCLUDED


PERCENT = {"malformed": 10, "work": 50, "false_root": 25, "false_possession": 2}
NUMBERS = {"malformed": 2, "vouched_for_malformed": 2, "false_root": 8, "false_possession": 10}


def penalty(given: dict[str, object], funds: list[int], prices: list[int]) -> dict[str, object]:
    """Return what is asked for, from the table of section 8."""
    kind, principal = str(given["kind"]), funds[2] + funds[3]
    none = {"small": False, "unvested": False, "strike": False, "barred": False, "acquitted": False}
    share = {name: principal * percent // 100 for name, percent in PERCENT.items()}
    if kind == "no_openings":
        cost = int(str(given["price"])) * 2 ** int(str(given["doublings"]))
        return none | {"fault": 5, "principal": min(cost, principal // 2), "small": True}
    if kind == "work":
        full = none | {"fault": 3, "principal": principal, "unvested": True, "barred": True}
        half = full | {"principal": share["work"], "barred": False}
        return full if given["is_repeated"] else half
    if kind == "seat":
        wrong, false_mismatch = 10 * prices[2], principal * 10 // 100
        hidden = max(wrong, false_mismatch) if given["is_second"] else 2 * prices[1]
        costs = (2 * prices[1], hidden, wrong, false_mismatch, 2 * prices[1])
        number = int(str(given["seat_fault"]))
        asked = {"fault": 6 if number <= 2 else 7, "principal": costs[number - 1]}
        return none | asked | {"small": True, "acquitted": number == 4}
    strike = kind in {"vouched_for_malformed", "false_possession"}
    return none | {"fault": NUMBERS[kind], "principal": share.get(kind, 0), "strike": strike}


def slash(s: Stream) -> Cases:
    """Ask for every penalty of the rich, the poor, and those with all lamports there could be."""
    kinds: list[dict[str, object]] = [{"kind": kind} for kind in (*NUMBERS,)]
    kinds += [{"kind": "work", "is_repeated": repeated} for repeated in (False, True)]
    kinds += [
        {"kind": "seat", "seat_fault": number, "is_second": second}
        for number in (1, 2, 3, 4, 5)
        for second in (False, True)
    ]
    kinds += [
        {"kind": "no_openings", "price": price, "doublings": doublings}
        for price in (0, 12_000, NONE)
        for doublings in (0, 1, 2)
    ]
    fortunes = [[300, 7_001, 60_000, 20_000], [1, 4, 3, 2], [0] * 4, [0, 0, 0, 99], [NONE - 1] * 4]
    fortunes += [[s.below(10**9), *(s.below(10**n) for n in (10, 12, 11))] for _ in range(4)]
    prices_of = ([1_000, 200, 900], [2**56, 2**56, 2**56], [0, 0, 0])
    for number, funds in enumerate(fortunes):
        for asked in kinds:
            prices = prices_of[number % 3]
            given = asked | {"funds": funds, "prices": prices}
            intent = penalty(given, funds, prices)
            taken, shortfall = take(intent, funds)
            asked_for = intent | {"principal": str(intent["principal"])}
            yield given, asked_for | {"taken": taken, "shortfall": shortfall}


ORDERS = {True: (0, 1, 2, 3), False: (2, 3, 1)}
"""Claimable, unvested, stake, unbonding: the sources of a small penalty, and of a conviction."""


def take(intent: dict[str, object], funds: list[int]) -> tuple[list[int], int]:
    """Return what each source gives and the shortfall, source by source in order."""
    missing, left, taken = int(str(intent["principal"])), list(funds), [0, 0, 0, 0]
    if intent["unvested"]:
        left[1], taken[1] = 0, funds[1]
    for source in ORDERS[bool(intent["small"])]:
        part = left[source] if missing > left[source] else missing
        taken[source] += part
        missing -= part
    return taken, min(missing, NONE)


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


def openings_price(s: Stream) -> Cases:
    """Price refusals: 12 rewards, rare audits, more payloads than audits, no rate at all."""
    sums = (0, 1, 400_000, 4_000_000, 4_000_001, 64_000_000)
    for number in range(72):
        reward = (1, 1_000_000, 2**56, s.bits(40))[number % 4]
        p_ppm = (0, 1, 100_000, 500_000, 149_999, 10**6)[number % 6]
        sum_ppm, limit = sums[number // 12], (0, 1, 4, 15, 128)[number % 5]
        given = {"reward": reward, "p_ppm": p_ppm, "sum_ppm": sum_ppm, "limit": limit}
        most = max(1, limit)
        share = min(Fraction(1), Fraction(most * 10**6, sum_ppm)) if sum_ppm else Fraction(1)
        q = Fraction(max(1, p_ppm), 10**6) * share
        earned = Fraction(9, 5) * reward / q
        yield given, min(NONE, max(12 * reward, -int(-earned // 1)))


def openings_step(s: Stream) -> Cases:
    """Count refusals: one outage, five hundred included rounds, the step that stays."""
    for number in range(40):
        step, mark, decided, now, included = 0, 0, NONE, 0, 0
        refusals, out = [], []
        for _ in range(2 + s.below(6)):
            now += s.below(12)
            included += s.below(3) if number % 2 else s.below(700)
            round_ = max(0, now - s.below(10))
            refusals.append([round_, now, included])
            is_new = not step or round_ > decided
            if is_new:
                step = 1 if included - mark > 500 else min(3, step + 1)
                mark, decided = included, now
            out.append([is_new, step])
        yield {"refusals": refusals}, out
    yield {"refusals": [[0, 5, 500]]}, [[True, 1]]
    yield {"refusals": [[0, 5, 0], [9, 9, 500]]}, [[True, 1], [True, 2]]
    yield {"refusals": [[0, 5, 0], [9, 9, 501]]}, [[True, 1], [True, 1]]


def outage(s: Stream) -> Cases:
    """Follow judges through actions and silences: which of these are fined."""
    for number in range(60):
        shortest, now = (10, 80)[number % 2], 1 + s.below(100)
        # The first action: there has been none before it, so there is no outage yet.
        actions, fined, steps, out = [now], set(), [], []
        for _ in range(4 + s.below(14)):
            now += 1 + s.below(3 * shortest)
            if s.below(2):
                steps.append([now])
                actions.append(now)
                continue
            ended = max(1, now - s.below(4 * shortest))
            steps.append([ended, now])
            out.append(_is_fined(actions, fined, (ended, now), shortest))
        yield {"shortest": shortest, "first": actions[0], "steps": steps}, out
    crash = [[101, 135], [102, 135], [103, 135], [140], [103, 141]]
    yield {"shortest": 150, "first": 100, "steps": crash}, [True, False, False, True]
    longer = [[101, 135], [251], [140, 252], [250, 252], [252, 253]]
    yield {"shortest": 150, "first": 100, "steps": longer}, [True, False, False, True]


def hidden_verdict(s: Stream) -> Cases:
    """Tell hidden verdicts of one silence from the second one, around every edge."""
    del s
    for decided in (NONE, 0, 7, NONE - 501):
        for round_ in (0, 6, 7, 8, 500, 501, 507, 508, NONE - 501, NONE - 500, NONE - 1):
            is_first = decided == NONE or round_ > decided + 500
            late = "second" if round_ > decided else "again"
            yield {"round": round_, "decided_round": decided}, "first" if is_first else late


def _is_fined(actions: list[int], fined: set[int], when: tuple[int, int], shortest: int) -> bool:
    """Tell whether silence in a window counts: only the newest outage is remembered."""
    ended, now = when
    gaps = [(a, b) for a, b in pairwise(actions) if b - a > shortest]
    ended_gap = [(a, b) for a, b in gaps[-1:] if a < ended <= b]
    spans = [(actions[-1], now)] if actions[-1] < ended else ended_gap
    if not spans:
        return True
    start = spans[0][0]
    is_first = fined != {start}
    fined.clear()
    fined.add(start)
    return is_first


RUST: tuple[Callable[[Stream], Cases], ...] = (
    audit_panel,
    case_outcome,
    slash,
    slash_split,
    failed_case,
    openings_price,
    openings_step,
    outage,
    hidden_verdict,
)
