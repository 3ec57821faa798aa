"""`troth profile`: bytes and time of DDP, FSDP, DiLoCo and DeMo on one workload.

Owns: options, checks before anything is measured, files, printing. Never: measures.
Next: `troth_simulation/profile/`, and `../view/profile.py` for the table.
"""

import contextlib
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Optional

import typer

from troth_cli.errors import InputError
from troth_cli.options import Common, Settings, command
from troth_cli.result_files import check_drawing, check_folder
from troth_cli.view.output import Json, Output

if TYPE_CHECKING:
    from troth_coordinator.rules.config import RunConfig
    from troth_simulation.profile.records import Study, Workload

MODELS: Final = {
    "demo": {},
    "6m": {
        "vocab_size": 256,
        "hidden_size": 256,
        "intermediate_size": 704,
        "num_hidden_layers": 8,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "tie_word_embeddings": False,
    },
}
"""Names of models, and what each of them changes in the section [model] of the settings."""
_METHODS: Final = ("ddp", "fsdp", "diloco", "demo")
_MBITS: Final = (10, 60, 1000)
_PRESET: Final = "localnet"
_NAMES: Final = ("profile.md", "profile.svg", "profile.json")


@dataclass(frozen=True, kw_only=True)
class ProfileOptions(Common):
    """Options of `troth profile`."""

    settings: Settings = field(default_factory=list)
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            metavar="NAME",
            help="demo: the model of the settings, else of the preset localnet; 6m: 6,033,664"
            " parameters, 256 wide, 8 layers. May be repeated; else both.",
        ),
    ] = field(default_factory=lambda: list(MODELS))
    method: Annotated[
        list[str],
        typer.Option(
            "--method",
            metavar="NAME",
            help=f"One of {', '.join(_METHODS)}. May be repeated; else all.",
        ),
    ] = field(default_factory=lambda: list(_METHODS))
    mbit: Annotated[
        list[int],
        typer.Option(
            "--mbit",
            metavar="N",
            help="Rate of each rank's cable in each direction, in Mbit/s. May be repeated.",
        ),
    ] = field(default_factory=lambda: list(_MBITS))
    no_shaping: Annotated[
        bool,
        typer.Option(
            "--no-shaping", help="Measure on loopback alone, without a bound: needs no root."
        ),
    ] = False
    ranks: Annotated[int, typer.Option("--ranks", metavar="N", help="Processes that train.")] = 4
    steps: Annotated[
        int,
        typer.Option(
            "--steps", metavar="N", min=1, help="Steps of a measurement; DiLoCo: whole rounds."
        ),
    ] = 5
    inner_steps: Annotated[
        int,
        typer.Option(
            "--inner-steps", metavar="H", min=1, help="Local steps of DiLoCo between exchanges."
        ),
    ] = 10
    adamw_lr: Annotated[
        float,
        typer.Option("--adamw-lr", metavar="RATE", help="Peak rate of DDP, FSDP and DiLoCo."),
    ] = 0.002
    data: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--data",
            metavar="DIR",
            help="Prepared data set; without it, bytes of the Python standard library.",
        ),
    ] = None
    out: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--out", metavar="DIR", help=f"Folder for {', '.join(_NAMES)}; else only the table."
        ),
    ] = None
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Of the first weights.")
    ] = 0


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "profile", ProfileOptions)(profile)


def profile(options: ProfileOptions, output: Output) -> None:
    """Measure bytes and time of DDP, FSDP, DiLoCo and DeMo: same model, same data, same tokens.

    Each rank is a process in a network namespace of its own. It computes on the processor, also
    where there is a GPU. A cable with a bounded rate joins it to a bridge; torch.distributed (gloo)
    speaks over it. Namespaces need Linux and root. --no-shaping measures on loopback instead.
    Nothing is estimated where nothing can be measured.

    Each method is also trained once without a bound, over the rounds of the schedule. Loss against
    time is composed of that curve and the measured seconds of a step. DeMo's payloads go round by
    all-gather here: these are the bytes of the method, without troth's signatures, HTTP and chain.

    With --set schedule.rounds=120, and otherwise the defaults, this took 25 minutes on two cores.
    """
    _check(options)
    with output.loading():
        from troth_cli.bench.clock import load
        from troth_cli.workflows.sample_data import data_folder
        from troth_localnet.fleet import preload
        from troth_simulation.profile.cell import check_shaping
        from troth_simulation.profile.counters import check_system
        from troth_simulation.profile.records import Plan
        from troth_simulation.profile.study import study
    check_system()
    if not options.no_shaping:
        check_shaping()
    configs = _configs(options)
    mbits = () if options.no_shaping else tuple(dict.fromkeys(options.mbit))
    plan = Plan(_chosen(options.method, _METHODS, "--method"), mbits, options.steps)
    first = next(iter(configs.values()))
    with data_folder(options.data, first) as folder, _ended_in_order():
        workloads = _workloads(options, configs, folder)
        preload(("troth_simulation.profile.rank",))
        machine = _machine()
        with output.progress("cells", in_bytes=False) as report:
            found = study(workloads, plan, report, output.note)
    machine["load_after"] = load()
    _show(options, output, found, workloads, machine)


def _show(
    options: ProfileOptions,
    output: Output,
    found: "Study",
    workloads: "Sequence[Workload]",
    machine: dict[str, Json],
) -> None:
    """Write the files, if a folder was named, and print the table."""
    from troth_cli.view.profile import facts_of, grid, notes, to_json

    facts, values = facts_of(workloads, machine), to_json(found, workloads, machine)
    if options.out is not None:
        _write(options.out, found, values, workloads)
    written = [f"Wrote {', '.join(_NAMES)} in {options.out}."] if options.out else []
    output.result(values, grid(found), "", facts, "", *notes(found), *written)


def _write(
    folder: Path, found: "Study", values: dict[str, Json], workloads: "Sequence[Workload]"
) -> None:
    import json

    from troth_cli.plot.profile import svg_of
    from troth_cli.view.profile import facts_of, markdown
    from troth_client.runtime.files import atomic_write

    machine = values["machine"]
    facts = facts_of(workloads, machine if isinstance(machine, dict) else {})
    page, picture, numbers = _NAMES
    texts = {
        page: markdown(found, facts, picture),
        picture: svg_of(found),
        numbers: json.dumps(values, indent=1) + "\n",
    }
    for name, text in texts.items():
        atomic_write(folder / name, [text.encode()])


def _configs(options: ProfileOptions) -> "dict[str, RunConfig]":
    """Return the config of each model by name; InputError for settings that make no comparison."""
    import tempfile

    from troth_cli.presets import preset_text
    from troth_cli.settings import run_sections
    from troth_coordinator.rules.settings import merge, settings_from

    files = list(options.config)
    with tempfile.TemporaryDirectory() as temporary:
        if not files:
            files = [Path(temporary, f"{_PRESET}.toml")]
            files[0].write_text(preset_text(_PRESET), encoding="utf-8")
        sections = run_sections(files, options.settings)
    found = {
        name: settings_from(merge([sections, {"model": MODELS[name]}])).config
        for name in _chosen(options.model, tuple(MODELS), "--model")
    }
    rounds = next(iter(found.values())).schedule.rounds
    if "diloco" in options.method and rounds % options.inner_steps:
        raise InputError(
            f"whole rounds of DiLoCo in the {rounds} rounds of the schedule",
            f"rounds of {options.inner_steps} steps",
            "Choose a divisor for --inner-steps, or --set schedule.rounds=N.",
            "--inner-steps",
        )
    return found


def _workloads(
    options: ProfileOptions, configs: "dict[str, RunConfig]", folder: Path
) -> "list[Workload]":
    from troth_client.data.manifest import load_manifest
    from troth_simulation.profile.records import Workload

    held_out = load_manifest(folder).num_validation_sequences
    if held_out < options.ranks:
        raise InputError(
            f"a held-out sequence for each of {options.ranks} ranks",
            str(held_out),
            "Prepare more data, or take fewer --ranks.",
            "--data",
        )
    return [
        Workload(
            name=name,
            config=config,
            data=folder,
            num_ranks=options.ranks,
            adamw_lr=options.adamw_lr,
            inner_steps=options.inner_steps,
            seed=options.seed,
        )
        for name, config in configs.items()
    ]


def _check(options: ProfileOptions) -> None:
    """Raise InputError or OutputFileError for what can be refused before anything is loaded."""
    _chosen(options.method, _METHODS, "--method")
    _chosen(options.model, tuple(MODELS), "--model")
    if not 2 <= options.ranks <= 64:
        raise InputError(
            "2 to 64 ranks: one alone exchanges nothing",
            str(options.ranks),
            "Choose a number in that range.",
            "--ranks",
        )
    slow = [mbit for mbit in options.mbit if not 1 <= mbit <= 100_000]
    if slow or not options.mbit:
        raise InputError(
            "rates of 1 to 100000 Mbit/s",
            ", ".join(map(str, slow)) or "none",
            "Name such a rate, or measure without a bound: --no-shaping.",
            "--mbit",
        )
    if not 0 < options.adamw_lr < 1:
        raise InputError(
            "a rate between 0 and 1", f"{options.adamw_lr}", "Try 0.002.", "--adamw-lr"
        )
    if options.out is not None:
        check_drawing()
        check_folder(options.out)


def _chosen(given: Sequence[str], known: tuple[str, ...], option: str) -> tuple[str, ...]:
    """Return names in the order of `known`, each once; InputError for an unknown one."""
    unknown = sorted(set(given) - set(known))
    if unknown or not given:
        raise InputError(
            f"some of {', '.join(known)}",
            ", ".join(unknown) or "none",
            "Name those.",
            option,
        )
    return tuple(name for name in known if name in given)


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let SIGTERM and the end of a terminal act as Ctrl-C: networks and processes go away."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    previous = [(number, signal.signal(number, interrupt)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in previous:
            signal.signal(number, handler)


def _machine() -> dict[str, Json]:
    import os
    import platform

    import torch

    from troth_cli.bench.clock import load
    from troth_simulation.profile.cell import CONGESTION_CONTROL, QUEUE_MILLISECONDS

    return {
        "processor": torch.backends.cpu.get_cpu_capability(),
        "architecture": platform.machine(),
        "cores": os.cpu_count() or 1,
        "torch": torch.__version__,
        "kernel": platform.release(),
        "cables": f"{CONGESTION_CONTROL}, a queue of {QUEUE_MILLISECONDS} ms at each end",
        "load_before": load(),
    }
