"""A picture of a run as one page: the SVG, what it shows in words, and all numbers as tables.

Owns: the page, which needs no script and loads nothing. It is light or dark as the reader's system.
Never: draws; `draw.py` does. Next: `../commands/plot.py`, which writes it.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from troth_cli.plot.data import PlotData, RoundRow
from troth_cli.plot.words import sentences, title_of
from troth_cli.view.amounts import sol
from troth_client.telemetry.printable import one_line

MAX_ROWS: Final = 500
"""More rounds than this are thinned out in the table: the picture shows them all."""
STYLE: Final = """\
:root { color-scheme: light dark; --line: #d0d7de; --faint: #59636e; }
@media (prefers-color-scheme: dark) { :root { --line: #3d444d; --faint: #9198a1; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; }
.scrolls { overflow: auto; max-height: 32rem; border: 1px solid var(--line); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
caption { text-align: left; padding: 0.5rem; color: var(--faint); }
th, td { padding: 0.25rem 0.75rem; text-align: right; border-top: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
thead th { position: sticky; top: 0; background: Canvas; }
"""
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
COLUMNS: Final = ("round", "training loss", "validation loss", "committed", "included", "bytes")


def page_of(data: PlotData, svg: str, lead: str = "") -> str:
    """Return the page around a picture, an `svg` element that takes the colour of the text.

    `lead` is HTML that stands before the picture.
    """
    title = escape(one_line(data.run) or title_of(data))
    words = "\n".join(f"<li>{escape(one)}</li>" for one in sentences(data))
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{title}</title>
<style>
{STYLE}</style>
</head>
<body>
<main>
<h1>{title}</h1>
{lead}<ul>
{words}
</ul>
<figure>
{svg}
</figure>
<h2>Numbers</h2>
{_rounds(data)}
{_slashes(data)}
</main>
</body>
</html>
"""


def _rounds(data: PlotData) -> str:
    step = -(-len(data.rounds) // MAX_ROWS)
    caption = "Every closed round" if step == 1 else f"Every {step:,}th of the closed rounds"
    return table(
        f"{caption}. Losses in nats a token; bytes of all included payloads.",
        COLUMNS,
        map(_cells, data.rounds[::step]),
    )


def _cells(row: RoundRow) -> Sequence[str]:
    return (
        f"{row.round}" + (" (void)" if row.is_void else ""),
        "" if row.loss is None else f"{row.loss:.4f}",
        "" if row.validation is None else f"{row.validation:.4f}",
        f"{row.num_committed}",
        f"{row.num_included}",
        "" if row.num_bytes is None else f"{row.num_bytes:,}",
    )


def _slashes(data: PlotData) -> str:
    if not data.slashes:
        return ""
    rows = ((one_line(one.name), f"{one.round}", sol(one.taken)) for one in data.slashes)
    return "<h2>Slashes</h2>\n" + table(
        "What convictions took, by the round of the work.", ("participant", "round", "taken"), rows
    )


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table that scrolls; all texts are escaped."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "\n".join(_line(cells) for cells in rows)
    # A region that scrolls is reached with the keyboard only if it can have the focus.
    return (
        f'<div class="scrolls" tabindex="0" role="region" aria-label="{escape(caption)}">\n'
        f"<table><caption>{escape(caption)}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>\n</div>"
    )


def _line(cells: Sequence[str]) -> str:
    first, *others = (escape(cell) for cell in cells)
    rest = "".join(f"<td>{cell}</td>" for cell in others)
    return f'<tr><th scope="row">{first}</th>{rest}</tr>'
