"""`troth calibrate`: whether the judge's bounds fit a model and the machines at hand.

Owns: options, the data when none is given, and printing. Never: measures or proposes.
Next: `troth_client.audit.calibrate`, `troth_client.audit.thresholds`.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from troth_cli.errors import InputError
from troth_cli.options import Common, Settings, command
from troth_cli.view.output import Facts, Grid, Output

if TYPE_CHECKING:
    from troth_client.audit.calibrate import Group, Plan
    from troth_client.audit.thresholds import Proposal
    from troth_client.data.shards import TokenData
    from troth_coordinator.rules.config import JudgeSection, RunConfig

_STDLIB_BYTES = 2_000_000
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
        int, typer.Option("--seed", metavar="N", min=0, help="Of the weights and of the draws.")
    ] = 0


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "calibrate", CalibrateOptions)(calibrate)


def calibrate(options: CalibrateOptions, output: Output) -> None:
    """Measure honest work against cheats for a model, and propose the judge's bounds.

    Trains a little and computes each measured gradient in every way that this machine has:
    precisions, devices, thread counts, microbatches. Each way judges the others and the cheats:
    1/8, 1/4, 1/2 of the batch skipped, a free-rider. Each number is the median, over the opened
    tiles, of the implied gradient's error relative to the gradient. The bounds hold for the ways in
    the table: run it on every kind of machine that will take part.
    """
    from troth_cli.settings import run_settings

    config = run_settings(options.config, options.settings).config
    with output.loading():
        from troth_client.audit import calibrate as study
        from troth_client.audit.thresholds import in_the_way, propose_all, propose_for

    plan = study.Plan(options.rounds, options.every, options.draws, options.seed, options.trainers)
    with _data(options, config) as data, output.progress("rounds", in_bytes=False) as report:
        groups = study.calibrate(
            config.with_manifest(data.manifest.hash),
            data,
            study.ways_here(config),
            plan,
            lambda done, total: report(done, total, ""),
        )
    proposal, obstacles = propose_for(groups), in_the_way(groups, config.judge)
    bounds = propose_all(groups, proposal)
    rows = [_row(group) for group in groups]
    values = {
        "plan": asdict(plan),
        "machine": _machine(),
        "groups": rows,
        "proposal": asdict(proposal) | {"separates": proposal.separates},
        "bounds": bounds,
        "in_the_way": obstacles,
    }
    blocks = _blocks(rows, plan, proposal, config.judge)
    output.result(values, *blocks, *_section(bounds), *_warnings(obstacles))


@contextlib.contextmanager
def _data(options: CalibrateOptions, config: "RunConfig") -> Iterator["TokenData"]:
    import tempfile

    from troth_client.data.manifest import load_manifest
    from troth_client.data.prepare import PrepareOptions, prepare
    from troth_client.data.shards import TokenData
    from troth_client.data.sources import stdlib_source
    from troth_client.data.tokens import ByteTokenizer

    wanted = config.data.sequence_tokens
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.data or Path(temporary)
        if options.data is None:
            shape = PrepareOptions(sequence_tokens=wanted, limit_bytes=_STDLIB_BYTES)
            prepare(folder, stdlib_source(), ByteTokenizer(), shape)
        manifest = load_manifest(folder)
        if manifest.sequence_tokens != wanted:
            raise InputError(
                f"sequences of {wanted} tokens, as the run's settings say",
                f"{manifest.sequence_tokens}",
                "Prepare the data with the same --config.",
                "--data",
            )
        with TokenData(folder, manifest) as data:
            yield data


def _row(group: "Group") -> dict[str, object]:
    from troth_client.audit.thresholds import percentile

    return {
        "trainer": group.name,
        "is_honest": group.is_honest,
        "audits": group.verdicts.total(),
        "lowest": min(group.medians),
        "half": percentile(group.medians, 50),
        "99.9 %": percentile(group.medians, 99.9),
        "highest": max(group.medians),
        "far tiles": group.most_bad_tiles,
        "residual": round(group.highest_residual, 2),
        "apart": group.highest_distance,
    } | {kind.name.lower(): count for kind, count in group.verdicts.items()}


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
    rows: Sequence[Mapping[str, object]],
    plan: "Plan",
    proposal: "Proposal",
    judge: "JudgeSection",
) -> list[Facts | Grid | str]:
    machine = ", ".join(f"{name} {value}" for name, value in _machine().items())
    facts: list[tuple[str, object]] = [
        ("machine", machine),
        (
            "plan",
            f"{plan.rounds} rounds of {plan.trainers}, every {plan.every}, seed {plan.seed}",
        ),
        ("honest, 99.9 %", f"{proposal.honest:.6f}"),
        ("headroom", _headroom(proposal)),
        ("mildest cheat", f"{proposal.mildest:.6f}, {proposal.mildest_cheat}"),
        ("in the config", f"{judge.ok_bound_micro} and {judge.mismatch_bound_micro} micro"),
        ("proposed", _proposed(proposal)),
    ]
    shown = [[_cell(row, name) for name in (*_COLUMNS, *_VERDICTS)] for row in rows]
    return [Grid((*_COLUMNS, *_VERDICTS), shown), "", Facts(facts)]


def _section(bounds: "Mapping[str, int]") -> list[str]:
    """Return the lines for a config file, if there are bounds to propose."""
    if not bounds:
        return []
    lines = [f"{name} = {value:_}" for name, value in bounds.items()]
    return ["", "\n".join(["[judge]", *lines, "calibrated = true"])]


def _headroom(proposal: "Proposal") -> str:
    from troth_client.audit.thresholds import HEADROOM

    if proposal.ok_bound_micro is None or not proposal.honest:
        return "none"
    found = proposal.ok_bound_micro / 10**6 / proposal.honest
    short = "" if found > HEADROOM - 0.01 else f"; {HEADROOM} where the mildest cheat leaves room"
    return f"{found:.1f} x honest{short}"


def _warnings(obstacles: Sequence[str]) -> list[str]:
    """Warn of settings that would hurt honest participants under any two bounds."""
    if not obstacles:
        return []
    advice = (
        "Do not run this config: lower schedule.lr_nano, train on more tokens per payload or on a "
        "larger model, lower train.clip_micro (residuals), or raise that bound."
    )
    return [*(f"Honest work went beyond {line}." for line in obstacles), advice]


def _proposed(proposal: "Proposal") -> str:
    if not proposal.separates:
        return "none: honest work and the mildest cheat do not separate"
    ok, mismatch = proposal.ok_bound_micro, proposal.mismatch_bound_micro
    return f"judge.ok_bound_micro = {ok}, judge.mismatch_bound_micro = {mismatch}"


def _cell(row: Mapping[str, object], name: str) -> str:
    value = row.get(name, 0)
    return f"{value:.6f}" if isinstance(value, float) else str(value)
