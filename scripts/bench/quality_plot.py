"""The picture of `quality.py`: held-out loss against tokens, a panel for each size.

Owns: panels, and what the picture says to a screen reader. Lines differ in form, not by colour
alone. Never: trains or counts; importing this module imports matplotlib.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from quality_table import ARMS, Finding

from troth_cli.plot.draw import BLUE, GREEN, GREY, ORANGE, PAPER, RED, style, svg_text

LOOKS: Final = dict(
    zip(
        (arm.title for arm in ARMS.values()),
        (
            (BLUE, "-", "o"),
            (ORANGE, "-.", "^"),
            (GREEN, ":", "v"),
            (GREEN, "--", "s"),
            (GREEN, "-", "D"),
            (RED, "--", "x"),
        ),
        strict=True,
    )
)
"""Colour, line and mark of each method."""
TITLE: Final = "Held-out loss against tokens of AdamW, Signum and DeMo"
_WIDTH, _HEIGHT = 4.6, 3.6
"""Inches of one panel."""


def svg_of(found: Sequence[Finding]) -> str:
    """Return the picture as one `svg` element: a panel for each size."""
    sizes = list(dict.fromkeys(one.num_parameters for one in found))
    with matplotlib.rc_context(style(PAPER.ink)):
        size = (_WIDTH * len(sizes), _HEIGHT)
        figure = Figure(figsize=size)
        # Margins in inches: a layout that measures texts differs now and then.
        left, right, low, high = 0.6 / size[0], 0.2 / size[0], 0.5 / size[1], 0.35 / size[1]
        figure.subplots_adjust(left, low, 1 - right, 1 - high, wspace=0.15)
        figure.patch.set_facecolor(PAPER.paper or "none")
        panels = figure.subplots(1, len(sizes), squeeze=False)[0]
        for num_parameters, axes in zip(sizes, panels, strict=True):
            own = [one for one in found if one.num_parameters == num_parameters]
            axes.set_title(f"{num_parameters / 1e6:.2f} M parameters", fontsize=9)
            _draw(axes, own)
        panels[0].set_ylabel("held-out loss, nats a byte")
        panels[0].legend(frameon=False, fontsize=8)
        return svg_text(figure, TITLE, _described(found))


def _draw(axes: Axes, found: Sequence[Finding]) -> None:
    for one in found:
        curve = one.curve()
        tokens = [at / 1e3 for at, _ in curve]
        colour, line, mark = LOOKS[one.title]
        means = [fmean(losses) for _, losses in curve]
        axes.plot(tokens, means, line, color=colour, marker=mark, markersize=3.5, label=one.title)
        low, high = ([pick(losses) for _, losses in curve] for pick in (min, max))
        axes.fill_between(tokens, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel("thousand tokens")
    axes.grid(visible=True, color=GREY, alpha=0.25, linewidth=0.6)


def _described(found: Sequence[Finding]) -> str:
    return " ".join(
        f"{one.num_parameters:,} parameters, {one.title}:"
        f" {fmean(one.last):.3f} nats a byte after {one.tokens:,} tokens."
        for one in found
    )
