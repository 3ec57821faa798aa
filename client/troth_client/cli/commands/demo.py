"""`troth demo`: everything at once on this machine, and proof that it trained.

Owns: the options. Never: the performance. Next: `../demo/`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from troth_client.cli.amounts import sol
from troth_client.cli.options import Common, command
from troth_client.cli.output import Facts, Output

if TYPE_CHECKING:
    from troth_client.cli.demo.options import DemoOptions
    from troth_client.cli.demo.summary import Summary

MICRO = 10**6


@dataclass(frozen=True, kw_only=True)
class DemoFlags(Common):
    """Options of `troth demo`."""

    out: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option("--out", metavar="DIR", help="Folder for everything; else runs/demo-DATE."),
    ] = None
    trainers: Annotated[
        int, typer.Option("--trainers", metavar="N", min=2, max=16, help="Trainer processes.")
    ] = 4
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
    no_display: Annotated[
        bool, typer.Option("--no-display", help="No live display: a line per round.")
    ] = False


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "demo", DemoFlags)(demo)


def demo(options: DemoFlags, output: Output) -> None:
    """Train a small model with four peers on an embedded chain and check that all agree.

    Nothing is needed beforehand. Exit code 0 only if every peer holds the root that is on chain
    and the validation loss fell by the margin.
    """
    from troth_client.cli.demo.show import run_demo

    summary = run_demo(demo_options(options), output.console())
    blocks = [Facts(_rows(summary), "demo")]
    output.result(summary.to_json(), *blocks, _verdict(summary))
    if not summary.is_success:
        raise typer.Exit(1)


def demo_options(flags: DemoFlags) -> "DemoOptions":
    """Return what the demo takes."""
    from troth_client.cli.demo.options import DemoOptions

    folder = {} if flags.out is None else {"folder": flags.out}
    return DemoOptions(
        **folder,
        num_trainers=flags.trainers,
        num_rounds=flags.rounds,
        slot_milliseconds=flags.slot_ms,
        margin_micro=flags.margin_micro,
        kill_round=flags.kill_round,
        seed=flags.seed,
        is_live=not (flags.no_display or flags.json),
    )


def _rows(summary: "Summary") -> list[tuple[str, object]]:
    first, last = summary.loss_first_micro / MICRO, summary.loss_last_micro / MICRO
    ratio = summary.dense_bytes / summary.payload_bytes if summary.payload_bytes else 0.0
    return [
        ("run", summary.run),
        ("rounds", summary.num_rounds),
        ("parameters", f"{summary.num_parameters:,}"),
        (
            "validation loss",
            f"{first:.3f} -> {last:.3f} nats a byte (margin {summary.margin_micro / MICRO:g})",
        ),
        (
            "payload",
            f"{summary.payload_bytes:,} bytes a step, {summary.bytes_per_parameter:.4f} a"
            f" parameter: {ratio:.0f} times less than dense bf16",
        ),
        ("payloads included", summary.num_included),
        ("fees", sol(summary.fees_lamports)),
        ("state root", summary.state_root),
        ("root on chain", summary.chain_root),
        ("peers that agree", f"{_num_agreeing(summary)} of {len(summary.peer_roots)}"),
        ("missing peers", ", ".join(summary.missing_peers) or "none"),
        ("killed peers", ", ".join(summary.killed_peers) or "none"),
        ("events", summary.events),
        ("weights", summary.weights),
    ]


def _num_agreeing(summary: "Summary") -> int:
    return sum(root == summary.chain_root for root in summary.peer_roots.values())


def _verdict(summary: "Summary") -> str:
    if summary.is_success:
        return "Every peer holds the root on chain, and the loss fell by more than the margin."
    if not summary.agrees:
        return "FAILED: not every peer holds the root that is on chain."
    return "FAILED: the validation loss did not fall by the margin."
