"""Tabulate what one Solana leader can do with a seed: convict, block, hide from the sample.

Owns: the colluders, the seeds that a leader tries, and the table. The draws themselves are those of
`troth_attestation.sampling`, called once for each seed that is tried.
Never: touches a network, a chain or a file, except `--out`. The same seed gives the same table.
Next: docs/threat-model.md, whose table it writes and whose text says what follows.

A seed is the hash of one named block. Its leader may change the block and look at the seed that
follows, so it picks the best of several seeds. A column gives the share of single seeds that serve
the colluders, by formula and as drawn, and how many seeds must be tried for an even chance.
"""

import argparse
import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from simulate_attacks import replace_table

from troth_attestation import sampling
from troth_attestation.sampling import Payloads, Rates
from troth_coordinator.rules import economics
from troth_coordinator.rules.audits import SECOND_SEATS

PEOPLE = 64
EVERYBODY = 2**PEOPLE - 1
COLLUDERS = (12, 16, 21)
HONEST, OURS = PEOPLE - 1, 0
"""An honest target has the highest index; colluders the lowest ones."""
RATES = Rates(p_base_ppm=100_000, p_new_ppm=500_000, limit=15)
SEATS_OUT = SECOND_SEATS
"""Seats of an audit where everybody speaks, all left out of the jury of 64 people."""
NUM_TILES, DRAWN, FORGED_PERCENT = 10_000, 64, 2
START, END = "<!-- seeds -->", "<!-- end of seeds -->"
HEAD = "what the leader wants | of 64 | share of seeds: formula | drawn | seeds for an even chance"

Serves = Callable[[bytes, int], bool]
"""Whether a seed serves so many colluders."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One use of a seed: what it would give, the test on real draws, the formula."""

    name: str
    serves: Serves
    chance: Callable[[int], Fraction]


def jury_of(seed: bytes, target: int) -> tuple[int, ...]:
    """Return the jury of a target whose audit has had five seats."""
    seats = sampling.seats_of(hashlib.sha256(seed).digest(), target, EVERYBODY)[:SEATS_OUT]
    return sampling.jury(seed, EVERYBODY, [target], seats, ())


def accused_jury(seed: bytes) -> tuple[int, ...]:
    """Return the jury of an honest target that three colluders of five seats accused."""
    seats = (0, 1, 2, HONEST - 1, HONEST - 2)
    return sampling.jury(seed, EVERYBODY, [HONEST], seats, seats[:3])


def num_ours(members: tuple[int, ...], colluders: int) -> int:
    """Count the colluders among these members."""
    return sum(member < colluders for member in members)


def convicts(seed: bytes, colluders: int) -> bool:
    """Five of seven jurors convict an honest target in a bonded case, where none of them sat."""
    return num_ours(jury_of(seed, HONEST), colluders) >= 5


def convicts_accused(seed: bytes, colluders: int) -> bool:
    """Five of seven jurors convict an honest target that three of them have accused as seats."""
    return num_ours(accused_jury(seed), colluders) >= 5


def blocks(seed: bytes, colluders: int) -> bool:
    """Three of seven jurors suffice to keep a colluder from being convicted."""
    return num_ours(jury_of(seed, OURS), colluders) >= 3


def accuses(seed: bytes, colluders: int) -> bool:
    """Three of five seats accuse an honest target that is sampled."""
    return num_ours(sampling.seats_of(seed, HONEST, EVERYBODY)[:SEATS_OUT], colluders) >= 3


def hides(seed: bytes, colluders: int) -> bool:
    """No colluder is sampled in the round."""
    sampled = sampling.sampled_targets(seed, Payloads(EVERYBODY), RATES)
    return num_ours(sampled, colluders) == 0


def spares(seed: bytes, _colluders: int) -> bool:
    """No forged tile of a sampled colluder is drawn."""
    drawn = sampling.drawn_tiles(seed, OURS, NUM_TILES, DRAWN)
    return min(drawn) >= NUM_TILES * FORGED_PERCENT // 100


def of_jury(colluders: int, needed: int, *, is_target: bool) -> Fraction:
    """Return the chance of so many colluders among seven of those who did not sit in the audit.

    The seats are drawn from everybody but the target, so leaving them out changes no chance.
    """
    return economics.capture(PEOPLE - 1, colluders - is_target, sampling.JURY_SEATS, needed)


WISHES = (
    Wish("convict an honest target", convicts, lambda n: of_jury(n, 5, is_target=False)),
    Wish(
        "convict whom three of its seats accused",
        convicts_accused,
        lambda n: economics.capture(PEOPLE - 1 - SEATS_OUT, n - 3, sampling.JURY_SEATS, 5),
    ),
    Wish("keep a colluder from conviction", blocks, lambda n: of_jury(n, 3, is_target=True)),
    Wish(
        "accuse a sampled honest target",
        accuses,
        lambda n: economics.capture(PEOPLE - 1, n, SEATS_OUT, 3),
    ),
    Wish(
        "sample no colluder",
        hides,
        lambda n: (1 - Fraction(RATES.p_base_ppm, 10**6)) ** n,
    ),
    Wish(
        f"draw no tile of the {FORGED_PERCENT} % that are forged",
        spares,
        lambda _n: Fraction(
            math.comb(NUM_TILES * (100 - FORGED_PERCENT) // 100, DRAWN),
            math.comb(NUM_TILES, DRAWN),
        ),
    ),
)


def tries(chance: Fraction) -> int:
    """Return how many seeds give an even chance that one of them serves."""
    return max(1, math.ceil(math.log(0.5) / math.log1p(-float(chance))))


def drawn_share(wish: Wish, colluders: int, num_seeds: int, seed: int) -> float:
    """Return the share of so many seeds that serve."""
    names = (f"{seed}/{wish.name}/{colluders}/{n}".encode() for n in range(num_seeds))
    return sum(wish.serves(hashlib.sha256(one).digest(), colluders) for one in names) / num_seeds


def rows(num_seeds: int, seed: int) -> Iterator[str]:
    """Yield the lines of the table as they are ready."""
    for wish in WISHES:
        for colluders in COLLUDERS:
            chance = wish.chance(colluders)
            drawn = drawn_share(wish, colluders, num_seeds, seed)
            cells = (
                wish.name,
                str(colluders),
                f"{float(chance):.3%}",
                f"{drawn:.3%}",
                str(tries(chance)),
            )
            yield "| " + " | ".join(cells) + " |"


def main() -> None:
    """Parse the arguments, print the table; with --out replace it in a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5_000, help="seeds drawn for each row")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="page whose table is replaced")
    args = parser.parse_args()
    lines = [f"| {HEAD} |", "|" + "---|" * (HEAD.count("|") + 1)]
    print(f"seed {args.seed}, {args.seeds} seeds a row", *lines, sep="\n")
    for line in rows(args.seeds, args.seed):
        lines.append(line)
        print(line, flush=True)
    if args.out is not None:
        replace_table(args.out, lines, (START, END))


if __name__ == "__main__":
    main()
