"""`troth doctor`: what would keep this machine from taking part, and what to do about it.

Owns: options, the exit code and printing. Never: checks; `../workflows/doctor.py` does.
Next: `../workflows/doctor.py`.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Optional

import typer

from troth_cli.options import DeviceName, Hubs, MicroBatch, Networked, command
from troth_cli.view.output import Output


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(Networked):
    """Options of `troth doctor`."""

    run_address: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="The run's address, or its file; without it, only what needs no run.",
            show_default=False,
        ),
    ] = ""
    key: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option("--key", metavar="FILE", help="Key file of the owner.", show_default=False),
    ] = None
    state: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--state",
            metavar="DIR",
            help="Folder of the participant; else one in troth-state, named by run and owner.",
            show_default=False,
        ),
    ] = None
    device: DeviceName = ""
    micro_batch: MicroBatch = None
    hub: Hubs = field(default_factory=list)


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "doctor", DoctorOptions)(doctor)


def doctor(options: DoctorOptions, output: Output) -> None:
    """Look for what would keep this machine from taking part, and say what to do.

    Asks the RPC node (latency, lag, limits, version, slots), looks at key, balance and disk, and
    tests the device. With RUN it also counts the rounds that the balance pays for. With the run's
    file it fetches a piece of the weights from each holder, and a payload from each hub. It
    times a payload and a judgement, and compares them with the run's windows and bounds.

    The exit code is 0 without a problem, 1 with one, 2 for options that cannot be understood.
    Nothing is sent to the chain.
    """
    from troth_cli.errors import InputError
    from troth_cli.settings import hints_of, run_settings
    from troth_cli.view.amounts import address_of_run
    from troth_cli.view.checks import checks_grid
    from troth_cli.workflows.checks import rows_json
    from troth_cli.workflows.doctor import examine, has_problem
    from troth_cli.workflows.doctor_run import Question
    from troth_cli.workflows.run_files import check_holders
    from troth_client.model.device_kind import device_kind
    from troth_client.model.errors import DeviceError

    hints = hints_of(options.config, options.device)
    try:
        device_kind(hints.device)
    except DeviceError as error:
        raise typer.BadParameter(str(error)) from error
    check_holders(options.hub)
    try:
        run = address_of_run(options.run_address) if options.run_address else None
    except InputError as error:
        raise typer.BadParameter(str(error)) from error
    rows = examine(
        Question(
            rpc_urls=tuple(options.rpc),
            program=options.program,
            run=run,
            config=run_settings(options.config).config if options.config else None,
            key=options.key,
            state=options.state,
            device=hints.device,
            precision=hints.precision,
            microbatch_sequences=options.micro_batch,
            hubs=tuple(options.hub),
        ),
        output,
    )
    is_fine = not has_problem(rows)
    output.result({"is_fine": is_fine, "checks": rows_json(rows)}, checks_grid(rows))
    if not is_fine:
        raise typer.Exit(1)
