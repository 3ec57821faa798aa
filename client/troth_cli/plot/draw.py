"""The picture of a run: four panels over its rounds, as SVG text.

Owns: panels, colours, and what the picture says to a screen reader. The same numbers give the same
bytes. Every series differs from its neighbours in form too, not by colour alone.
Never: reads or counts; importing this module imports matplotlib.
Next: `data.py` for the numbers; `page.py`, which puts the picture on a page.
"""

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from troth_cli.plot.data import PlotData, RoundRow
from troth_cli.plot.words import sentences, short_name, title_of

SOL: Final = 10**9
NUM_NAMES: Final = 8
"""With more stakes than this a legend would hide the lines."""
NUM_MARKED: Final = 30
STYLE: Final = {
    "svg.hashsalt": "troth",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours as SVG writes them; `paper` is None where the page behind shows through."""

    ink: str
    paper: str | None


PAPER: Final = Palette("#1f2328", "#ffffff")
"""A file of its own: dark on white, whatever is around it."""
INLINE: Final = Palette("#010203", None)
"""Within a page: this ink stands for the colour of the page's text."""
BLUE, ORANGE, GREEN, RED, GREY = "#3b82d6", "#d4652f", "#2f9e5b", "#d64550", "#8b949e"
DASHES: Final = ("-", "--", "-.", ":")


def svg_of(data: PlotData, palette: Palette = PAPER) -> str:
    """Return the picture as one `svg` element, with a title and a description."""
    with matplotlib.rc_context(style(palette.ink)), warnings.catch_warnings():
        # A name may hold letters that the font for measuring lacks; a browser has another font.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = Figure(figsize=(10, 7), layout="constrained")
        figure.patch.set_facecolor(palette.paper or "none")
        for axes, draw in zip(figure.subplots(2, 2).flat, PANELS, strict=True):
            axes.patch.set_alpha(0)
            draw(axes, data)
            _finish(axes, data)
        return svg_text(figure, title_of(data), " ".join(sentences(data)), palette)


def style(ink: str) -> dict[Any, Any]:
    """Return matplotlib's settings for a picture in this ink."""
    names = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    return {**STYLE, **dict.fromkeys(names, ink)}


def svg_text(figure: Figure, title: str, description: str, palette: Palette = PAPER) -> str:
    """Return a figure as one `svg` element; the document type, which names an address, is left out.

    Title and description are for screen readers.
    """
    out = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(out, format="svg", metadata=nothing)
    svg = out.getvalue()
    head, _, rest = svg[svg.index("<svg ") :].partition(">")
    words = f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
    text = f'{head} role="img">\n {words}{rest}'
    return text if palette.paper else text.replace(palette.ink, "currentColor")


def _finish(axes: Axes, data: PlotData) -> None:
    first, last = data.rounds[0].round, data.rounds[-1].round
    axes.set_xlim(first - 0.5, last + 0.5)
    axes.set_xlabel("round")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.grid(visible=True, color=GREY, alpha=0.25, linewidth=0.6)
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        axes.legend(handles, labels, frameon=False, fontsize=8)


def _losses(axes: Axes, data: PlotData) -> None:
    axes.set_title("Loss, nats a token")
    if data.losses:
        points = zip(*data.losses, strict=True)
        axes.plot(*points, marker=_marker(data.losses), color=BLUE, label="training, mean")
    if data.validations:
        points = zip(*data.validations, strict=True)
        axes.plot(*points, "D--", color=ORANGE, markersize=4, label="validation")
    if not data.losses and not data.validations:
        _say(axes, "no loss is known")


def _participation(axes: Axes, data: PlotData) -> None:
    axes.set_title("Payloads in each round")
    _steps(axes, data.rounds, lambda row: row.num_included, (GREEN, "-", "included"))
    if any(row.num_committed for row in data.rounds):
        name = f"committed by the {len(data.names)} with logs here" if data.names else "committed"
        _steps(axes, data.rounds, lambda row: row.num_committed, (GREY, "--", name))
    void = [row.round for row in data.rounds if row.is_void]
    if void:
        axes.plot(void, [0] * len(void), "x", color=RED, label="void round")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))


def _bytes(axes: Axes, data: PlotData) -> None:
    axes.set_title("Bytes of the included payloads")
    if all(row.num_bytes is None for row in data.rounds):
        _say(axes, "only a participant's log tells the length of a payload")
        return
    _steps(axes, data.rounds, lambda row: row.num_bytes or 0, (BLUE, "-", "all payloads"))
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,.0f}")


def _stakes(axes: Axes, data: PlotData) -> None:
    axes.set_title("Stake and slashes, SOL")
    last = data.rounds[-1].round
    is_named = len(data.stakes) <= NUM_NAMES
    for number, line in enumerate(data.stakes):
        rounds = [at for at, _ in line.points] + [max(last, line.points[-1][0])]
        values = [stake / SOL for _, stake in line.points]
        style = DASHES[number % len(DASHES)]
        label = f"stake of {short_name(line.name)}" if is_named else None
        (drawn,) = axes.step(rounds, [*values, values[-1]], style, where="post", label=label)
        drawn.set(alpha=0.8, marker=_marker(line.points))
    if data.slashes:
        taken = [one.taken / SOL for one in data.slashes]
        rounds = [one.round for one in data.slashes]
        axes.plot(rounds, taken, "v", color=RED, label="taken by a conviction")
    if not data.stakes and not data.slashes:
        _say(axes, "no stake and no slash is known")


PANELS: Final[Sequence[Callable[[Axes, PlotData], None]]] = (
    _losses,
    _participation,
    _bytes,
    _stakes,
)


def _steps(
    axes: Axes,
    rows: Sequence[RoundRow],
    value: Callable[[RoundRow], float],
    look: tuple[str, str, str],
) -> None:
    colour, style, label = look
    values = [value(row) for row in rows]
    rounds = [row.round for row in rows]
    marker = _marker(rows)
    axes.step(rounds, values, style, where="mid", marker=marker, color=colour, label=label)


def _marker(points: Sequence[object]) -> str:
    """Few points are marked: a line of one point would not be seen."""
    return "." if len(points) <= NUM_MARKED else ""


def _say(axes: Axes, words: str) -> None:
    axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes)
    axes.set_yticks([])
