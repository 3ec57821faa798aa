"""`troth calibrate`: whether the judge's bounds fit a model and the machines at hand.

Owns: options, the data when none is given, and printing. Never: measures or proposes.
Next: `troth_client.calibration.calibrate`, `troth_client.calibration.thresholds`.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from troth_cli.options import Common, Settings, command
from troth_cli.view.output import Facts, Grid, Output

if TYPE_CHECKING:
    from troth_client.calibration.calibrate import Plan
    from troth_client.calibration.comparison import Group
    from troth_client.calibration.edges import Bench
    from troth_client.calibration.thresholds import Bounds, Proposal
    from troth_client.calibration.ways import Way
    from troth_client.data.shards import TokenData
    from troth_coordinator.rules.config import JudgeSection, RunConfig
    from troth_coordinator.rules.settings import RunSettings

_LEAST_ROUNDS = 10
"""In some rounds precisions lie ten times as far apart as in others: fewer may have met none."""
_COLUMNS = (
    "trainer",
    "audits",
    "lowest",
    "half",
    "99.9 %",
    "highest",
    "far tiles",
    "residual",
    "apart",
)
_VERDICTS = ("ok", "mismatch", "inconclusive")


@dataclass(frozen=True, kw_only=True)
class CalibrateOptions(Common):
    """Options of `troth calibrate`."""

    settings: Settings = field(default_factory=list)
    data: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--data",
            metavar="DIR",
            help="Prepared data set; without it, bytes of the Python standard library.",
        ),
    ] = None
    start: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--start",
            metavar="DIR",
            help="Weights that the run begins from, where start.weights = given.",
        ),
    ] = None
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", min=1, help="Rounds to train.")
    ] = 40
    every: Annotated[
        int, typer.Option("--every", metavar="N", min=1, help="Measure in every N-th round.")
    ] = 2
    trainers: Annotated[
        int, typer.Option("--trainers", metavar="N", min=1, help="Payloads applied in a round.")
    ] = 4
    draws: Annotated[
        int, typer.Option("--draws", metavar="N", min=1, help="Audits of each pair in a round.")
    ] = 2
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            metavar="N",
            min=0,
            help="Of the weights, unless given, and draws.",
        ),
    ] = 0
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="NAME",
            help="cpu, cuda, cuda:N or mps, beside the reference; else all that are here.",
        ),
    ] = ""
    precisions: Annotated[
        str,
        typer.Option(
            "--precisions",
            metavar="LIST",
            help="Of fp32, tf32 and bf16, with commas; else all that a device has.",
        ),
    ] = ""


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "calibrate", CalibrateOptions)(calibrate)


def calibrate(options: CalibrateOptions, output: Output) -> None:
    """Measure honest work against cheats for a model, and propose the judge's bounds.

    Trains a little, on a GPU if there is one, and computes each measured gradient in every way that
    this machine has: precisions, devices, thread counts, microbatches. Each way judges the others
    and the cheats: 1/8, 1/4, 1/2 of the batch skipped, a free-rider. With --device cuda the
    processor's own variants are left out, but its two precisions stay. Each number is the median,
    over the opened tiles, of the implied gradient's error relative to the gradient. Targets that
    stand just inside a bound for one way are shown to all others; none may call them a mismatch.
    The bounds hold for the ways in the table: run it on every kind of machine that will take part.
    Bounds belong to the first weights, too: --start names those that a run is given.
    """
    from troth_cli.settings import run_settings
    from troth_cli.workflows.given_start import tokenizer_warnings, weights_to_calibrate

    settings = run_settings(options.config, options.settings)
    config, factor = settings.config, settings.chain.sketch_factor
    start = weights_to_calibrate(config, options.start, output.note)
    with output.loading():
        from troth_client.calibration import calibrate as study
        from troth_client.calibration.thresholds import Bounds, in_the_way, propose_all, propose_for

    ways = _ways(options, config)
    plan = study.Plan(options.rounds, options.every, options.draws, options.seed, options.trainers)
    with _data(options, config) as data, output.progress("rounds", in_bytes=False) as report:
        if options.start is not None:
            for warning in tokenizer_warnings(options.start, data.manifest):
                output.warn(warning)
        found = study.calibrate(
            config.with_manifest(data.manifest.hash),
            data,
            ways,
            plan,
            lambda done, total: report(done, total, ""),
            start,
        )
    proposal = propose_for(found.groups)
    obstacles = in_the_way(found.groups, config.judge, factor)
    bounds = propose_all(found.groups, proposal)
    edges = _edges(found.bench, config.judge, bounds.values)
    if edges["proposed"]:
        bounds = Bounds({}, "honest ways disagree about targets just inside these bounds")
    values = {
        "plan": asdict(plan),
        "machine": _machine(),
        "groups": [_row(group) for group in found.groups],
        "proposal": asdict(proposal) | {"separates": proposal.separates},
        "bounds": dict(bounds.values),
        "refusal": bounds.refusal,
        "sketch_factor": _sketch_factor(found.groups),
        "in_the_way": obstacles,
        "just_inside": edges,
    }
    blocks = _blocks(found.groups, plan, proposal, bounds, settings)
    output.result(values, *blocks, *_section(values, plan), *_warnings(obstacles, edges))


def _ways(options: CalibrateOptions, config: "RunConfig") -> "list[Way]":
    from troth_client.calibration.ways import ways_here
    from troth_client.model.device import choose_device

    device = choose_device(options.device).torch if options.device else None
    return ways_here(config, device, [name for name in options.precisions.split(",") if name])


def _edges(
    bench: "Bench | None", judge: "JudgeSection", bounds: Mapping[str, int]
) -> dict[str, list[str]]:
    """Return the disagreements of honest ways about targets just inside the bounds, old and new."""
    if bench is None:
        return {"in the config": [], "proposed": []}
    proposed = judge.model_copy(update=bounds)
    return {
        "in the config": bench.contradictions(judge),
        "proposed": bench.contradictions(proposed) if bounds else [],
    }


def _sketch_factor(groups: "Sequence[Group]") -> int | None:
    from troth_client.calibration.whole_model import sketch_factor

    apart = [group.whole.distance for group in groups if group.whole.agreements]
    return sketch_factor(max(apart)) if apart else None


@contextlib.contextmanager
def _data(options: CalibrateOptions, config: "RunConfig") -> Iterator["TokenData"]:
    from troth_cli.workflows.sample_data import data_folder
    from troth_client.data.manifest import load_manifest
    from troth_client.data.shards import TokenData

    with (
        data_folder(options.data, config) as folder,
        TokenData(folder, load_manifest(folder)) as data,
    ):
        yield data


def _row(group: "Group") -> dict[str, object]:
    from troth_client.calibration.tails import percentile

    medians = group.medians
    percents = {"lowest": 0, "half": 50, "99.9 %": 99.9, "highest": 100}
    measured = {name: percentile(medians, percents[name]) for name in percents if medians}
    return (
        {
            "trainer": group.name,
            "is_honest": group.is_honest,
            "audits": group.verdicts.total(),
            "far tiles": group.most_bad_tiles,
            "residual": round(group.highest_residual, 2),
            "apart": group.whole.distance,
        }
        | measured
        | {kind.name.lower(): count for kind, count in group.verdicts.items()}
        | {"unjudged": {reason.name.lower(): n for reason, n in group.unjudged.items()}}
    )


def _machine() -> dict[str, str | int]:
    import os
    import platform

    import torch

    found: dict[str, str | int] = {
        "processor": torch.backends.cpu.get_cpu_capability(),
        "architecture": platform.machine(),
        "cores": os.cpu_count() or 1,
        "torch": torch.__version__,
    }
    if torch.cuda.is_available():
        found["cuda"] = torch.cuda.get_device_name()
    return found


def _blocks(
    groups: "Sequence[Group]",
    plan: "Plan",
    proposal: "Proposal",
    bounds: "Bounds",
    settings: "RunSettings",
) -> list[Facts | Grid | str]:
    machine = ", ".join(f"{name} {value}" for name, value in _machine().items())
    judge = settings.config.judge
    facts: list[tuple[str, object]] = [
        ("machine", machine),
        (
            "plan",
            f"{plan.rounds} rounds of {plan.trainers}, every {plan.every}, seed {plan.seed}",
        ),
        ("honest, 99.9 %", _number(proposal.honest)),
        ("headroom", _headroom(proposal)),
        ("mildest cheat", f"{_number(proposal.mildest)} {proposal.mildest_cheat}".strip()),
        ("in the config", f"{judge.ok_bound_micro} and {judge.mismatch_bound_micro} micro"),
        ("proposed", _proposed(bounds)),
        ("all votes", _votes(groups, judge)),
    ]
    shown = [
        [_cell(row, name) for name in (*_COLUMNS, *_VERDICTS)]
        for row in (_row(group) for group in groups)
    ]
    return [Grid((*_COLUMNS, *_VERDICTS), shown), "", Facts(facts)]


def _votes(groups: "Sequence[Group]", judge: "JudgeSection") -> str:
    """Say what is known about the agreement of all votes with a judge's gradient."""
    from troth_client.calibration.whole_model import Whole
    from troth_coordinator.rules.config import LEAST_AGREEMENT_AUDITS

    whole = Whole.of([group.whole for group in groups if group.is_honest])
    votes = whole.votes_above(judge.gradient_floor_micro)
    if not len(votes):
        return "not measured: too few tiles"
    found = f"agree by {votes.min():.3f} or more in {len(votes)} audits"
    if len(votes) < LEAST_AGREEMENT_AUDITS:
        found += f"; a bound needs {LEAST_AGREEMENT_AUDITS}, one a round and pair of ways"
    return found


def _section(values: Mapping[str, object], plan: "Plan") -> list[str]:
    """Return the lines for a config file, if there are bounds to propose."""
    bounds, factor = values["bounds"], values["sketch_factor"]
    if not isinstance(bounds, dict) or not bounds:
        return []
    lines = [f"{name} = {value:_}" for name, value in bounds.items()]
    chain = ["[chain]", f"sketch_factor = {factor}"] if factor else []
    calibrated = "calibrated = true"
    if plan.num_measured < _LEAST_ROUNDS:
        calibrated = (
            f"# {calibrated} needs {_LEAST_ROUNDS} measured rounds, these are {plan.num_measured}: "
            "use --rounds and --every"
        )
    return ["", "\n".join(["[judge]", *lines, calibrated, *chain])]


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.6f}"


def _headroom(proposal: "Proposal") -> str:
    from troth_client.calibration.thresholds import MEDIAN_HEADROOM

    if proposal.ok_bound_micro is None or not proposal.honest:
        return "none"
    found = proposal.ok_bound_micro / 10**6 / proposal.honest
    short = (
        ""
        if found > MEDIAN_HEADROOM - 0.01
        else f"; {MEDIAN_HEADROOM} where the mildest cheat leaves room"
    )
    return f"{found:.1f} x honest{short}"


def _warnings(obstacles: Sequence[str], edges: Mapping[str, Sequence[str]]) -> list[str]:
    """Warn of settings that would hurt honest participants under any two bounds."""
    lines = [f"Honest work went beyond {line}." for line in obstacles]
    for whose, found in edges.items():
        lines += [f"Honest judges disagree under the bounds {whose}, {line}." for line in found[:3]]
    if not lines:
        return []
    advice = (
        "Do not run this config: lower schedule.lr_nano, train on more tokens per payload or on a "
        "larger model, lower train.clip_micro (residuals), or raise that bound."
    )
    return [*lines, advice]


def _proposed(bounds: "Bounds") -> str:
    if bounds.refusal:
        return f"none: {bounds.refusal}"
    ok, mismatch = (bounds.values[f"{name}_bound_micro"] for name in ("ok", "mismatch"))
    return f"judge.ok_bound_micro = {ok}, judge.mismatch_bound_micro = {mismatch}"


def _cell(row: Mapping[str, object], name: str) -> str:
    value = row.get(name, 0 if name in _VERDICTS else "-")
    return f"{value:.6f}" if isinstance(value, float) else str(value)
