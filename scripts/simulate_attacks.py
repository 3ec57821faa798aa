"""Play thousands of rounds of audits with adversaries, on the pure rules and without a model.

Owns: the population and how each kind of seat speaks. Sampling, seats, outcomes, juries and
slashes are those of `troth_attestation`; the formulas beside them are `rules/economics.py`.
Never: touches a network, a chain or a file, except `--out` and `--plot`. The seed is printed; the
same seed gives the same table. Next: docs/results.md, which it writes; `simulation_plot.py`.

Adversaries skip their work in every round, clear each other, say mismatch about everybody else,
and compute honest sketches to stay in the majority. Lazy witnesses always say ok and invent a
sketch. A convicted adversary is counted and goes on, so that the mix stays what the row says.
"""

import argparse
import hashlib
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from simulation_plot import draw

from troth_attestation import quorum, sampling, slashing
from troth_attestation.quorum import AuditOutcome, CaseOutcome, Report
from troth_attestation.sampling import Rates
from troth_attestation.verdict import VerdictKind
from troth_coordinator.rules import economics

PEOPLE = 64
EVERYBODY = 2**PEOPLE - 1
RATES = Rates(p_base_ppm=100_000, p_new_ppm=500_000, cap=15)
POWER_PPM = 950_000
"""Chance that a sampled cheat lies above the mismatch bound (to all judges alike)."""
NOISE_PPM = 1_000
"""Chance that an honest seat takes honest work for a mismatch, each on its own."""
REWARD = 10**9
STAKE = 60 * REWARD
TRUE_SKETCH = (1000,) * 4
"""Four numbers stand for 64: only whether two agree matters here."""
SHARES = (0.10, 0.20, 0.33, 0.40, 0.50)
LAZY = (0.0, 0.2)
START, END = "<!-- simulation -->", "<!-- end of simulation -->"
HEAD = (
    "adversaries | lazy | d formula | d measured | 95 % caught: formula | measured "
    "| honest accused | honest slashed: formula | measured | lazy seats outvoted "
    "| work per payload | loss per round"
)


@dataclass
class Tally:
    """The counts of a row."""

    gaps: list[int] = field(default_factory=list)
    since: dict[int, int] = field(default_factory=dict)
    accused_honest: int = 0
    slashed_honest: int = 0
    sampled_honest: int = 0
    lazy_seats: int = 0
    outvoted: int = 0
    recomputed: int = 0


@dataclass(frozen=True)
class Row:
    """One line of the table: what the formulas say, then what was played.

    Rates are per round of cheating or per sampled honest payload; captures are rounds until 95 %
    are caught.
    """

    share: float
    lazy_share: float
    detection: float
    detected: float
    capture: int
    captured: int | None
    accused: float
    framing: float
    framed: float
    outvoted: float | None
    work: float


@dataclass(frozen=True)
class World:
    """The adversaries and lazy witnesses of one row, and its source of chance."""

    bad: frozenset[int]
    lazy: frozenset[int]
    chance: random.Random
    seed: int

    def sigma(self, round_: int) -> bytes:
        """Return the seed of a round."""
        return hashlib.sha256(f"{self.seed}/{len(self.bad)}/{round_}".encode()).digest()

    def verdict(self, witness: int, target: int, is_visible: bool) -> VerdictKind:
        """Return the verdict of one witness about one target."""
        if witness in self.lazy:
            return VerdictKind.OK
        if witness in self.bad:
            return VerdictKind.OK if target in self.bad else VerdictKind.MISMATCH
        if target in self.bad:
            return VerdictKind.MISMATCH if is_visible else VerdictKind.INCONCLUSIVE
        is_wrong = self.chance.random() * 10**6 < NOISE_PPM
        return VerdictKind.MISMATCH if is_wrong else VerdictKind.OK

    def report(self, witness: int, target: int, is_visible: bool) -> Report:
        """Return what a seat reveals."""
        sketch: tuple[int, ...] = TRUE_SKETCH
        if witness in self.lazy:
            sketch = tuple(self.chance.randrange(-2000, 2000) for _ in sketch)
        return Report(True, self.verdict(witness, target, is_visible), sketch)


def populate(share: float, lazy_share: float, seed: int) -> World:
    """Draw the adversaries, and the lazy ones among the others."""
    chance = random.Random(f"{seed}/{share}/{lazy_share}")
    order = chance.sample(range(PEOPLE), PEOPLE)
    num_bad = round(share * PEOPLE)
    num_lazy = round(lazy_share * (PEOPLE - num_bad))
    bad, lazy = order[:num_bad], order[num_bad : num_bad + num_lazy]
    return World(frozenset(bad), frozenset(lazy), chance, seed)


def audit(world: World, tally: Tally, sigma: bytes, target: int) -> AuditOutcome:
    """Play one audit with its extension; returns its outcome."""
    is_visible = world.chance.random() * 10**6 < POWER_PPM
    seats = sampling.seats_of(sigma, target, EVERYBODY)
    every = [world.report(witness, target, is_visible) for witness in seats]
    reports = every[: sampling.FIRST_SEATS]
    found = quorum.outcome(reports, len(seats))
    if found == AuditOutcome.EXTEND:
        reports = every
        found = quorum.outcome(reports, len(seats))
    out = quorum.outvoted(reports)
    lazy = {n for n in range(len(reports)) if seats[n] in world.lazy}
    tally.lazy_seats += len(lazy)
    tally.outvoted += len(out & lazy)
    tally.recomputed += len(reports) - len(lazy)
    return found


def play_jury(world: World, tally: Tally, sigma: bytes, target: int) -> CaseOutcome:
    """Play the jury of an accused target."""
    seed = sampling.case_seed(sigma, bytes(32), 0, target, 0)
    seats = sampling.seats_of(sigma, target, EVERYBODY)
    members = sampling.jury(seed, EVERYBODY, [target], seats, seats)
    tally.recomputed += sum(member not in world.lazy for member in members)
    votes = [world.verdict(member, target, True) for member in members]
    return quorum.case_outcome(votes, is_work=True)


def play(world: World, num_rounds: int) -> Tally:
    """Play the rounds of one row."""
    tally = Tally()
    for round_ in range(num_rounds):
        sigma = world.sigma(round_)
        for target in sampling.sampled_targets(sigma, EVERYBODY, 0, RATES):
            is_honest = target not in world.bad
            tally.sampled_honest += is_honest
            if audit(world, tally, sigma, target) != AuditOutcome.ACCUSED:
                continue
            tally.accused_honest += is_honest
            if play_jury(world, tally, sigma, target) != CaseOutcome.CONVICTED:
                continue
            if is_honest:
                tally.slashed_honest += 1
            else:
                tally.gaps.append(round_ - tally.since.get(target, -1))
                tally.since[target] = round_
    return tally


def expected(world: World) -> tuple[Fraction, Fraction]:
    """Return the formulas: detection per round, false slashes per sampled honest payload.

    The two draws are taken as independent and the noise of honest seats as none.
    """
    num_bad, blind = len(world.bad), len(world.bad) + len(world.lazy)
    accused = 1 - economics.capture(PEOPLE - 1, blind - 1, sampling.MAX_SEATS, 3)
    convicted = 1 - economics.capture(PEOPLE - 1, blind - 1, sampling.JURY_SEATS, 3)
    d = Fraction(RATES.p_base_ppm * POWER_PPM, 10**12) * accused * convicted
    framed = economics.capture(PEOPLE - 1, num_bad, sampling.MAX_SEATS, 3)
    framed *= economics.capture(PEOPLE - 1, num_bad, sampling.JURY_SEATS, 5)
    return d, framed


def row(share: float, lazy_share: float, num_rounds: int, seed: int) -> Row:
    """Play one row."""
    world = populate(share, lazy_share, seed)
    tally = play(world, num_rounds)
    d, framed = expected(world)
    ordered = sorted(tally.gaps)
    honest = max(1, tally.sampled_honest)
    return Row(
        share=share,
        lazy_share=lazy_share,
        detection=float(d),
        detected=len(tally.gaps) / (num_rounds * len(world.bad)),
        capture=economics.rounds_to_capture(d),
        captured=ordered[-1 - len(ordered) // 20] if len(ordered) >= 20 else None,
        accused=tally.accused_honest / honest,
        framing=float(framed),
        framed=tally.slashed_honest / honest,
        outvoted=tally.outvoted / tally.lazy_seats if tally.lazy_seats else None,
        work=tally.recomputed / (num_rounds * PEOPLE),
    )


def as_text(one: Row) -> str:
    """Return a row as a line of the table."""
    funds = slashing.Funds(STAKE, 0, 0)
    lost = slashing.take(slashing.work(funds, is_repeated=False), funds).total
    cells = (
        f"{one.share:.0%}",
        f"{one.lazy_share:.0%}",
        f"{one.detection:.4f}",
        f"{one.detected:.4f}",
        f"{one.capture}",
        "-" if one.captured is None else f"{one.captured}",
        f"{one.accused:.2%}",
        f"{one.framing:.3%}",
        f"{one.framed:.3%}",
        "-" if one.outvoted is None else f"{one.outvoted:.0%}",
        f"{one.work:.2f}",
        f"{one.detected * lost / REWARD:.2f} R",
    )
    return "| " + " | ".join(cells) + " |"


def rows(num_rounds: int, seed: int) -> Iterator[Row]:
    """Yield the rows as they are ready."""
    for lazy_share in LAZY:
        for share in SHARES:
            yield row(share, lazy_share, num_rounds, seed)


def main() -> None:
    """Parse the arguments, print the table; with --out replace it in a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="page whose table is replaced")
    parser.add_argument("--plot", type=Path, help="SVG to write")
    args = parser.parse_args()
    lines = [f"| {HEAD} |", "|" + "---|" * (HEAD.count("|") + 1)]
    print(f"seed {args.seed}, {args.rounds} rounds a row", *lines, sep="\n")
    played = []
    for one in rows(args.rounds, args.seed):
        played.append(one)
        lines.append(as_text(one))
        print(lines[-1], flush=True)
    if args.out is not None:
        replace_table(args.out, lines, (START, END))
    if args.plot is not None:
        draw(played, args.plot)


def replace_table(page: Path, lines: list[str], marks: tuple[str, str]) -> None:
    """Put the lines between the marks of a page."""
    before, mark, rest = page.read_text(encoding="utf-8").partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not (mark and end):
        sys.exit(f"expected the marks {marks} in {page}; found none. Add them.")
    page.write_text("\n".join([before + mark, *lines, end + after]), encoding="utf-8")


if __name__ == "__main__":
    main()
