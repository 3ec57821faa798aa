"""The picture of `simulate_attacks.py`: capture and false slashes by the share of adversaries.

Owns: two panels, formula as a line and play as dots. Never: numbers of its own.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from simulate_attacks import Row

COLOURS = ("#1f6feb", "#d4652f")
GREY = "#6e7781"


def draw(rows: Sequence["Row"], path: Path) -> None:
    """Write the rows as an SVG; the same rows give the same bytes."""
    matplotlib.rcParams.update({"svg.hashsalt": "troth", "font.size": 9, "axes.edgecolor": GREY})
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    _panel(left, rows, lambda one: one.capture, lambda one: one.captured)
    _panel(right, rows, lambda one: one.framing, lambda one: one.framed)
    left.set_title("Rounds of cheating until 95 % are caught")
    right.set_title("Sampled honest payloads that are slashed")
    left.legend(frameon=False)
    figure.savefig(path, format="svg", metadata={"Date": None})


def _panel(
    axes: Axes,
    rows: Sequence["Row"],
    formula: Callable[["Row"], float],
    played: Callable[["Row"], float | None],
) -> None:
    for colour, lazy in zip(COLOURS, _lazy_shares(rows), strict=True):
        mine = [one for one in rows if one.lazy_share == lazy]
        name = f"{lazy:.0%} of the others lazy" if lazy else "the others diligent"
        axes.plot(*_above_zero(mine, formula), color=colour, label=f"formula, {name}")
        dots = _above_zero(mine, played)
        axes.plot(*dots, "o", color=colour, markersize=4, label=f"played, {name}")
    axes.set_yscale("log")
    axes.set_xlabel("share of adversarial identities")
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.grid(visible=True, color=GREY, alpha=0.2)
    axes.spines[["top", "right"]].set_visible(False)


def _lazy_shares(rows: Iterable["Row"]) -> list[float]:
    return sorted({one.lazy_share for one in rows})


def _above_zero(
    rows: Iterable["Row"], value: Callable[["Row"], float | None]
) -> tuple[list[float], list[float]]:
    """Return what a logarithmic axis can show: x and y."""
    found = [(one.share, y) for one in rows if (y := value(one))]
    return [x for x, _ in found], [y for _, y in found]
