"""The picture of `presets.py`: held-out loss against tokens, a line for each run.

Owns: axes, and what the picture says to a screen reader. Lines differ in form, not by colour alone.
Never: trains or counts; importing this module imports matplotlib.
"""

from collections.abc import Sequence
from itertools import cycle
from typing import Any, Final

import matplotlib
from matplotlib.figure import Figure
from presets import curve_of

from troth_cli.plot.draw import BLUE, DASHES, GREEN, GREY, ORANGE, PAPER, RED, style, svg_text

TITLE: Final = "Held-out loss against tokens of the presets' sizes"


def svg_of(lines: Sequence[dict[str, Any]]) -> str:
    """Return the picture as one `svg` element."""
    with matplotlib.rc_context(style(PAPER.ink)):
        figure = Figure(figsize=(6.4, 3.8))
        figure.patch.set_facecolor(PAPER.paper or "none")
        # A layout that measures texts differs now and then.
        axes = figure.subplots(
            gridspec_kw={"left": 0.1, "right": 0.97, "bottom": 0.13, "top": 0.96}
        )
        looks = cycle(zip((BLUE, ORANGE, GREEN, RED), DASHES, strict=True))
        for line, (colour, dash) in zip(lines, looks, strict=False):
            tokens, losses = zip(*sorted(curve_of(line)), strict=True)
            millions = [count / 1e6 for count in tokens]
            axes.plot(millions, losses, dash, color=colour, label=_name(line))
        axes.set_xlabel("million tokens of all participants")
        axes.set_ylabel("held-out loss, nats a byte")
        axes.grid(visible=True, color=GREY, alpha=0.25, linewidth=0.6)
        axes.legend(frameon=False, fontsize=8)
        return svg_text(figure, TITLE, " ".join(map(_described, lines)))


def _name(line: dict[str, Any]) -> str:
    return f"{line['size']}, {line['method']}, rate {line['lr_nano'] / 1e9:g}, seed {line['seed']}"


def _described(line: dict[str, Any]) -> str:
    tokens, loss = sorted(curve_of(line))[-1]
    return f"{_name(line)}: {loss:.3f} nats a byte after {tokens:,} tokens."
