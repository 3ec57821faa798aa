"""The measured numbers as a table and as a picture.

Owns: ratios, columns, bars. Never: measures. Importing it needs no matplotlib; drawing does.
Next: `parts.py` for what was measured.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass

from troth_cli.bench.parts import OURS, Part
from troth_cli.view.output import Grid, Json

COLUMNS = ("size", "part", "troth, ms", "beside", "ms", "times as fast")


@dataclass(frozen=True, slots=True)
class Measured:
    """All parts of one size on one device."""

    size: str
    num_parameters: int
    device: str
    payload_bytes: int
    kernels: str
    parts: Sequence[Part]


def grid(found: Sequence[Measured]) -> Grid:
    """Return one row for each part and each way beside ours; above 1 we are faster."""
    rows: list[Sequence[str]] = []
    for one in found:
        for part in one.parts:
            rows += _rows(f"{one.size} {one.device}", part)
    return Grid(COLUMNS, rows)


def values(found: Sequence[Measured]) -> list[Json]:
    """Return the same for --json, times in seconds."""
    return [
        {
            "size": one.size,
            "parameters": one.num_parameters,
            "device": one.device,
            "payload_bytes": one.payload_bytes,
            "kernels": one.kernels,
            "seconds": {part.name: dict(part.seconds) for part in one.parts},
        }
        for one in found
    ]


def picture(found: Sequence[Measured]) -> str:
    """Return the steps as an SVG: for each size the time of every way, relative to ours."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "troth", "svg.fonttype": "none", "font.size": 9}):
        height = 1 + 0.9 * len(found)
        figure = Figure(figsize=(8, height))
        figure.subplots_adjust(0.14, 0.5 / height, 0.98, 1 - 0.1 / height)
        axes = figure.subplots()
        for at, one in enumerate(found):
            (step,) = (part for part in one.parts if part.name == "step")
            for way, (name, seconds) in enumerate(step.seconds.items()):
                place = at + way / (len(step.seconds) + 1)
                length = seconds / step.seconds[OURS]
                axes.barh(place, length, 1 / (len(step.seconds) + 2), color=f"C{way}")
                axes.text(length, place, f" {name}, {1e3 * seconds:.3g} ms", va="center")
        middle = [at + 0.3 for at in range(len(found))]
        axes.set_yticks(middle, [f"{one.size}, {one.device}" for one in found])
        axes.invert_yaxis()
        axes.margins(x=0.35)
        axes.set_xlabel("time of one optimizer step, troth = 1")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def _rows(where: str, part: Part) -> list[Sequence[str]]:
    ours = part.seconds[OURS]
    others = {name: each for name, each in part.seconds.items() if name != OURS}
    if not others:
        return [(where, part.name, _ms(ours), "", "", "")]
    return [
        (where, part.name, _ms(ours), name, _ms(each), f"{each / ours:.2f}")
        for name, each in others.items()
    ]


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.2f}"
