"""`troth join`, `leave`, `withdraw`, `claim`: what the owner of a stake does.

Owns: options and printing. Never: the work; `../joining.py` and the chain client have it.
Next: `../joining.py`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from troth_client.cli.amounts import address, lamports, sol
from troth_client.cli.options import AsOwner, command
from troth_client.cli.output import Facts, Output

if TYPE_CHECKING:
    from troth_client.cli.output import Json
    from troth_coordinator.chain.client import ConfirmedTransaction
    from troth_coordinator.chain.operations import Owner
    from troth_coordinator.rules.view import NetworkView


@dataclass(frozen=True, kw_only=True)
class JoinOptions(AsOwner):
    """Options of `troth join`."""

    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", help="Data set that the run is bound to.")
    ]
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help="trainer, witness or both.")
    ] = "both"
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="NAME",
            help="auto, cpu, cuda, cuda:N or mps; else hints.device of the config.",
        ),
    ] = ""
    listen: Annotated[
        str,
        typer.Option("--listen", metavar="HOST:PORT", help="Where others fetch payloads from us."),
    ] = "127.0.0.1:0"
    endpoint: Annotated[
        str,
        typer.Option(
            "--endpoint", metavar="URL", help="Address under which others reach that, if another."
        ),
    ] = ""
    state: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--state",
            metavar="DIR",
            help="Folder of this participant; else troth-state/RUN-OWNER here.",
        ),
    ] = None
    session_sol: Annotated[
        str,
        typer.Option(
            "--session-sol", metavar="SOL", help="Moved to the session key, for its fees."
        ),
    ] = "0.05"
    refill_sol: Annotated[
        str,
        typer.Option(
            "--refill-sol",
            metavar="SOL",
            help="At most so much more, by and by, when the session key runs low.",
        ),
    ] = "0.2"
    threads: Annotated[
        Optional[int],  # noqa: UP045  typer reads it at run time
        typer.Option("--threads", metavar="N", min=1, help="Threads to compute with; else all."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class WithdrawOptions(AsOwner):
    """Options of `troth withdraw`."""

    unbond: Annotated[
        str,
        typer.Option(
            "--unbond",
            metavar="SOL",
            help="Start to withdraw so much of the stake above its"
            " minimum; without it, only what is due is paid out.",
        ),
    ] = "0"


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    command(app, "join", JoinOptions)(join)
    command(app, "leave", AsOwner)(leave)
    command(app, "withdraw", WithdrawOptions)(withdraw)
    command(app, "claim", AsOwner)(claim)


def join(options: JoinOptions, output: Output) -> None:
    """Join a run with a stake, or resume in it, and take part until it ends.

    Give the run's config file with --config. Ctrl-C (or SIGTERM) stops after the round under way;
    the stake stays, and the same command resumes. A second one stops at once.
    """
    from troth_client.cli.keyfiles import read_key
    from troth_client.cli.settings import run_settings

    run = address(options.run_address, "RUN")
    owner = read_key(options.key, output.warn)
    settings = run_settings(options.config)
    session_lamports = lamports(options.session_sol, "--session-sol")
    refill_lamports = lamports(options.refill_sol, "--refill-sol")

    from troth_client.cli import joining

    request = joining.JoinRequest(
        rpc_url=options.rpc,
        run=run,
        config=settings.config,
        data=options.data,
        state=options.state or Path("troth-state") / f"{str(run)[:8]}-{str(owner.pubkey())[:8]}",
        owner=owner,
        role=options.role,
        device=options.device or settings.hints.device,
        listen=options.listen,
        endpoint=options.endpoint,
        session_lamports=session_lamports,
        refill_lamports=refill_lamports,
        num_threads=options.threads,
    )
    end = joining.join(request, output)
    values = {
        "run": str(run),
        "owner": str(owner.pubkey()),
        "index": int(end.index),
        "round": end.round,
        "root": end.root.hex(),
        "is_finished": end.is_finished,
        "weights": None if end.weights is None else str(end.weights),
        "state": str(request.state),
    }
    output.result(values, Facts([(k.replace("_", " "), v) for k, v in values.items()]))


def leave(options: AsOwner, output: Output) -> None:
    """Leave a run: the whole stake starts to unbond; an open round is served to its end."""

    def said(view: "NetworkView") -> str:
        slots = view.run.params.unbond_slots
        return f"Leaving. The stake is due in {slots} slots: troth withdraw."

    _as_owner(options, output, said, lambda by: by.leave_run())


def withdraw(options: WithdrawOptions, output: Output) -> None:
    """Pay out stake whose waiting time is over; with --unbond, start the wait for more."""
    unbond = lamports(options.unbond, "--unbond")
    _as_owner(options, output, lambda _view: "Withdrawn.", lambda by: by.withdraw_stake(unbond))


def claim(options: AsOwner, output: Output) -> None:
    """Pay out rewards that have vested."""
    _as_owner(options, output, lambda _view: "Claimed.", lambda by: by.claim_reward())


def _as_owner(
    options: AsOwner,
    output: Output,
    said: "Callable[[NetworkView], str]",
    act: "Callable[[Owner], Awaitable[ConfirmedTransaction]]",
) -> None:
    """Send one transaction with the owner's key and print it with what is left."""
    from troth_client.cli import describe
    from troth_client.cli.errors import NotJoinedError
    from troth_client.cli.keyfiles import read_key
    from troth_client.cli.network import connect, run_async
    from troth_coordinator.chain.addresses import RunAddresses
    from troth_coordinator.chain.operations import Owner

    key = read_key(options.key, output.warn)
    run, owner = address(options.run_address, "RUN"), key.pubkey()

    async def work() -> None:
        async with connect(options.rpc) as client:
            at = RunAddresses.of(await client.read_run(run), client.program_id)
            if await client.read_participant(run, owner) is None:
                raise NotJoinedError(
                    f"a participant of run {run}",
                    "none with this key",
                    "Pass the key that joined; what has left and been paid is closed.",
                    f"owner {owner}",
                )
            before = await client.balance(owner)
            sent = await act(Owner(client, at, key))
            received = await client.balance(owner) - before + sent.fee_lamports
            view = await client.snapshot(run)
            participant = await client.read_participant(run, owner)
        values: dict[str, Json] = {
            "run": str(run),
            "owner": str(owner),
            "received_lamports": received,
            **describe.owner_values(view, participant, owner),
            **describe.transaction_values(sent),
        }
        text = f"{said(view)} Received {sol(received)}."
        output.result(values, text, describe.owner_block(values))

    run_async(work())
