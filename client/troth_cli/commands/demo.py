"""`troth demo`: a whole run on this machine, and proof that it trained and that a cheat lost stake.

Owns: the options. Never: the work. Next: `../demo/`.
"""

import contextlib
import shlex
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from troth_cli.local_chain import UseValidator, ValidatorPath, validator_launcher
from troth_cli.options import Common, command
from troth_cli.view.output import Output

if TYPE_CHECKING:
    from troth_cli.demo.options import DemoOptions
    from troth_cli.demo.summary import Summary


@dataclass(frozen=True, kw_only=True)
class DemoFlags(Common):
    """Options of `troth demo`."""

    path: ValidatorPath = None
    validator: UseValidator = False
    cheat: Annotated[
        str,
        typer.Option(
            "--cheat",
            metavar="KIND",
            help="The cheat of the one dishonest trainer; listed below.",
        ),
    ] = "free-rider"
    out: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option("--out", metavar="DIR", help="Folder for everything; else runs/demo-DATE."),
    ] = None
    trainers: Annotated[
        int,
        typer.Option(
            "--trainers", metavar="N", min=2, max=14, help="Honest ones that train and witness."
        ),
    ] = 4
    witnesses: Annotated[
        int, typer.Option("--witnesses", metavar="N", min=0, max=4, help="Those that only witness.")
    ] = 1
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", min=1, help="Rounds to train.")
    ] = 40
    slot_ms: Annotated[
        int, typer.Option("--slot-ms", metavar="MS", help="Length of a slot, 20 to 400.")
    ] = 100
    margin_micro: Annotated[
        int,
        typer.Option(
            "--margin-micro",
            metavar="N",
            help="Micro-nats by which the validation loss must fall.",
        ),
    ] = 1_500_000
    kill_round: Annotated[
        Optional[int],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--kill-round", metavar="N", help="Kill one trainer when this round has closed."
        ),
    ] = None
    seed: Annotated[
        Optional[int],  # noqa: UP045  typer reads it at run time
        typer.Option("--seed", metavar="N", min=0, help="Fix the run's address and first weights."),
    ] = None
    stay: Annotated[
        bool,
        typer.Option(
            "--stay", help="Keep the chain up until Ctrl-C: for troth status and troth dashboard."
        ),
    ] = False
    no_display: Annotated[
        bool, typer.Option("--no-display", help="No live display: a line per round.")
    ] = False


def cheats() -> Iterator[tuple[str, str]]:
    """Yield the values of `--cheat` with their stories."""
    from troth_simulation.cheats.catalogue import CHEATS, NOBODY

    yield from ((cheat.name, cheat.story) for cheat in CHEATS.values())
    yield NOBODY, "nobody cheats"


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "demo", DemoFlags, choices=cheats)(demo)


def demo(options: DemoFlags, output: Output) -> None:
    """Train with honest participants and one cheat on a chain of its own, and convict the cheat.

    Four honest participants train and witness, one only witnesses, and one only trains: honestly
    for its first three included rounds, then it cheats. A cheat on juries witnesses too. Witnesses
    recompute at most two payloads a round. The display shows the mismatch, the accusation, the
    case, the slash, where it went.

    Nothing is needed beforehand. The exit code is 0 only if four claims hold. Every honest
    participant has the root that is on chain. The validation loss fell by the margin. The cheat was
    convicted and slashed, and the escrow was paid out. No honest stake moved. The summary proves
    this from chain data.
    """
    chosen = demo_options(options)
    chosen.check_folder()
    launcher = validator_launcher(options.validator, options.path, options.slot_ms)
    with output.loading():
        from troth_cli.demo.participant import preload_participants

        # The modules of the participants take seconds to import: meanwhile the demo is set up.
        preload_participants()
        from troth_cli.demo.report import blocks
        from troth_cli.demo.runner import run_demo

    def report(summary: "Summary", rpc_url: str) -> None:
        output.result(summary.to_json(), *blocks(summary))
        check = f"troth audit --offline --archive {chosen.archive}"
        output.note(f"Check the run without the chain: {check}")
        if options.stay:
            _stay(summary, str(chosen.folder), rpc_url, output)

    summary = run_demo(chosen, output.console(), launcher, report)
    if not summary.is_success:
        raise typer.Exit(1)


def demo_options(flags: DemoFlags) -> "DemoOptions":
    """Return the options of the demo as its parts take them."""
    from troth_cli.demo.options import DemoOptions, new_folder

    return DemoOptions(
        folder=flags.out or new_folder(),
        num_trainers=flags.trainers,
        num_witnesses=flags.witnesses,
        cheat=flags.cheat,
        num_rounds=flags.rounds,
        slot_milliseconds=flags.slot_ms,
        margin_micro=flags.margin_micro,
        kill_round=flags.kill_round,
        seed=flags.seed,
        is_live=not (flags.no_display or flags.json),
    )


def _stay(summary: "Summary", folder: str, rpc_url: str, output: Output) -> None:
    """Keep the chain up until Ctrl-C, and print the commands to look at it."""
    where = f"{summary.run} --rpc {rpc_url}"
    looks = [f"troth status {where}", f"troth dashboard {where}"]
    looks += [
        f"troth case show {where} --round {case.key[0]} --target {case.key[1]}"
        for case in summary.outcome.convictions[:1]
    ]
    # Nobody serves headers any more: the losses are in the logs.
    looks.append(f"troth plot {shlex.quote(folder)} --out {shlex.quote(f'{folder}/run.svg')}")
    with contextlib.suppress(KeyboardInterrupt):
        output.note("\n  ".join(["The chain stays up; Ctrl-C ends it. Look around:", *looks]))
        signal.pause()
