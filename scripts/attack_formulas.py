"""The numbers of `simulate_attacks.py` without play: every mix of seats and jurors.

Owns: the enumeration. Seats and jurors are drawn without replacement from three kinds: the cartel,
the honest who are there, the honest who are away. Outcomes and prices are those of the rules.
Never: draws at random. It leaves out noise, and that unproven audits raise the rate of a target.
Next: `attack_world.py`, which plays the same.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from math import comb, perm

from attack_world import (
    COST,
    FEE,
    PEOPLE,
    POWER_PPM,
    TO_A_JURY,
    TRUE_SKETCH,
    Account,
    Scheme,
    audit_outcome,
    charge,
    fine_of,
    paid_places,
)

from troth_attestation import quorum, sampling
from troth_attestation.panel import Panel, Report
from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_attestation.verdict import VerdictKind

BAD, HERE, AWAY = range(3)
"""Kinds of people: of the cartel, honest and there, honest and away."""
Mix = tuple[int, int, int]
"""How many of each kind."""


@dataclass(slots=True)
class Expected:
    """The expected cost of one audit: to its target, to honest seats, to seats of the cartel."""

    target: float = 0.0
    convicted: float = 0.0
    honest_seats: float = 0.0
    cartel_seats: float = 0.0
    cartel_pay_lost: float = 0.0

    def add(self, other: "Expected", weight: float) -> None:
        """Add another one with this chance."""
        for name in ("target", "convicted", "honest_seats", "cartel_seats", "cartel_pay_lost"):
            setattr(self, name, getattr(self, name) + weight * getattr(other, name))


@dataclass(frozen=True)
class Case:
    """A scheme and the kind of its target: what each kind of judge says."""

    scheme: Scheme
    is_own: bool
    truth: VerdictKind
    cache: dict[tuple[int, ...], tuple[list[Report], AuditOutcome]] = field(default_factory=dict)

    def verdict(self, kind: int) -> VerdictKind:
        """Return what somebody of this kind says."""
        if kind == BAD:
            return VerdictKind.OK if self.is_own else self.scheme.says
        return self.truth

    def report(self, kind: int, place: int) -> Report:
        """Return the report of a seat."""
        if kind == AWAY:
            return Report()
        sketch = TRUE_SKETCH
        if kind == BAD and self.scheme.is_idle:
            sketch = tuple(1000 * (-1) ** (n >> place % 3) * (place + 1) ** n for n in range(4))
        return Report(True, self.verdict(kind), sketch)

    def outcome(self, kinds: tuple[int, ...]) -> tuple[Panel, AuditOutcome]:
        """Return the panel that counts and the outcome for these kinds of seats."""
        if kinds not in self.cache:
            every = [self.report(kind, place) for place, kind in enumerate(kinds)]
            self.cache[kinds] = audit_outcome(every)
        return self.cache[kinds]

    def votes(self, jury: Mix) -> CaseOutcome:
        """Return the decision of a jury of this mix."""
        votes = [self.verdict(kind) for kind in (BAD, HERE) for _ in range(jury[kind])]
        return quorum.case_outcome([*votes, *[None] * jury[AWAY]], is_work=True)


def audit(case: Case, seats: Mix, jurors: Mix) -> Expected:
    """Return what an audit is expected to cost; mixes of all possible seats and jurors."""
    total, size = Expected(), min(sampling.MAX_SEATS, sum(seats))
    for kinds in product(range(3), repeat=size):
        chance = _chance_of(kinds, seats)
        if not chance:
            continue
        panel, found = case.outcome(kinds)
        if found not in TO_A_JURY:
            total.add(_ended(case, kinds, panel, found, None), chance)
            continue
        for verdict, share in _verdicts(case, _without(jurors, kinds)).items():
            total.add(_ended(case, kinds, panel, found, verdict), chance * share)
    return total


def _ended(
    case: Case,
    kinds: tuple[int, ...],
    panel: Panel,
    found: AuditOutcome,
    verdict: CaseOutcome | None,
) -> Expected:
    target = Account()
    charge(target, found, verdict)
    ended = Expected(target.lost, target.convictions)
    paid = paid_places(panel, verdict)
    for place, fault in panel.faults(verdict).items():
        if kinds[place] == BAD:
            ended.cartel_seats += fine_of(fault)
        elif kinds[place] == HERE:
            ended.honest_seats += fine_of(fault)
    for place in range(len(panel.reports)):
        if kinds[place] == BAD:
            ended.cartel_pay_lost += FEE * (place not in paid)
            ended.cartel_pay_lost -= COST * case.scheme.is_idle
    return ended


def _verdicts(case: Case, pool: Mix) -> Counter[CaseOutcome]:
    found: Counter[CaseOutcome] = Counter()
    for jury, chance in _mixes(pool, min(sampling.JURY_SEATS, sum(pool))):
        found[case.votes(jury)] += chance  # type: ignore[assignment]
    return found


@cache
def _mixes(pool: Mix, size: int) -> tuple[tuple[Mix, float], ...]:
    """Return every mix of so many people from the pool, with its chance."""
    ways = comb(sum(pool), size)
    return tuple(
        (mix, comb(pool[0], mix[0]) * comb(pool[1], mix[1]) * comb(pool[2], mix[2]) / ways)
        for mix in _sums(size)
    )


def _sums(size: int) -> Iterator[Mix]:
    for first in range(size + 1):
        for second in range(size + 1 - first):
            yield first, second, size - first - second


def _chance_of(kinds: tuple[int, ...], pool: Mix) -> float:
    """Return the chance to draw these kinds in this order."""
    counts = Counter(kinds)
    ways = 1
    for kind, num in counts.items():
        ways *= perm(pool[kind], num)
    return ways / perm(sum(pool), len(kinds))


def _without(pool: Mix, kinds: tuple[int, ...]) -> Mix:
    """Return who is left for the jury. Those who are away may be others than as seats."""
    counts = Counter(kinds)
    is_split = pool[AWAY] and not counts[AWAY]
    here, away = counts[HERE], counts[AWAY]
    if is_split:  # they were there as seats; as jurors they may be away
        away = round(here * pool[AWAY] / (pool[HERE] + pool[AWAY]))
        here -= away
    return (
        max(0, pool[BAD] - counts[BAD]),
        max(0, pool[HERE] - here),
        max(0, pool[AWAY] - away),
    )


@dataclass(frozen=True, slots=True)
class Rates:
    """Per 10 000 rounds of one participant, in rewards; convictions are a number."""

    honest_loss: float
    honest_convicted: float
    cartel_loss: float


def rates(scheme: Scheme, num_bad: int, p_honest: float, p_cartel: float) -> Rates:
    """Return what the honest lose, and the cartel in comparison with honest conduct.

    `p_honest` and `p_cartel` are the shares of their payloads that are audited.
    """
    num_good, silent = PEOPLE - num_bad, scheme.silent_rounds / 100
    other, own = Expected(), Expected()
    for weight, away in ((silent, 1.0), (1 - silent, 0.0)):
        seats = round(away * scheme.silent_seats * num_good)
        jurors = round(away * scheme.silent_jurors * num_good)
        num_there = num_good - seats
        share = weight * num_there / (num_good - silent * scheme.silent_seats * num_good)
        # An honest target is there itself.
        mixes = ((num_bad, num_there - 1, seats), (num_bad, num_good - 1 - jurors, jurors))
        other.add(audit(Case(scheme, is_own=False, truth=VerdictKind.OK), *mixes), share)
        mixes = ((num_bad - 1, num_there, seats), (num_bad - 1, num_good - jurors, jurors))
        own.add(_own(scheme, mixes), weight)
    ratio, unit = num_bad / num_good, 10_000 / 10**6
    saved = COST if scheme.cheats else 0
    own_seats = own.cartel_seats + own.cartel_pay_lost
    other_seats = other.cartel_seats + other.cartel_pay_lost
    honest = p_honest * (other.target + other.honest_seats)
    cartel = p_cartel * (own.target + own_seats) + p_honest * other_seats / ratio
    return Rates(
        honest_loss=unit * (honest + p_cartel * ratio * own.honest_seats),
        honest_convicted=10_000 * p_honest * other.convicted,
        cartel_loss=unit * (cartel - saved),
    )


def _own(scheme: Scheme, mixes: tuple[Mix, Mix]) -> Expected:
    """Return what an audit of one of the cartel costs."""
    if not scheme.cheats:
        return audit(Case(scheme, is_own=True, truth=VerdictKind.OK), *mixes)
    found, seen = Expected(), POWER_PPM / 10**6
    for truth, weight in ((VerdictKind.MISMATCH, seen), (VerdictKind.INCONCLUSIVE, 1 - seen)):
        found.add(audit(Case(scheme, is_own=True, truth=truth), *mixes), weight)
    return found
