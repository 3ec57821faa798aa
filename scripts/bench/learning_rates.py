"""Which learning rate suits a size: whole rounds of four DeMo trainers, without a chain.

Owns: the sweep at the two sizes that a small machine can run, and its table. Never: a claim:
results go to docs/results.md with their machine. A killed sweep goes on: finished runs are
skipped, and the one under way continues from its last saved round.
Next: `training.py` plays the runs; `quality.py` compares with other methods; `configs/`.

    OMP_NUM_THREADS=1 python scripts/bench/learning_rates.py --out runs/learning-rates.jsonl
    python scripts/bench/learning_rates.py --out runs/learning-rates.jsonl --table
"""

import argparse
import json
import math
import sys
from itertools import product
from pathlib import Path

from training import SIZES, Point, Sweep, last_loss, read_lines

RATES_NANO = (375_000, 750_000, 1_500_000, 3_000_000, 6_000_000)


def table(path: Path) -> str:
    """Return the last losses: a size and seed a line, a learning rate a column."""
    lines = list(read_lines(path))
    rates = sorted({line["lr_nano"] for line in lines})
    keys = ("num_parameters", "size", "rounds", "seed")
    runs = sorted({tuple(line[key] for key in keys) for line in lines})
    head = ["size", "parameters", "rounds", "seed", *(f"{rate / 1e9:g}" for rate in rates)]
    rows = [head, ["---"] * len(head)]
    for parameters, size, rounds, seed in runs:
        own = {
            line["lr_nano"]: _cell(last_loss(line))
            for line in lines
            if (line["size"], line["rounds"], line["seed"]) == (size, rounds, seed)
        }
        cells = [size, f"{parameters:,}", str(rounds), str(seed)]
        rows.append([*cells, *(own.get(rate, "") for rate in rates)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(loss: float) -> str:
    return f"{loss:.3f}" if math.isfinite(loss) else "diverged"


def main() -> int:
    """Play what the file lacks, or print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/learning-rates.jsonl"))
    parser.add_argument("--data", type=Path, default=Path("runs/stdlib"), help="token data")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["demo", "6m"])
    parser.add_argument("--lr-nano", type=int, nargs="+", default=list(RATES_NANO))
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--every", type=int, default=10, help="rounds between two losses and saves")
    parser.add_argument(
        "--table", action="store_true", help="print what the file has; play nothing"
    )
    options = parser.parse_args()
    if not options.table:
        sweep = Sweep(options.out, options.data, options.every)
        for size, seed, lr_nano in product(options.sizes, options.seeds, options.lr_nano):
            found = sweep.play(Point(size, options.rounds, lr_nano, seed))
            print(json.dumps(found), flush=True)
    print(table(options.out), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
