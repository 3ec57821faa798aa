"""`troth audit`: check a whole run from its ledger and the bytes that the chain names.

Owns: options, progress, printing, the exit code. Never: checks a rule.
Next: `../workflows/audit.py`.
"""

import re
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Optional

import typer

from troth_cli.errors import InputError
from troth_cli.options import Common, command, split_addresses
from troth_cli.result_files import check_drawing, check_file
from troth_cli.view.output import Output

if TYPE_CHECKING:
    from troth_cli.workflows.audit import Done
    from troth_cli.workflows.audit_inputs import Asked
    from troth_cli.workflows.audit_replay import Plan
    from troth_coordinator.ledger.file import LedgerHead

_SPAN: Final = re.compile(r"(\d{0,18}):(\d{0,18})")
_KEY: Final = re.compile(r"[0-9A-Za-z]{0,32}")


@dataclass(frozen=True, kw_only=True)
class AuditOptions(Common):
    """Options of `troth audit`. An audit that cannot be done has proven nothing."""

    FAILED: ClassVar[int] = 2

    run_address: Annotated[
        str,
        typer.Argument(
            metavar="[RUN]",
            help="The run's address, or its file; an archive or a ledger names it as well.",
            show_default=False,
        ),
    ] = ""
    rpc: Annotated[
        list[str],
        typer.Option(
            "--rpc",
            metavar="URL",
            envvar="TROTH_RPC",
            callback=split_addresses,
            help="RPC node whose Run account the ledger is compared with; may be repeated, then the"
            " nodes are compared as well. Without one the audit of an archive is offline.",
            show_default=False,
        ),
    ] = field(default_factory=list)
    offline: Annotated[
        bool,
        typer.Option(
            "--offline",
            help="Ask no RPC node, whatever names one: --rpc, TROTH_RPC or a config file.",
        ),
    ] = False
    archive: Annotated[
        list[str],
        typer.Option(
            "--archive",
            metavar="DIR|URL",
            help="Where headers and payloads are: the folder of an archive, an object store like"
            " s3://bucket/prefix, or the address of a member or a hub. May be repeated: the first"
            " one that has the right bytes counts.",
        ),
    ] = field(default_factory=list)
    ledger: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--ledger",
            metavar="FILE",
            help="The ledger of the run; else that of the first archive, else the history of the"
            " first RPC node whose history its Run account proves.",
        ),
    ] = None
    rounds: Annotated[
        str,
        typer.Option(
            "--rounds",
            metavar="A:B",
            help="Replay rounds A to B - 1, from the newest checkpoint up to A that an archive has;"
            " from genesis if there is none.",
        ),
    ] = ""
    from_checkpoint: Annotated[
        Optional[int],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--from-checkpoint",
            metavar="ROUND",
            min=0,
            help="Take the weights of this round from an archive, piece by piece under the root on"
            " chain. Rounds before it are checked by their events alone.",
        ),
    ] = None
    recompute: Annotated[
        int,
        typer.Option(
            "--recompute",
            metavar="N",
            min=0,
            help="Compute the gradients of N payloads again, drawn at random: first of those whose"
            " tiles an audit opened, which are judged; of others the votes are compared.",
            show_default=False,
        ),
    ] = 0
    draw: Annotated[
        str,
        typer.Option(
            "--draw",
            metavar="KEY",
            help="Draw the payloads of an earlier report again; without it a new key is made.",
            show_default=False,
        ),
    ] = ""
    data: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--data",
            metavar="DIR",
            help="The run's data folder, for --recompute; without it the pieces that are needed"
            " come from the archives.",
        ),
    ] = None
    state: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--state",
            metavar="DIR",
            help="Keep the newest replayed weights there, so that the same command goes on after"
            " an interruption.",
        ),
    ] = None
    html: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write the report as a page of its own too, with plots of loss, participation,"
            " stakes and slashes.",
        ),
    ] = None


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "audit", AuditOptions)(audit)


def audit(options: AuditOptions, output: Output) -> None:
    """Check a whole run, from its ledger and archives alone: no key, no GPU, nobody to trust.

    The ledger is folded into the chain hash. Every close is decided again from its votes, every
    header is held against the chain, and every included payload is applied. So each state root is
    computed, not believed. Exit code 0: all is as the protocol says; 1: a proven discrepancy; 2:
    data are missing, or the audit could not be done.
    """
    with output.loading():
        from troth_cli.view.audit import audit_blocks, audit_values
        from troth_cli.workflows.audit import audit as work
        from troth_cli.workflows.audit_inputs import gather

    plan = replace(_plan(options), warn=output.warn)
    if options.html is not None:
        check_drawing()
        check_file(options.html)
    with tempfile.TemporaryDirectory(prefix="troth-audit-") as folder:
        inputs = gather(_asked(options, Path(folder)))
        for reason in inputs.silent:
            output.warn(f"The account is not compared with that of {reason}")
        num_rounds = max((word.run.round for word in inputs.words), default=None)
        with inputs.sources, output.progress("audit", in_bytes=False) as report_progress:
            done = work(inputs, plan, lambda done: report_progress(done + 1, num_rounds, ""))
    head, report = inputs.ledger.head, done.report
    output.result(audit_values(head, report), *audit_blocks(head, report))
    code = int(report.conclusion)
    if options.html is not None and not _write_page(options.html, head, done, output):
        code = code or AuditOptions.FAILED  # a proven discrepancy stays one
    raise typer.Exit(code)


def _write_page(path: Path, head: "LedgerHead", done: "Done", output: Output) -> bool:
    """Write the page after the result; warn and return False where the disk is full."""
    from troth_cli.plot.audit import audit_page
    from troth_client.runtime.files import DiskFullError, atomic_write

    try:
        atomic_write(path, [audit_page(head, done).encode()])
    except DiskFullError as error:
        output.warn(f"The page {path} was not written: {error}")
        return False
    return True


def _asked(options: AuditOptions, folder: Path) -> "Asked":
    from troth_cli.run_file import names_file, read_run_file
    from troth_cli.view.amounts import address, address_of_run
    from troth_cli.workflows.audit_inputs import Asked

    run, program = options.run_address, ""
    rpc = [] if options.offline else options.rpc
    if run and names_file(run):
        file = read_run_file(Path(run))
        run, program = file.address, file.program_id
        if not (rpc or options.offline or options.archive or options.ledger):
            rpc = list(file.rpc)
    return Asked(
        address_of_run(run) if run else None,
        address(program, "program_id") if program else None,
        rpc,
        options.archive,
        options.ledger,
        folder,
    )


def _plan(options: AuditOptions) -> "Plan":
    from troth_cli.workflows.audit_replay import MOST_ROUNDS, Plan

    start, end = 0, MOST_ROUNDS
    if options.rounds:
        span = _SPAN.fullmatch(options.rounds)
        first, last = span.groups() if span else ("", "")
        if span is None or int(last or end) <= int(first or 0):
            raise InputError(
                "two rounds like 100:200",
                repr(options.rounds),
                "Name the first, then the end.",
                "--rounds",
            )
        start, end = int(first or 0), int(last or end)
    if not _KEY.fullmatch(options.draw):
        raise InputError(
            "up to 32 letters and digits", repr(options.draw), "Copy it from a report.", "--draw"
        )
    is_exact = options.from_checkpoint is not None
    return Plan(
        options.from_checkpoint if options.from_checkpoint is not None else start,
        end,
        is_exact,
        options.recompute,
        options.draw,
        options.data,
        state=options.state,
    )
