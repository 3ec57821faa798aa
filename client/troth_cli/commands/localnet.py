"""`troth localnet`: a Solana network on this machine with the program loaded.

Owns: choosing and holding the launcher until Ctrl-C. Never: runs a chain in this process.
Next: `troth_localnet.embedded`, `troth_localnet.validator`.
"""

import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from typer.core import TyperCommand

from troth_cli.errors import InputError
from troth_cli.local_chain import UseValidator, ValidatorPath, validator_launcher
from troth_cli.options import Common, OnCluster, command
from troth_cli.view.amounts import address, lamports, sol
from troth_cli.view.output import Facts, Output

if TYPE_CHECKING:
    from types import FrameType

    from solders.pubkey import Pubkey

    from troth_localnet.launcher import Launcher

GROUP = typer.Typer(name="localnet", help="A Solana network on this machine.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    app.add_typer(GROUP)


@dataclass(frozen=True, kw_only=True)
class UpOptions(Common):
    """Options of `troth localnet up`."""

    path: ValidatorPath = None
    validator: UseValidator = False
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="N", help="Port of JSON-RPC; the websocket takes the next. 0: any."
        ),
    ] = 8899
    slot_ms: Annotated[
        int, typer.Option("--slot-ms", metavar="MS", help="Length of a slot, 20 to 400.")
    ] = 400
    ledger: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--ledger",
            metavar="DIR",
            help="Keep the embedded chain in this folder, and go on with the one that is there.",
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class AirdropOptions(OnCluster):
    """Options of `troth localnet airdrop`."""

    to: Annotated[
        str,
        typer.Argument(metavar="ADDRESS", help="Address that receives it, or a file with its key."),
    ]
    amount: Annotated[str, typer.Argument(metavar="SOL", help="How much, like 1.5.")]


@command(GROUP, "up", UpOptions)
def up(options: UpOptions, output: Output) -> None:
    """Start a local network with the program and run until Ctrl-C.

    It forgets everything at its end, unless `--ledger` names a folder. It gives lamports for free
    with `troth localnet airdrop`. The embedded chain listens on this machine only;
    solana-test-validator listens on all interfaces.
    """
    from troth_coordinator import artifacts
    from troth_coordinator.chain.layouts import program_layout

    launcher = _launcher(options)
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        program = program_layout().program_id
        launcher.start({program: artifacts.program_image()})
        values = {
            "rpc_url": launcher.rpc_url,
            "ws_url": launcher.ws_url,
            "program_id": str(program),
            "kind": "validator" if options.validator else "embedded",
        }
        output.result(values, Facts.of(values))
        output.note("Running until Ctrl-C.")
        launcher.wait()
    except KeyboardInterrupt:
        output.note("Stopped.")
    finally:
        launcher.stop()
        signal.signal(signal.SIGTERM, previous)


class TakesAmount(TyperCommand):
    """A command with an amount as an argument: -5 is a bad amount, and no option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  typer has its own
        """Parse the command line; InputError for an amount below zero."""
        for text in args:
            if re.fullmatch(r"-\.?\d.*", text):
                raise _no_amount(text)
        return super().parse_args(ctx, args)


@command(GROUP, "airdrop", AirdropOptions, kind=TakesAmount)
def airdrop(options: AirdropOptions, output: Output) -> None:
    """Give an address lamports out of nothing (local networks and devnet)."""
    from troth_cli.connection import run_async
    from troth_coordinator.chain.client import CoordinatorClient
    from troth_coordinator.chain.failover import FailoverRpc

    to, amount = _receiver(options.to, output), lamports(options.amount, "SOL")
    if not amount:
        raise _no_amount(options.amount)

    async def work() -> int:
        async with FailoverRpc.over(options.rpc) as rpc:
            client = CoordinatorClient(rpc)
            await client.airdrop(to, amount)
            return await client.balance(to)

    balance = run_async(work())
    output.result(
        {"address": str(to), "lamports": amount, "balance_lamports": balance},
        f"{to} received {sol(amount)} and has {sol(balance)} now.",
    )


def _receiver(text: str, output: Output) -> "Pubkey":
    """Return the address that a text spells, or that of the key in the file of that name."""
    from troth_cli.keyfiles import read_key

    path = Path(text)
    return read_key(path, output.warn).pubkey() if path.is_file() else address(text, "ADDRESS")


def _no_amount(text: str) -> InputError:
    return InputError("more than 0 SOL, like 1.5", repr(text), "Correct the amount.", "SOL")


def _launcher(options: UpOptions) -> "Launcher":
    if options.validator and options.ledger is not None:
        raise typer.BadParameter("--ledger is for the embedded chain: leave out --validator")
    chosen = validator_launcher(options.validator, options.path, options.slot_ms, options.port)
    if chosen is not None:
        return chosen
    from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions

    return EmbeddedLauncher(
        EmbeddedOptions(port=options.port, slot_milliseconds=options.slot_ms, ledger=options.ledger)
    )


def _interrupt(_number: int, _frame: "FrameType | None") -> None:
    raise KeyboardInterrupt
