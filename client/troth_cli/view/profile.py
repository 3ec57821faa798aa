"""The findings of `troth profile`: a table for terminals, the same in markdown, values for JSON.

Owns: columns, units, the sentences that say what was measured and what was composed.
Never: measures, or rounds a value of the JSON.
Next: `../plot/profile.py`, which draws the same numbers.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from troth_cli.view.output import Facts, Grid, Json
from troth_simulation.profile.records import Row, Study, Workload, composed, steps_to

NAMES: Final = {"ddp": "DDP", "fsdp": "FSDP", "diloco": "DiLoCo", "demo": "DeMo"}
"""The methods as people write them."""
COLUMNS: Final = (
    "parameters",
    "Mbit/s",
    "method",
    "steps",
    "sent kB/step",
    "received kB/step",
    "s/step",
    "slowest",
    "wire s",
    "last loss",
    "s to loss",
)
COUNTED: Final = (
    "Bytes at a rate: frames of each rank's own interface, with TCP, IP and Ethernet headers,"
    " acknowledgements and what was sent again."
    " Without a bound: TCP payload of each rank's sockets."
)
COMPOSED: Final = (
    "Loss against time is composed, not measured: each method was trained once without a bound for"
    " its loss by step, and each step then takes the seconds measured at that rate."
)
WIRE: Final = (
    "s/step: the median over the measured steps, of DiLoCo over whole outer rounds; slowest: the"
    " longest of them."
    " wire s: the least seconds in which a cable of that rate carries these bytes one way."
    " The token bucket lets its first 16 kB or 10 ms pass at once."
)
OWN_BYTES: Final = (
    "DeMo's payloads travel here by all-gather. troth itself signs them, serves them over HTTP and"
    " commits to them on a chain: docs/results.md has the bytes of the protocol."
)


def grid(study: Study) -> Grid:
    """Return the table; `s to loss` is composed."""
    rows = [
        _cells(study, row)
        for model in study.models
        for mbit in dict.fromkeys(row.mbit for row in study.rows)
        for row in study.rows_of(model, mbit)
    ]
    return Grid(COLUMNS, rows)


def markdown(study: Study, facts: Facts, picture: str) -> str:
    """Return a page with the picture, the table and everything that a reader must know."""
    table = grid(study)
    right = [":---" if name == "method" else "---:" for name in table.columns]
    lines = [_line(table.columns), _line(right), *(_line(row) for row in table.rows)]
    about = [f"- {label}: {value}" for label, value in facts.rows]
    said = [f"{text}\n" for text in notes(study)]
    head = ["# Bytes and time of the methods", "", f"![loss against time]({picture})", ""]
    return "\n".join([*head, *lines, "", *said, *about, ""])


def notes(study: Study) -> list[str]:
    """Return what a reader of the table must know, one paragraph each."""
    targets = ", ".join(f"{study.common_loss(model):.3f} ({model})" for model in study.models)
    reached = f"`s to loss`: composed seconds to the lowest loss that all methods reach: {targets}."
    return [COUNTED, WIRE, COMPOSED, reached, OWN_BYTES]


def facts_of(workloads: Sequence[Workload], machine: dict[str, Json]) -> Facts:
    """Return workload and machine, one line each."""
    one = workloads[0]
    config = one.config
    count = config.train.sequences_per_payload
    return Facts(
        [
            ("ranks", f"{one.num_ranks}, one process and one thread each"),
            ("tokens of a rank and step", f"{count} x {config.data.sequence_tokens}"),
            ("steps of a loss curve", config.schedule.rounds),
            ("DDP, FSDP", f"AdamW, lr {one.adamw_lr:g}, fp32"),
            ("DiLoCo", f"the same inside, an exchange every {one.inner_steps} steps"),
            ("DeMo", f"k {config.demo.k}, lr {config.schedule.lr_nano / 1e9:g}"),
            ("seed", one.seed),
            *((name.replace("_", " "), value) for name, value in machine.items()),
        ]
    )


def to_json(
    study: Study, workloads: Sequence[Workload], machine: dict[str, Json]
) -> dict[str, Json]:
    """Return everything that was found; composed numbers stand under `composed`."""
    return {
        "machine": machine,
        "workloads": [_workload(one) for one in workloads],
        "measured": [{**asdict(row), "wire_seconds": row.wire_seconds} for row in study.rows],
        "losses": [asdict(curve) for curve in study.curves],
        "composed": [_composed(study, row) for row in study.rows],
        "notes": notes(study),
    }


def seconds_to(study: Study, row: Row) -> float | None:
    """Return the composed seconds until a row's method is at the loss that all of them reach."""
    steps = steps_to(study.curve_of(row).points, study.common_loss(row.model))
    return None if steps is None else steps * row.seconds


def _cells(study: Study, row: Row) -> list[str]:
    wire, seconds = row.wire_seconds, seconds_to(study, row)
    return [
        f"{row.num_parameters:,}",
        "no bound" if row.mbit is None else f"{row.mbit:,}",
        NAMES[row.method],
        str(row.num_steps),
        f"{row.sent_bytes / 1e3:,.1f}",
        f"{row.received_bytes / 1e3:,.1f}",
        _seconds(row.seconds),
        _seconds(row.slowest_seconds),
        "-" if wire is None else _seconds(wire),
        f"{study.curve_of(row).points[-1][1]:.3f}",
        "-" if seconds is None else f"{seconds:,.1f}",
    ]


def _composed(study: Study, row: Row) -> dict[str, Json]:
    points = composed(study.curve_of(row).points, row.seconds)
    return {
        "model": row.model,
        "method": row.method,
        "mbit": row.mbit,
        "points": points,
        "loss": study.common_loss(row.model),
        "seconds_to_loss": seconds_to(study, row),
    }


def _workload(one: Workload) -> dict[str, Json]:
    sections = one.config.model_dump(mode="json")
    wanted = {name: sections[name] for name in ("model", "data", "demo", "schedule", "train")}
    return {
        "name": one.name,
        "ranks": one.num_ranks,
        "adamw_lr": one.adamw_lr,
        "inner_steps": one.inner_steps,
        "seed": one.seed,
        **wanted,
    }


def _seconds(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"
