"""The findings of `quality.py`: one for a method and size, and all of them as a table.

Owns: the methods compared, the best rate of each, mean and range over seeds.
Never: trains, or draws.
Next: `quality_plot.py` for the picture.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from training import last_loss


@dataclass(frozen=True)
class Arm:
    """A method with its k (DeMo's alone), and the learning rates that it is tried with first."""

    title: str
    method: str
    k: int
    rates_nano: tuple[int, ...]


_DEMO_RATES = (750_000, 1_500_000, 3_000_000)
ARMS = {
    "adamw": Arm("AdamW", "adamw", 32, (1_500_000, 3_000_000, 6_000_000)),
    "signum": Arm("Signum", "signum", 32, (375_000, 750_000, 1_500_000)),
    "demo-4": Arm("DeMo, k = 4", "demo", 4, _DEMO_RATES),
    "demo-8": Arm("DeMo, k = 8", "demo", 8, _DEMO_RATES),
    "demo-32": Arm("DeMo, k = 32", "demo", 32, _DEMO_RATES),
    "delayed-32": Arm("DeMo, k = 32, one round late", "delayed", 32, _DEMO_RATES),
}


@dataclass(frozen=True)
class Finding:
    """One method on one size. `tried`: rate -> last loss of the first seed, infinite if diverged.

    `runs`: the lines at the best rate, one a seed, in order of the seeds.
    """

    title: str
    size: str
    num_parameters: int
    num_bytes: int
    tokens: int
    rounds: int
    tried: dict[int, float]
    best_nano: int
    runs: Sequence[dict[str, Any]]

    @property
    def last(self) -> list[float]:
        """Return the last loss of each seed."""
        return [last_loss(line) for line in self.runs]

    def curve(self) -> list[tuple[int, list[float]]]:
        """Return (tokens, loss of each seed) along the way."""
        per_round = self.tokens // self.rounds
        rounds = sorted(map(int, self.runs[0]["losses"]))
        return [(at * per_round, [line["losses"][str(at)] for line in self.runs]) for at in rounds]


def findings(lines: Iterable[dict[str, Any]]) -> list[Finding]:
    """Return what runs show: by size, and in the order of the methods."""
    runs: dict[tuple[int, str, int, int], list[dict[str, Any]]] = {}
    for line in lines:
        at = (line["num_parameters"], line["size"], line["rounds"], _place(line))
        runs.setdefault(at, []).append(line)
    return [_finding(list(ARMS.values())[at[3]].title, own) for at, own in sorted(runs.items())]


def table(found: Sequence[Finding]) -> str:
    """Return a table in Markdown: a method and size a line."""
    head = ("parameters", "tokens", "method", "bytes a round", "rate: loss of one seed", "mean")
    rows = [(*head, "lowest to highest", "seeds")]
    rows.append(("---:", "---:", "---", "---:", "---", "---:", "---:", "---:"))
    for one in found:
        tried = [_tried(rate, loss, one.best_nano) for rate, loss in sorted(one.tried.items())]
        rows.append(
            (
                f"{one.num_parameters:,}",
                f"{one.tokens:,}",
                one.title,
                f"{one.num_bytes:,}",
                ", ".join(tried),
                f"**{fmean(one.last):.3f}**",
                f"{min(one.last):.3f} to {max(one.last):.3f}",
                str(len(one.runs)),
            )
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _tried(rate: int, loss: float, best: int) -> str:
    words = f"{rate / 1e9:g}: {f'{loss:.3f}' if math.isfinite(loss) else 'diverged'}"
    return f"**{words}**" if rate == best else words


def _place(line: dict[str, Any]) -> int:
    arms = [(arm.method, arm.k) for arm in ARMS.values()]
    return arms.index((line["method"], line["k"]))


def _finding(title: str, lines: Sequence[dict[str, Any]]) -> Finding:
    first_seed = min(line["seed"] for line in lines)
    tried = {line["lr_nano"]: last_loss(line) for line in lines if line["seed"] == first_seed}
    best = min(tried, key=tried.__getitem__)
    runs = sorted(
        (line for line in lines if line["lr_nano"] == best), key=lambda line: line["seed"]
    )
    one = runs[0]
    return Finding(
        title,
        *(one[name] for name in ("size", "num_parameters", "num_bytes", "tokens", "rounds")),
        tried,
        best,
        runs,
    )
