"""`troth join` and `troth witness`: take part in a run until it ends.

Owns: options and printing. Never: the work; `../workflows/join.py` has it.
Next: `../workflows/join.py`; `membership.py` for the owner's commands afterwards.
"""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from troth_cli.commands.archive_options import WithArchive
from troth_cli.options import MAX_THREADS, AllowPrivate, DeviceName, From, Hubs, MicroBatch, command
from troth_cli.view.amounts import address_of_run, lamports, sol_number
from troth_cli.view.output import Facts, Grid, Output
from troth_client.participant.settings import (
    PAST_BYTES,
    REFILL_LAMPORTS,
    SESSION_LAMPORTS,
    ParticipantSettings,
)
from troth_coordinator.chain.priority import DEFAULT_POLICY, PriorityPolicy

if TYPE_CHECKING:
    from troth_cli.view.output import Json
    from troth_cli.workflows.join_request import JoinRequest
    from troth_client.participant.ending import ParticipantEnd


@dataclass(frozen=True, kw_only=True)
class WitnessOptions(WithArchive):
    """Options of `troth witness`."""

    data: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--data",
            metavar="DIR",
            help="Data set that the run is bound to; else it is fetched into the state folder.",
        ),
    ] = None
    data_from: From = field(default_factory=list)
    start: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--start",
            metavar="DIR",
            help="Weights that the run was created from; else they are fetched from others.",
        ),
    ] = None
    device: DeviceName = ""
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            help="Where others reach us; none: all our connections are outbound.",
        ),
    ] = "127.0.0.1:0"
    endpoint: Annotated[
        str,
        typer.Option(
            "--endpoint", metavar="URL", help="Address for others, if it differs from --listen."
        ),
    ] = ""
    state: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--state",
            metavar="DIR",
            help="Folder of this participant; else one in troth-state, named by run and owner.",
        ),
    ] = None
    session_sol: Annotated[
        str,
        typer.Option(
            "--session-sol", metavar="SOL", help="Moved to the session key, for fees and rent."
        ),
    ] = sol_number(SESSION_LAMPORTS)
    refill_sol: Annotated[
        str,
        typer.Option(
            "--refill-sol",
            metavar="SOL",
            help="Limit of later refills, when the session key runs low.",
        ),
    ] = sol_number(REFILL_LAMPORTS)
    priority_fee: Annotated[
        str,
        typer.Option(
            "--priority-fee",
            metavar="POLICY",
            help="none, fixed:N (micro-lamports per compute unit), or percentile:P of what others "
            "lately paid to write the same accounts. More near a deadline.",
        ),
    ] = DEFAULT_POLICY
    priority_cap_sol: Annotated[
        str,
        typer.Option(
            "--priority-cap-sol", metavar="SOL", help="Most for the priority of one transaction."
        ),
    ] = "0.0001"
    priority_epoch_cap_sol: Annotated[
        str,
        typer.Option(
            "--priority-epoch-cap-sol",
            metavar="SOL",
            help="Most for priority in one epoch of the run; then sends go on without.",
        ),
    ] = "0.01"
    stake_sol: Annotated[
        str,
        typer.Option(
            "--stake-sol",
            metavar="SOL",
            help="Deposit when joining; else the least stake of the run.",
            show_default=False,
        ),
    ] = ""
    top_up_sol: Annotated[
        str,
        typer.Option(
            "--top-up-sol",
            metavar="SOL",
            help="Limit of what may be added to the stake when fines made it too small to stay. "
            "More than the limit is reported, and nothing is added.",
        ),
    ] = "0"
    hub: Hubs = field(default_factory=list)
    store: Annotated[
        list[str],
        typer.Option(
            "--store",
            metavar="URL",
            help="An object store beside those of the config, like s3://bucket/prefix; may be"
            " repeated. Credentials to write are taken from the environment.",
        ),
    ] = field(default_factory=list)
    allow_private: AllowPrivate = False
    threads: Annotated[
        Optional[int],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--threads",
            metavar="N",
            min=1,
            max=MAX_THREADS,
            help="Threads to compute with; else all, or with several ranks a share of them.",
        ),
    ] = None
    micro_batch: MicroBatch = None
    past_mib: Annotated[
        int,
        typer.Option(
            "--past-mib",
            metavar="N",
            min=0,
            help="Memory for the weights of past rounds, of the GPU where there is one, and as much"
            " of the processor for their residuals, in MiB; the disk has the rest.",
        ),
    ] = PAST_BYTES >> 20
    ledger: Annotated[
        bool,
        typer.Option(
            "--ledger/--no-ledger",
            help="Keep the events of the run in the state folder, ledger.jsonl, so that it can be"
            " audited when RPC nodes have forgotten them. It takes one request for each"
            " transaction of the run.",
        ),
    ] = True
    log_to: Annotated[
        list[str],
        typer.Option(
            "--log-to",
            metavar="tensorboard:DIR",
            help="Write losses, bytes, seconds, stake, rewards and fees for TensorBoard;"
            " may be repeated.",
        ),
    ] = field(default_factory=list)
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics",
            metavar="HOST:PORT",
            help="Serve metrics for Prometheus on this machine, like 127.0.0.1:9100.",
        ),
    ] = ""
    anyway: Annotated[
        bool,
        typer.Option("--anyway", help="Join although machine or state folder seem unfit for it."),
    ] = False
    check: Annotated[
        bool, typer.Option("--check", help="Only make the checks; nothing is paid.")
    ] = False
    plain: Annotated[
        bool,
        typer.Option("--plain", help="Print a line per event; no live view on a terminal."),
    ] = False
    yes: Annotated[
        bool, typer.Option("--yes", help="Deposit unasked, also where this key has left the run.")
    ] = False

    def priority(self) -> PriorityPolicy:
        """Return how much may be paid to land sooner; InputError, PriorityPolicyError."""
        return PriorityPolicy.parse(
            self.priority_fee,
            lamports(self.priority_cap_sol, "--priority-cap-sol"),
            lamports(self.priority_epoch_cap_sol, "--priority-epoch-cap-sol"),
        )


@dataclass(frozen=True, kw_only=True)
class JoinOptions(WitnessOptions):
    """Options of `troth join`."""

    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help="trainer, witness or both.")
    ] = "both"
    compiles: Annotated[
        bool,
        typer.Option(
            "--compile",
            help="Train with torch.compile; needs a C++ compiler on the CPU. Where compiling fails,"
            " training goes on without.",
        ),
    ] = False
    ranks: Annotated[
        int,
        typer.Option(
            "--ranks",
            metavar="N",
            min=1,
            help="Compute each payload with N processes, each on the GPU of its number.",
        ),
    ] = 1


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    command(app, "join", JoinOptions)(join)
    command(app, "witness", WitnessOptions)(witness)


def join(options: JoinOptions, output: Output) -> None:
    """Join a run with a stake, or resume in it, and take part until it ends.

    The run's config and data are fetched from its members unless you name them. Before anything is
    paid, it checks the run, your data and balance, a free place and this machine: it times a
    payload and a judgement. --check stops there. Ctrl-C (or SIGTERM) stops after the round under
    way; the stake stays, and the same command resumes. A second Ctrl-C stops at once. Audits do not
    wait: the event `owed` lists the duties that are left, the slots in which to resume, and the
    highest fine for silence in lamports.

    After `troth leave` the same command serves these duties and deposits nothing. Later it joins
    again, with another deposit: outside a terminal only with --yes.

    Several GPUs of this machine compute one payload with --ranks N: this process takes part, and
    N-1 others that it starts compute for it. Where one of them ends, it goes on alone. Where one
    cannot start, a newcomer ends and has paid nothing. torchrun --nproc-per-node N -m troth_cli
    join RUN does the same, but ends all when one ends.

    On a terminal of 80 columns it draws a live view; elsewhere, and with --plain, it prints events.
    """
    from troth_cli.settings import hints_of
    from troth_cli.workflows import ranks

    if options.role == "witness":
        ranks.refuse_ranks(os.environ, options.ranks)
    place = ranks.place_of(os.environ, options.ranks)
    threads = ranks.threads_of(place, options.threads, ranks.num_cores())
    if place is not None and place.rank:
        hints = hints_of(options.config, options.device)
        training = ranks.Training(options.compiles, options.micro_batch, hints.precision)
        ranks.help_rank_zero(place, training, hints.device, threads, output)
        return
    request = _request(options, options.role, output)
    request = request.changed(compiles=options.compiles, num_threads=threads)
    _take_part(replace(request, place=place), output)


def witness(options: WitnessOptions, output: Output) -> None:
    """Join a run to verify only: with a stake, without training; a CPU is enough.

    Otherwise as join. At the end it prints its checks, findings and earnings.
    """
    from troth_cli.workflows.ranks import refuse_ranks

    refuse_ranks(os.environ)
    _take_part(_request(options, "witness", output), output)


def _take_part(request: "JoinRequest", output: Output) -> None:
    """Join, follow the run, print how it ended and the witness's duties."""
    from troth_cli.view.checks import checks_grid
    from troth_cli.workflows.checks import rows_json
    from troth_cli.workflows.join import join as take_part

    joined = take_part(request, output)
    checks = rows_json(joined.rows)
    if joined.end is None:
        values = {"run": request.settings.run, "checks": checks}
        output.result(values, checks_grid(joined.rows))
        return
    _print_end(joined.end, request, checks, output)


def _request(options: WitnessOptions, role: str, output: Output) -> "JoinRequest":
    """Return what the options ask for."""
    from troth_cli.keyfiles import read_key
    from troth_cli.settings import hints_of, run_settings
    from troth_cli.state_folders import state_folder
    from troth_cli.workflows.join_request import JoinRequest, role_of
    from troth_cli.workflows.recording import recording
    from troth_coordinator.ledger.file import LEDGER_FILE

    run = address_of_run(options.run_address)
    owner = read_key(options.key, output.warn)
    hints = hints_of(options.config, options.device)
    state = options.state or state_folder(run, owner.pubkey())
    keeps_ledger = options.ledger and options.archive is None  # an archive has its own
    settings = ParticipantSettings(
        rpc_urls=tuple(options.rpc),
        program="" if options.program is None else str(options.program),
        run=str(run),
        config=run_settings(options.config).config,
        data=options.data or state / "data",
        state=state,
        owner=bytes(owner),
        session=b"",
        role=role_of(role),
        endpoint=options.endpoint,
        device=hints.device,
        precision=hints.precision,
        session_lamports=lamports(options.session_sol, "--session-sol"),
        refill_lamports=lamports(options.refill_sol, "--refill-sol"),
        stake_lamports=lamports(options.stake_sol, "--stake-sol") if options.stake_sol else None,
        top_up_lamports=lamports(options.top_up_sol, "--top-up-sol"),
        priority=options.priority(),
        num_threads=options.threads,
        hubs=tuple(options.hub),
        stores=tuple(options.store),
        allow_private=options.allow_private,
        validate_every=hints.validate_every,
        start=options.start,
        microbatch_sequences=options.micro_batch,
        past_bytes=options.past_mib << 20,
        ledger=state / LEDGER_FILE if keeps_ledger else None,
        archive=options.archive,
        archive_bytes=options.archive_bytes(),
        archive_rounds=options.archive_keep_rounds,
    )
    return JoinRequest(
        settings,
        listen=options.listen,
        recording=recording(options.log_to, options.metrics),
        fetches_data=options.data is None,
        data_from=tuple(options.data_from),
        goes_on_anyway=options.anyway,
        only_checks=options.check,
        is_agreed=options.yes,
        is_plain=options.plain,
    )


def _print_end(
    end: "ParticipantEnd",
    request: "JoinRequest",
    checks: "list[dict[str, object]]",
    output: Output,
) -> None:
    from troth_coordinator.rules.view import Role

    settings = request.settings
    shown: dict[str, Json] = {
        "run": settings.run,
        "owner": str(request.owner.pubkey()),
        "index": int(end.index),
        "round": end.round,
        "root": end.root.hex(),
        "is_finished": end.is_finished,
        "weights": None if end.weights is None else str(end.weights),
        "state": str(settings.state),
    }
    blocks: list[Facts | Grid] = [Facts.of(shown)]
    values: dict[str, object] = {**shown, "checks": checks}
    if Role.WITNESS in settings.role:
        from troth_cli.view.duties import duty_blocks
        from troth_cli.workflows.kept_duties import duties_of

        duties = duties_of(settings.state)
        values["duties"] = duties.to_json()
        blocks += duty_blocks(duties)
    output.result(values, *blocks)
