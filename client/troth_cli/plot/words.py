"""A picture of a run in words: for titles, screen readers, and the command's own answer.

Owns: sentences about the numbers. Names are cut, and cannot steer a terminal or a page.
Never: imports matplotlib. Next: `draw.py` and `page.py`, which show them.
"""

from troth_cli.plot.data import PlotData
from troth_cli.view.amounts import sol
from troth_client.telemetry.printable import one_line

NUM_LETTERS = 24
SHORT = 12


def title_of(data: PlotData) -> str:
    """Return the title of a picture."""
    return f"Run {short_name(data.run, NUM_LETTERS)}" if data.run else "A run in pictures"


def short_name(name: str, num_letters: int = SHORT) -> str:
    """Return a name on one line, cut with an ellipsis where it is longer."""
    line = one_line(name)
    cut = line if len(line) <= num_letters else line[: num_letters - 1] + "…"
    # matplotlib leaves a label with an underscore in front out of its legends.
    return f" {cut}" if cut.startswith("_") else cut


def sentences(data: PlotData) -> list[str]:
    """Return what the picture shows, one short sentence for each panel."""
    first, last = data.rounds[0].round, data.rounds[-1].round
    said = [f"Rounds {first:,} to {last:,}, {len(data.rounds):,} closed."]
    for what, losses in (("Training", data.losses), ("Validation", data.validations)):
        if losses:
            said.append(f"{what} loss from {losses[0][1]:.3f} to {losses[-1][1]:.3f} nats a token.")
    included = [row.num_included for row in data.rounds]
    said.append(f"{min(included)} to {max(included)} payloads included in a round.")
    void = sum(row.is_void for row in data.rounds)
    if void:
        said.append(f"Rounds that closed void: {void:,}.")
    num_bytes = [row.num_bytes for row in data.rounds if row.num_bytes is not None]
    if num_bytes:
        said.append(f"At most {max(num_bytes):,} bytes of payloads in a round.")
    if data.slashes:
        names = ", ".join(sorted({short_name(one.name) for one in data.slashes}))
        said.append(f"Slashes: {len(data.slashes)}, {sol(data.taken)} taken from {names}.")
    else:
        said.append("No slash.")
    return said
