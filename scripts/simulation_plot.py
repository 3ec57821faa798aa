"""The picture of `simulate_attacks.py`: losses of the honest and of a cartel, by its share.

Owns: two panels, formula as a line and play as dots. Never: numbers of its own.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from attack_formulas import Rates
    from simulate_attacks import Row

COLOURS = ("#1f6feb", "#d4652f", "#2da44e", "#8250df", "#bf8700", "#cf222e", "#57606a")
GREY = "#6e7781"


def draw(rows: Sequence["Row"], path: Path) -> None:
    """Write the rows as an SVG; the same rows give the same bytes."""
    matplotlib.rcParams.update({"svg.hashsalt": "troth", "font.size": 9, "axes.edgecolor": GREY})
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    _panel(left, rows, lambda found: found.honest_loss)
    _panel(right, rows, lambda found: found.cartel_loss)
    left.set_title("An honest member loses, rewards in 10 000 rounds")
    right.set_title("A member of the cartel loses")
    left.legend(frameon=False, ncols=2, fontsize=8)
    figure.savefig(path, format="svg", metadata={"Date": None})


def _panel(axes: Axes, rows: Sequence["Row"], value: Callable[["Rates"], float]) -> None:
    names = list(dict.fromkeys(one.scheme.name for one in rows))
    for colour, name in zip(COLOURS, names, strict=False):
        mine = [one for one in rows if one.scheme.name == name]
        shares = [one.num_bad / 64 for one in mine]
        axes.plot(shares, [value(one.formula) for one in mine], color=colour, label=name)
        axes.plot(shares, [value(one.played) for one in mine], "o", color=colour, markersize=4)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_xlabel("share of colluding identities")
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.grid(visible=True, color=GREY, alpha=0.2)
    axes.spines[["top", "right"]].set_visible(False)
