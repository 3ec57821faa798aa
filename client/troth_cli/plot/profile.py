"""The picture of a profile: loss against composed time, one panel for each model and rate.

Owns: panels, and what the picture says to a screen reader. Lines differ in form, not by colour
alone. Never: measures or composes; importing this module imports matplotlib.
Next: `draw.py` for colours and the SVG text; `../view/profile.py` for the table.
"""

from typing import Final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from troth_cli.plot.draw import BLUE, GREEN, GREY, ORANGE, PAPER, RED, style, svg_text
from troth_cli.view.profile import NAMES
from troth_simulation.profile.records import Row, Study, composed

LOOKS: Final = {
    "ddp": (BLUE, "-", "o"),
    "fsdp": (RED, "--", "s"),
    "diloco": (ORANGE, "-.", "^"),
    "demo": (GREEN, "-", "D"),
}
"""Colour, line and mark of each method."""
TITLE: Final = "Loss against time of the methods"
_WIDTH, _HEIGHT = 3.6, 3.1
"""Inches of one panel."""


def svg_of(study: Study) -> str:
    """Return the picture as one `svg` element: a row for each model, a column for each rate."""
    rates = list(dict.fromkeys(row.mbit for row in study.rows))
    with matplotlib.rc_context(style(PAPER.ink)):
        size = (_WIDTH * len(rates), _HEIGHT * len(study.models))
        figure = Figure(figsize=size)
        # Margins in inches: a layout that measures texts differs now and then.
        left, right, low, high = 0.65 / size[0], 0.15 / size[0], 0.5 / size[1], 0.35 / size[1]
        figure.subplots_adjust(left, low, 1 - right, 1 - high, wspace=0.12, hspace=0.35)
        figure.patch.set_facecolor(PAPER.paper or "none")
        panels = figure.subplots(len(study.models), len(rates), squeeze=False, sharey="row")
        for model, line in zip(study.models, panels, strict=True):
            for mbit, axes in zip(rates, line, strict=True):
                _draw(axes, study, study.rows_of(model, mbit))
            line[0].set_ylabel("held-out loss, nats a token")
        panels[0][0].legend(frameon=False, fontsize=8)
        return svg_text(figure, TITLE, _described(study))


def _draw(axes: Axes, study: Study, rows: list[Row]) -> None:
    for row in rows:
        # A logarithmic axis has no zero, and the first loss is the same for all methods.
        points = composed(study.curve_of(row).points[1:], row.seconds)
        colour, line, mark = LOOKS[row.method]
        axes.plot(
            *zip(*points, strict=True),
            color=colour,
            linestyle=line,
            marker=mark,
            markersize=3,
            label=NAMES[row.method],
        )
    where = "no bound" if rows[0].mbit is None else f"{rows[0].mbit:,} Mbit/s a rank"
    axes.set_title(f"{rows[0].num_parameters / 1e6:.2f} M parameters, {where}", fontsize=9)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("seconds, composed")
    axes.grid(visible=True, color=GREY, alpha=0.25, linewidth=0.6)


def _described(study: Study) -> str:
    said = []
    for row in study.rows:
        where = "without a bound" if row.mbit is None else f"at {row.mbit} Mbit/s"
        said.append(
            f"{row.num_parameters:,} parameters, {NAMES[row.method]} {where}:"
            f" {row.sent_bytes / 1e3:,.1f} kB and {row.seconds:.3f} s a step."
        )
    return " ".join(said)
