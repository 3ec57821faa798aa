"""Parts of displays: the curve of a loss, the head of a run, texts that cannot steer a terminal.

Owns: how these parts look, wherever a run is drawn. Never: knows where the numbers come from.
Next: `display.py` for the demo's board; `troth_cli/view/run_display.py` for a run from the chain.
"""

import itertools
from collections.abc import Sequence
from typing import Final

from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.text import Text

from troth_client.telemetry.printable import one_line

BARS: Final = "▁▂▃▄▅▆▇█"
CURVE_WIDTH: Final = 48
MICRO: Final = 10**6
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def clean(words: object, style: str = "") -> Text:
    """Return words as they are: no markup, no control characters."""
    return Text(one_line(words), style=style)


def head(title: str, run: str, done: int, total: int) -> Panel:
    """Return the head of a run: how many of its rounds are done, under a title."""
    bar = ProgressBar(total=max(1, total), completed=done)
    return Panel(bar, title=clean(title), subtitle=clean(f"run {run}"))


def curve(values: Sequence[float], width: int = CURVE_WIDTH) -> str:
    """Return values as a line of bars, from the first to the last.

    Where there are more values than columns, a bar is the mean of those in it.
    """
    shown = _squeezed(values, width)
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    span = high - low or 1.0
    return "".join(BARS[round((x - low) / span * (len(BARS) - 1))] for x in shown)


def loss_line(losses: Sequence[float], name: str = "loss") -> Text:
    """Return the first and the last loss in nats, and the curve between them."""
    if not losses:
        return Text(f"{name}: waiting for the first round", style="dim")
    words = f"{name} {losses[0]:.3f} → {losses[-1]:.3f}  {curve(losses)}"
    return Text(words, style="green", no_wrap=True, overflow="crop")


def nats(micro: int | None) -> str:
    """Return micro-nats as nats with three decimals; nothing for None."""
    return "" if micro is None else f"{micro / MICRO:.3f}"


def duration(seconds: float) -> str:
    """Return seconds in the two largest units that matter, like `3 h 20 min`."""
    rest = max(0, round(seconds))
    for place, (length, name) in enumerate(_UNITS):
        if rest < length:
            continue
        text = f"{rest // length} {name}"
        if place + 1 < len(_UNITS):
            smaller, unit = _UNITS[place + 1]
            text += f" {rest % length // smaller} {unit}" if rest % length >= smaller else ""
        return text
    return "0 s"


def _squeezed(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    edges = [len(values) * column // width for column in range(width + 1)]
    parts = (values[begin:end] for begin, end in itertools.pairwise(edges))
    return [sum(part) / len(part) for part in parts]
