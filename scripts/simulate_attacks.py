"""Play thousands of rounds of audits with cartels, on the pure rules and without a model.

Owns: the tables of docs/simulation.md. Sampling, seats, outcomes, juries and prices are those of
`troth_attestation`; the formulas beside them enumerate every mix of seats and jurors.
Never: touches a network, a chain or a file, except `--out` and `--plot`. The seed is printed; the
same seed gives the same tables. Next: `attack_world.py`, `attack_formulas.py`,
`simulation_plot.py`.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from attack_formulas import Rates, rates
from attack_world import (
    CAP,
    COST,
    FEE,
    P_BASE_PPM,
    PEOPLE,
    POWER_PPM,
    SCHEMES,
    Account,
    Play,
    Scheme,
    populate,
)
from simulation_plot import draw

from troth_coordinator.rules import economics

SHARES = (0.10, 0.20, 0.33, 0.40, 0.50)
FORGED = (0.002, 0.005, 0.01, 0.02, 0.05)
DRAWN_TILES = 64
MARKS = ("<!-- simulation -->", "<!-- end of simulation -->")
CAUGHT_MARKS = ("<!-- caught -->", "<!-- end of caught -->")
FORGED_MARKS = ("<!-- forged -->", "<!-- end of forged -->")
HEAD = (
    "the cartel | of 64 | an honest member loses: formula | played | is convicted: formula "
    "| played | is jailed | audited | a cartel member loses: formula | played"
)
CAUGHT_HEAD = "of 64 | caught in a round: formula | played | 95 % caught after | loss a round"
FORGED_HEAD = "forged tiles | seen by one audit | rounds until 95 % are seen"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what the formulas say, then what was played.

    Amounts are rewards, counts are events, all for 10 000 rounds of one participant. `sampled` is
    the share of honest payloads that was audited. `caught` is per round of a cheat.
    """

    scheme: Scheme
    num_bad: int
    formula: Rates
    played: Rates
    jailed: float
    sampled: float
    caught: float


def row(scheme: Scheme, share: float, num_rounds: int, seed: int) -> Row:
    """Play one row."""
    world = populate(scheme, share, seed)
    play = Play(world)
    play.run(num_rounds)
    good = [one for index, one in enumerate(play.people) if index not in world.bad]
    bad = [play.people[index] for index in world.bad]
    unit = 10_000 / num_rounds
    saved = COST * num_rounds if scheme.cheats else 0
    lost = sum(_against_honest(one, scheme) - saved for one in bad)
    played = Rates(
        honest_loss=unit * sum(one.lost for one in good) / len(good) / 10**6,
        honest_convicted=unit * sum(one.convictions for one in good) / len(good),
        cartel_loss=unit * lost / len(bad) / 10**6,
    )
    sampled = play.sampled(is_bad=False)
    return Row(
        scheme=scheme,
        num_bad=len(bad),
        formula=rates(scheme, len(bad), sampled, play.sampled(is_bad=True)),
        played=played,
        jailed=unit * sum(one.num_jails for one in good) / len(good),
        sampled=sampled,
        caught=sum(one.convictions for one in bad) / (num_rounds * len(bad)),
    )


def _against_honest(one: Account, scheme: Scheme) -> int:
    """Return what a cartel member lost against an honest one in its seats."""
    spared = COST * one.num_seats if scheme.is_idle else 0
    return one.lost + FEE * one.num_seats - one.earned - spared


def as_text(one: Row) -> str:
    """Return a row as a line of the table."""
    cells = (
        one.scheme.name,
        f"{one.num_bad}",
        f"{one.formula.honest_loss:.1f}",
        f"{one.played.honest_loss:.1f}",
        f"{one.formula.honest_convicted:.2f}",
        f"{one.played.honest_convicted:.2f}",
        f"{one.jailed:.1f}",
        f"{one.sampled:.1%}",
        f"{one.formula.cartel_loss:.0f}",
        f"{one.played.cartel_loss:.0f}",
    )
    return "| " + " | ".join(cells) + " |"


def caught(played: list[Row]) -> Iterator[str]:
    """Yield the table of those who skip their work."""
    for one in played:
        if one.scheme.cheats:
            mu = economics.captured(PEOPLE, one.num_bad)
            d = Fraction(P_BASE_PPM * POWER_PPM, 10**12) * (1 - mu)
            loss = one.played.cartel_loss / 10_000
            cells = (
                f"{one.num_bad}",
                f"{float(d):.4f}",
                f"{one.caught:.4f}",
                f"{economics.rounds_to_capture(d)} rounds",
                f"{loss:.2f} R",
            )
            yield "| " + " | ".join(cells) + " |"


def forged() -> Iterator[str]:
    """Yield the table of smugglers: what one audit sees, and when."""
    drawn = economics.drawn_chance(P_BASE_PPM, PEOPLE, CAP)
    for share in FORGED:
        seen = economics.tiles_seen(round(share * 10**6), DRAWN_TILES)
        rounds = economics.rounds_to_capture(drawn * seen)
        yield f"| {share:.1%} | {float(seen):.0%} | {rounds} |"


def table(head: str, lines: list[str]) -> list[str]:
    """Put a head over the lines."""
    return [f"| {head} |", "|" + "---|" * (head.count("|") + 1), *lines]


def main() -> None:
    """Parse the arguments, print the tables; with --out replace them in a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="page whose tables are replaced")
    parser.add_argument("--plot", type=Path, help="SVG to write")
    args = parser.parse_args()
    print(f"seed {args.seed}, {args.rounds} rounds a row", *table(HEAD, []), sep="\n")
    played = []
    for scheme in SCHEMES:
        for share in SHARES:
            played.append(row(scheme, share, args.rounds, args.seed))
            print(as_text(played[-1]), flush=True)
    tables = {
        MARKS: table(HEAD, [as_text(one) for one in played]),
        CAUGHT_MARKS: table(CAUGHT_HEAD, list(caught(played))),
        FORGED_MARKS: table(FORGED_HEAD, list(forged())),
    }
    print(*tables[CAUGHT_MARKS], *tables[FORGED_MARKS], sep="\n")
    if args.out is not None:
        for marks, lines in tables.items():
            replace_table(args.out, lines, marks)
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
