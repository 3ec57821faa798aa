"""How well DeMo trains beside AdamW and Signum at equal tokens: grids of rates, then more seeds.

Owns: which runs are played. Each method gets three learning rates on the first seed; while the best
one is the lowest or the highest, the next one follows. The other seeds are played at the best rate.
Never: trains (`training.py`), or claims: results go to docs/results.md with their machine. A killed
script goes on: finished runs are skipped, and the one under way continues from its last save.
Next: `methods.py` for the methods; `quality_table.py` and `quality_plot.py` for what was found.

    OMP_NUM_THREADS=1 python scripts/bench/quality.py --sizes demo --rounds 128 \
        --out runs/quality.jsonl
    python scripts/bench/quality.py --table runs/*.jsonl --plot docs/images/quality.svg

Several processes take a file and some of the methods each; `--table` reads all files together.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from json_lines import read_lines
from quality_table import ARMS, Arm, findings, last_loss, table
from training import SIZES, Point, Sweep, sizes_help

WD_NANO = 100_000_000
"""Weight decay of every method: that of the shipped presets, and usual for AdamW."""
MAX_TOKENS = 1_000_000
TOKENS_A_ROUND = 2_048


def search(loss_at: Callable[[int], float], first: Sequence[int]) -> int:
    """Return the rate with the lowest loss; steps of two lead out of the first ones, if need be."""
    rates = sorted(first)
    while True:
        losses = {rate: loss_at(rate) for rate in rates}
        best = min(rates, key=losses.__getitem__)
        if best == rates[0] and best > 1:
            rates.insert(0, best // 2)
        elif best == rates[-1]:
            rates.append(best * 2)
        else:
            return best


def compare(sweep: Sweep, arm: Arm, size: str, rounds: int, seeds: Sequence[int]) -> None:
    """Play what is lacking of one method on one size."""
    first = Point(size, rounds, 0, seeds[0], arm.method, arm.k, WD_NANO)

    def loss_at(lr_nano: int) -> float:
        return last_loss(sweep.play(replace(first, lr_nano=lr_nano)))

    best = search(loss_at, arm.rates_nano)
    for seed in seeds[1:]:
        sweep.play(replace(first, lr_nano=best, seed=seed))


def show(paths: Sequence[Path], plot: Path | None) -> None:
    """Print what the files have as a table, and draw it."""
    found = findings(line for path in paths for line in read_lines(path))
    print(table(found))
    if plot is not None:
        from quality_plot import svg_of  # noqa: PLC0415 - matplotlib, only where it is asked for

        plot.write_text(svg_of(found))


def main() -> int:
    """Play what the file lacks, or show what files have."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/quality.jsonl"))
    parser.add_argument("--data", type=Path, default=Path("runs/stdlib"), help="token data")
    sizes = {"choices": SIZES, "help": sizes_help()}
    parser.add_argument("--sizes", nargs="+", default=["demo", "6m"], **sizes)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS), help="methods")
    parser.add_argument("--rounds", type=int, default=128, help="of 2,048 tokens each")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--every", type=int, default=8, help="rounds between two losses and saves")
    parser.add_argument("--table", type=Path, nargs="+", metavar="FILE", help="play nothing")
    parser.add_argument("--plot", type=Path, metavar="SVG", help="with --table: draw the losses")
    options = parser.parse_args()
    if options.table:
        show(options.table, options.plot)
        return 0
    if not 10 <= options.rounds <= MAX_TOKENS // TOKENS_A_ROUND:
        parser.error(f"expected 10 to {MAX_TOKENS // TOKENS_A_ROUND} rounds: a run has 1 M tokens")
    sweep = Sweep(options.out, options.data, options.every)
    for size in options.sizes:
        for name in options.arms:
            compare(sweep, ARMS[name], size, options.rounds, options.seeds)
    show([options.out], None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
