"""Train the size of a preset with four simulated participants, without a chain: its loss curve.

Owns: the one run that is played, and the table and picture of finished runs. Payloads go through
the client's own encoder, codec and apply on the device, and all are included.
Never: trains (`training.py`), or claims: results go to docs/results.md with their machine. The text
is Python's standard library, a token a byte, whatever tokens a preset is meant for.
Next: `methods.py` for the methods; `quality.py` for a comparison on small models.

    python scripts/bench/presets.py --size 124m --device cuda --out runs/124m.jsonl
    python scripts/bench/presets.py --table runs/124m.jsonl --plot docs/images/124m.svg

A killed run goes on from its last save. With `--minutes` it saves and ends in time, with exit
status 3; the same command goes on.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from json_lines import read_lines
from methods import METHODS
from training import SIZES, Point, Sweep, TimeUpError, last_loss, sizes_help

from troth_client.model.device import choose_device

WD_NANO = 100_000_000
"""Weight decay of every method: that of the presets."""
UNFINISHED = 3
HEAD = (
    *("size", "parameters", "method", "device", "rounds", "tokens", "learning rate"),
    *("first loss", "in the middle", "at last", "bytes a payload", "seconds a round"),
)


def point_of(options: argparse.Namespace) -> Point:
    """Return the run that was asked for, at the preset's rate unless another one is given."""
    lr_nano = round(options.lr * 1e9) or SIZES[options.size].config().schedule.lr_nano
    run = (options.size, options.rounds, lr_nano, options.seed, options.method, options.k)
    return Point(*run, WD_NANO, options.sequences, options.microbatch)


def table(lines: Sequence[dict[str, Any]]) -> str:
    """Return a table in Markdown, a run a line; losses in nats a byte on held-out text.

    Each loss has the round after which it was measured: the first is not of untrained weights.
    """
    rows = [HEAD, ["---:" if name != "device" else "---" for name in HEAD]]
    for line in lines:
        curve = sorted((int(at), loss) for at, loss in line["losses"].items())
        shown = (curve[0], curve[len(curve) // 2], (curve[-1][0], last_loss(line)))
        method = (
            f"{line['method']}, k = {line['k']}" if "demo" in line["method"] else line["method"]
        )
        rows.append(
            [
                *(line["size"], f"{line['num_parameters']:,}", method, line["device"]),
                *(str(line["rounds"]), f"{line['tokens']:,}", f"{line['lr_nano'] / 1e9:g}"),
                *(f"{loss:.3f} after {at}" for at, loss in shown),
                *(f"{line['num_bytes']:,}", f"{line['seconds_a_round']:.2f}"),
            ]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def curve_of(line: dict[str, Any]) -> list[tuple[int, float]]:
    """Return (tokens read by all, held-out loss) along a run."""
    a_round = line.get("tokens_a_round")
    if a_round is None:
        # An old line: a run that diverged after its last loss has read more, and is stretched.
        a_round = line["tokens"] // max(map(int, line["losses"]))
    return [(int(at) * a_round, loss) for at, loss in line["losses"].items()]


def show(paths: Sequence[Path], plot: Path | None) -> None:
    """Print finished runs as a table, and draw their curves."""
    lines = [line for path in paths for line in read_lines(path) if line["losses"]]
    print(table(lines))
    if plot is not None:
        from presets_plot import svg_of  # noqa: PLC0415 - matplotlib, only where it is asked for

        plot.write_text(svg_of(lines))


def main() -> int:
    """Play the run unless the file has it, or show what files have."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="smoke", help=sizes_help())
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--method", choices=METHODS, default="demo")
    parser.add_argument("--k", type=int, default=32, help="coefficients of a tile, for DeMo")
    parser.add_argument("--lr", type=float, default=0.0, help="learning rate; else the preset's")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sequences", type=int, default=0, help="of a payload; else the preset's")
    parser.add_argument("--microbatch", type=int, default=0, help="sequences computed at once")
    parser.add_argument("--every", type=int, default=25, help="rounds between two losses")
    parser.add_argument("--save-every", type=int, default=0, help="rounds; else with each loss")
    parser.add_argument("--minutes", type=float, default=1e9, help="save and end after so many")
    parser.add_argument("--out", type=Path, default=Path("runs/presets.jsonl"))
    parser.add_argument("--data", type=Path, help="token data; else runs/stdlib-SIZE")
    parser.add_argument("--table", type=Path, nargs="+", metavar="FILE", help="play nothing")
    parser.add_argument("--plot", type=Path, metavar="SVG", help="with --table: draw the losses")
    options = parser.parse_args()
    if options.table:
        show(options.table, options.plot)
        return 0
    if options.save_every < 0:
        parser.error("--save-every: expected 0, for as often as the loss, or more rounds")
    if options.rounds < 10:
        parser.error("expected 10 rounds or more: one warms up, three decay")
    data = options.data or Path(f"runs/stdlib-{options.size}")
    device = choose_device(options.device)
    sweep = Sweep(options.out, data, options.every, options.size, device, options.save_every)
    try:
        sweep.play(point_of(options), 60 * options.minutes)
    except TimeUpError as error:
        print(f"{error}; the same command goes on", file=sys.stderr)
        return UNFINISHED
    show([options.out], None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
