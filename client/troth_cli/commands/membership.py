"""`troth leave`, `withdraw`, `claim`, `set-endpoint`: commands of an owner beside taking part.

Owns: options and printing. Never: the work; the chain client has it.
Next: `participation.py` for `join` and `witness`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from troth_cli.options import AsOwner, command
from troth_cli.view.amounts import address_of_run, lamports, sol
from troth_cli.view.output import Output

if TYPE_CHECKING:
    from troth_cli.slot_time import SlotTime
    from troth_cli.view.output import Json
    from troth_coordinator.chain.client import ConfirmedTransaction
    from troth_coordinator.chain.operations import Owner
    from troth_coordinator.rules.view import NetworkView


@dataclass(frozen=True, kw_only=True)
class WithdrawOptions(AsOwner):
    """Options of `troth withdraw`."""

    unbond: Annotated[
        str,
        typer.Option(
            "--unbond",
            metavar="SOL",
            help="Start to withdraw this much of the stake above its"
            " minimum; without it, only money that is due is paid out.",
        ),
    ] = "0"


@dataclass(frozen=True, kw_only=True)
class EndpointOptions(AsOwner):
    """Options of `troth set-endpoint`."""

    endpoint: Annotated[
        str,
        typer.Option(
            "--endpoint",
            metavar="URL",
            help="Where others reach you, like http://203.0.113.7:9000; none: nowhere.",
        ),
    ]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    command(app, "leave", AsOwner)(leave)
    command(app, "withdraw", WithdrawOptions)(withdraw)
    command(app, "claim", AsOwner)(claim)
    command(app, "set-endpoint", EndpointOptions)(set_endpoint)


def leave(options: AsOwner, output: Output) -> None:
    """Leave a run: the whole stake starts to unbond; an open round is served to its end.

    Keep `troth join` running until it exits, once no audit or case can ask for anything. Juries
    are drawn from the witnesses of a round, whether they have left or not. Until then, silence or
    missing openings are fined from the unbonding stake.
    """
    from troth_coordinator.rules.params_checks import jury_duty_slots

    def leaving(view: "NetworkView", slot: "SlotTime") -> str:
        params = view.run.params
        return (
            f"Leaving. The stake is due in {slot.window(params.unbond_slots)}: troth withdraw.\n"
            f"Juries may need your vote for {slot.window(jury_duty_slots(params))} at most: keep"
            " troth join running until it exits. After a stop the same command goes on so, and"
            " deposits nothing."
        )

    as_owner(options, output, leaving, lambda by: by.leave_run())


def withdraw(options: WithdrawOptions, output: Output) -> None:
    """Pay out stake whose waiting time is over; with --unbond, start the wait for more.

    Where nothing is due yet, the command says how much is due when.
    """
    unbond = lamports(options.unbond, "--unbond")
    as_owner(options, output, "Withdrawn.", lambda by: by.withdraw_stake(unbond))


def claim(options: AsOwner, output: Output) -> None:
    """Pay out rewards that have vested.

    Where none have, the command says how much vests when.
    """
    as_owner(options, output, "Claimed.", lambda by: by.claim_reward())


def set_endpoint(options: EndpointOptions, output: Output) -> None:
    """Announce another address for what you serve; others use it at once.

    `troth join` does this by itself when it starts at another address. Payloads and openings are
    pushed to others, too, so nobody needs an address that is reachable from outside.
    """
    from troth_cli.workflows.announce import check_announced
    from troth_client.transport.endpoint import NOWHERE, OWN, check_endpoint
    from troth_coordinator.chain.clusters import public_cluster

    endpoint = "" if options.endpoint == NOWHERE else options.endpoint
    if options.endpoint != NOWHERE:
        check_endpoint(endpoint, OWN)
    found = f"Others look for you at {endpoint} now." if endpoint else "Nobody looks for you now."

    async def announce(owner: "Owner") -> "ConfirmedTransaction":
        check_announced(endpoint, await public_cluster(owner.client.rpc))
        return await owner.set_endpoint(endpoint)

    as_owner(options, output, found, announce)


def as_owner(
    options: AsOwner,
    output: Output,
    done: "str | Callable[[NetworkView, SlotTime], str]",
    act: "Callable[[Owner], Awaitable[ConfirmedTransaction]]",
) -> None:
    """Send one transaction with the owner's key; print it with the remaining claims."""
    from troth_cli.connection import connect, run_async
    from troth_cli.keyfiles import read_key
    from troth_cli.slot_time import slot_time
    from troth_cli.view.chain import transaction_values
    from troth_cli.view.participants import owner_block, owner_values, require_joined
    from troth_cli.workflows.payable import with_date
    from troth_coordinator.chain.addresses import RunAddresses
    from troth_coordinator.chain.errors import ProgramRefusedError
    from troth_coordinator.chain.operations import Owner

    key = read_key(options.key, output.warn)
    run, owner = address_of_run(options.run_address), key.pubkey()

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            at = RunAddresses.of(await client.read_run(run), client.program_id)
            require_joined(await client.read_participant(run, owner), run, owner)
            slot = await slot_time(client.rpc)
            before = await client.balance(owner)
            try:
                sent = await act(Owner(client, at, key))
            except ProgramRefusedError as error:
                raise await with_date(error, client, at, owner) from error
            received = await client.balance(owner) - before + sent.fee_lamports
            view = await client.snapshot(run)
            participant = await client.read_participant(run, owner)
        values: dict[str, Json] = {
            "run": str(run),
            "owner": str(owner),
            "received_lamports": received,
            "slot_micros": slot.micros,
            **owner_values(view, participant, owner),
            **transaction_values(sent),
        }
        text = f" Received {sol(received)}." if received > 0 else ""
        said = done if isinstance(done, str) else done(view, slot)
        output.result(values, said + text, owner_block(values, slot))

    run_async(work())
