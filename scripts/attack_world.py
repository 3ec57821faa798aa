"""The world of `simulate_attacks.py`: the people, the verdicts of a cartel, round after round.

Owns: the population, the verdicts of each kind, the audits, juries and fines of a row.
Never: a rule. Draws, outcomes, juries and prices are those of `troth_attestation` and
`troth_coordinator.rules`; so a change of a rule changes the table.
Next: `attack_formulas.py` for the numbers without play, `simulate_attacks.py` for the table.

All amounts are in rewards. Members of a cartel that are convicted are counted and go on, so that
the mix stays what the row says.
"""

import hashlib
import random
from dataclasses import dataclass, field, replace

from troth_attestation import quorum, sampling, slashing
from troth_attestation.panel import Panel, Report
from troth_attestation.quorum import AuditOutcome, CaseOutcome, SeatFault
from troth_attestation.sampling import Payloads, Rates
from troth_attestation.verdict import VerdictKind
from troth_coordinator.rules import economics, standing
from troth_coordinator.rules.audits import FIRST_SEATS, SECOND_SEATS
from troth_coordinator.rules.params_checks import least_keep_stake
from troth_coordinator.rules.refusal import openings_price

PEOPLE = 64
EVERYBODY = 2**PEOPLE - 1
CAP, SEAT_LOAD = 15, 1
P_BASE_PPM, P_NEW_PPM = 100_000, 500_000
POWER_PPM = 950_000
"""Chance that a sampled cheat lies above the mismatch bound (to all judges alike)."""
NOISE_PPM = 1_000
"""Chance that an honest seat takes honest work for a mismatch, each on its own."""
UNPROVEN_PPM = 5_000
"""Chance that honest work looks inconclusive, to all judges alike."""
R = 10**6
STAKE, UNVESTED = 100 * R, 100 * R
"""The smallest stake of the presets, and an assumption about what a conviction finds unvested."""
COST = 8 * R // 10
FEE = 17 * R // 20
"""A recomputation costs the first, and the presets pay the second for it."""
REFUSAL = economics.refusal_prices(
    openings_price(R, P_BASE_PPM, PEOPLE * P_BASE_PPM, CAP), least_keep_stake(STAKE, R, R)
)[0]
PRICES = slashing.Prices(R, FEE, R)
TO_A_JURY = (AuditOutcome.ACCUSED, AuditOutcome.UNAVAILABLE)
NEW_ROUNDS = 20
TRUE_SKETCH = (1000,) * 4
"""Four numbers stand for 64: only whether two agree matters here."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """The conduct of a cartel.

    `says` is its verdict about others, as seat and as juror; it clears its own. `is_idle`: it
    computes no gradient as a judge and invents its sketch. `cheats`: its trainers skip their work.
    `silent_seats` and `silent_jurors` are the shares of the honest that are away, in so many of
    each 100 rounds. Those who are away as seats do not train either.
    """

    name: str
    story: str
    says: VerdictKind
    is_idle: bool = False
    cheats: bool = False
    silent_seats: float = 0.0
    silent_jurors: float = 0.0
    silent_rounds: int = 100


SCHEMES = (
    Scheme("framing", "says mismatch about everybody else", VerdictKind.MISMATCH),
    Scheme("unavailable", "says that nobody served it anything", VerdictKind.UNAVAILABLE),
    Scheme("inconclusive", "computes, and then says inconclusive", VerdictKind.INCONCLUSIVE),
    Scheme(
        "idle",
        "says inconclusive with an invented sketch",
        VerdictKind.INCONCLUSIVE,
        is_idle=True,
    ),
    Scheme(
        "leavers",
        "frames when half of the honest have left and do not vote",
        VerdictKind.MISMATCH,
        silent_jurors=0.5,
    ),
    Scheme(
        "outage",
        "frames when half of the honest fall silent at once, for six rounds in 100",
        VerdictKind.MISMATCH,
        silent_seats=0.5,
        silent_jurors=0.5,
        silent_rounds=6,
    ),
    Scheme("skipping", "frames, and skips its own work", VerdictKind.MISMATCH, cheats=True),
)


@dataclass
class Account:
    """The losses and fees of one participant, in millionths of a reward."""

    fines: int = 0
    unpaid: int = 0
    slashed: int = 0
    earned: int = 0
    convictions: int = 0
    num_seats: int = 0
    num_jails: int = 0
    new_until: int = 0
    unproven: list[int] = field(default_factory=list)
    ring: standing.StrikeRing = standing.NO_STRIKES

    @property
    def lost(self) -> int:
        """Fines, rewards that were not paid, and what juries took."""
        return self.fines + self.unpaid + self.slashed


@dataclass(frozen=True)
class World:
    """The cartel of one row and its scheme, the honest who are away, the source of chance."""

    scheme: Scheme
    bad: frozenset[int]
    away_as_seat: frozenset[int]
    away_as_juror: frozenset[int]
    chance: random.Random
    seed: int

    def at(self, round_: int) -> "World":
        """Return the world of a round: nobody is away in most rounds of an outage."""
        if round_ % 100 < self.scheme.silent_rounds:
            return self
        return replace(self, away_as_seat=frozenset(), away_as_juror=frozenset())

    def sigma(self, round_: int) -> bytes:
        """Return the seed of a round."""
        text = f"{self.seed}/{self.scheme.name}/{len(self.bad)}/{round_}"
        return hashlib.sha256(text.encode()).digest()

    def verdict(self, judge: int, target: int, truth: VerdictKind) -> VerdictKind:
        """Return what a judge says; `truth` is what an honest one finds."""
        if judge in self.bad:
            return VerdictKind.OK if target in self.bad else self.scheme.says
        is_wrong = self.chance.random() * 10**6 < NOISE_PPM
        return VerdictKind.MISMATCH if is_wrong and truth == VerdictKind.OK else truth

    def report(self, seat: int, target: int, truth: VerdictKind) -> Report:
        """Return the report of a seat."""
        if seat in self.away_as_seat:
            return Report()
        sketch = TRUE_SKETCH
        if seat in self.bad and self.scheme.is_idle:
            sketch = tuple(self.chance.randrange(-2000, 2000) for _ in sketch)
        return Report(True, self.verdict(seat, target, truth), sketch)

    def vote(self, juror: int, target: int, truth: VerdictKind) -> VerdictKind | None:
        """Return the vote of a juror."""
        return None if juror in self.away_as_juror else self.verdict(juror, target, truth)


def populate(scheme: Scheme, share: float, seed: int) -> World:
    """Draw the cartel, and those of the others who are away."""
    chance = random.Random(f"{seed}/{scheme.name}/{share}")
    order = chance.sample(range(PEOPLE), PEOPLE)
    num_bad = round(share * PEOPLE)
    good = order[num_bad:]
    seats = good[: round(scheme.silent_seats * len(good))]
    jurors = good[: round(scheme.silent_jurors * len(good))]
    bad = frozenset(order[:num_bad])
    return World(scheme, bad, frozenset(seats), frozenset(jurors), chance, seed)


@dataclass
class Play:
    """A row under way."""

    world: World
    people: list[Account] = field(default_factory=lambda: [Account() for _ in range(PEOPLE)])
    num_targets: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    num_payloads: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})

    def run(self, num_rounds: int) -> None:
        """Play so many rounds."""
        for round_ in range(num_rounds):
            world, included, new = self.world.at(round_), 0, 0
            for index, person in enumerate(self.people):
                new |= (person.new_until > round_) << index
                included |= (index not in world.away_as_seat) << index
                self.num_payloads[index in world.bad] += index not in world.away_as_seat
            sigma = world.sigma(round_)
            limit = sampling.limit(CAP, SEAT_LOAD, EVERYBODY, new, EVERYBODY)
            rates = Rates(P_BASE_PPM, P_NEW_PPM, limit)
            for target in sampling.sampled_targets(sigma, Payloads(included, new), rates):
                self.num_targets[target in world.bad] += 1
                self._audit(world, round_, sigma, target)

    def sampled(self, is_bad: bool) -> float:
        """Return the share of the payloads of the cartel, or of the others, that was audited."""
        return self.num_targets[is_bad] / self.num_payloads[is_bad]

    def _audit(self, world: World, round_: int, sigma: bytes, target: int) -> None:
        truth = self._truth(target)
        seats = sampling.seats_of(sigma, target, EVERYBODY)
        every = [world.report(seat, target, truth) for seat in seats]
        panel, found = audit_outcome(every)
        verdict: CaseOutcome | None = None
        if found in TO_A_JURY:
            seed = sampling.case_seed(sigma, bytes(32), round_, target, 0)
            jurors = sampling.jury(seed, EVERYBODY, [target], seats, seats)
            votes = [world.vote(juror, target, truth) for juror in jurors]
            verdict = quorum.case_outcome(votes, is_work=True)
        if found == AuditOutcome.UNPROVEN or verdict == CaseOutcome.NOT_PROVEN:
            self._note_unproven(round_, target)
        charge(self.people[target], found, verdict)
        self._settle_seats(world, seats, panel, verdict)

    def _truth(self, target: int) -> VerdictKind:
        drawn = self.world.chance.random() * 10**6
        if target in self.world.bad and self.world.scheme.cheats:
            return VerdictKind.MISMATCH if drawn < POWER_PPM else VerdictKind.INCONCLUSIVE
        return VerdictKind.INCONCLUSIVE if drawn < UNPROVEN_PPM else VerdictKind.OK

    def _note_unproven(self, round_: int, target: int) -> None:
        """Raise the rate at the second one within 100 rounds; the third is a strike."""
        person = self.people[target]
        recent = [one for one in person.unproven if round_ - one < standing.STRIKE_ROUNDS]
        person.unproven = [*recent, round_]
        if len(person.unproven) >= 2:
            person.new_until = round_ + 1 + NEW_ROUNDS
        if len(person.unproven) >= 3:
            person.unproven = []
            person.ring, is_third = standing.add_strike(person.ring, round_)
            person.num_jails += is_third

    def _settle_seats(
        self,
        world: World,
        seats: tuple[int, ...],
        panel: Panel,
        verdict: CaseOutcome | None,
    ) -> None:
        paid, faults = paid_places(panel, verdict), panel.faults(verdict)
        for place in range(len(panel.reports)):
            index, person = seats[place], self.people[seats[place]]
            if index in world.away_as_seat:
                continue  # one outage is one fine, however many seats it leaves empty
            person.num_seats += 1
            person.earned += FEE * (place in paid)
            if place in faults:
                person.fines += fine_of(faults[place])


def audit_outcome(every: list[Report]) -> tuple[Panel, AuditOutcome]:
    """Return the panel that an audit heard, and its outcome after all extensions."""
    for count in sorted({FIRST_SEATS, min(SECOND_SEATS, len(every)), len(every)}):
        panel = Panel(every[:count])
        found = panel.outcome(len(every))
        if found != AuditOutcome.EXTEND:
            break
    return panel, found


def paid_places(panel: Panel, verdict: CaseOutcome | None) -> frozenset[int]:
    """Return the seats that are paid once a jury, where there was one, has decided."""
    paid = panel.paid_seats()
    if verdict == CaseOutcome.NO_OPENINGS:
        kinds = enumerate(report.kind for report in panel.reports)
        paid |= {place for place, kind in kinds if kind == VerdictKind.UNAVAILABLE}
    return paid


def charge(person: Account, found: AuditOutcome, verdict: CaseOutcome | None) -> None:
    """Take from a target what the end of its audit costs it."""
    if found == AuditOutcome.CLEARED or verdict == CaseOutcome.ACQUITTED:
        return
    person.unpaid += R
    if verdict == CaseOutcome.CONVICTED:
        funds = slashing.Funds(claimable=0, stake=STAKE, unbonding=0, unvested=UNVESTED)
        person.slashed += slashing.take(slashing.work(funds, is_repeated=False), funds).total
        person.convictions += 1
    elif verdict == CaseOutcome.NO_OPENINGS:
        person.fines += REFUSAL


def fine_of(fault: SeatFault) -> int:
    """Return what a fault of a seat costs."""
    funds = slashing.Funds(claimable=0, stake=STAKE, unbonding=0, unvested=0)
    return slashing.seat(fault, funds, PRICES).principal
