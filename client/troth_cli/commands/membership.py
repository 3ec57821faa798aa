"""`troth leave`, `withdraw`, `claim`, `set-endpoint`: commands of an owner beside taking part.

Owns: options and printing. Never: the work; the chain client has it.
Next: `participation.py` for `join` and `witness`; `../workflows/unused_funding.py`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from troth_cli.options import AsOwner, command
from troth_cli.view.amounts import address_of_run, lamports, sol
from troth_cli.view.output import Output

if TYPE_CHECKING:
    from solders.keypair import Keypair
    from solders.pubkey import Pubkey

    from troth_cli.slot_time import SlotTime
    from troth_cli.view.output import Facts, Json
    from troth_coordinator.chain.client import ConfirmedTransaction, CoordinatorClient
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
    state: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--state",
            metavar="DIR",
            help="Folder of this participant, which has its session key; else one in troth-state,"
            " named by run and owner.",
        ),
    ] = None


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

    Where nothing is due yet, the command says how much is due when. Once the run owes you nothing
    more, it brings back the SOL of the session key as well: so use it last, after troth claim. It
    may be repeated for that, also when the run is closed.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.errors import NotDueError, NotJoinedError
    from troth_cli.keyfiles import read_key
    from troth_cli.workflows.unused_funding import UnusedFunding
    from troth_coordinator.chain.errors import AccountMissingError

    unbond = lamports(options.unbond, "--unbond")
    key = read_key(options.key, output.warn)
    run = address_of_run(options.run_address)
    funding = UnusedFunding.find(run, key.pubkey(), options.state, output)

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            try:
                values, said, block = await _acted(
                    client, run, key, "Withdrawn.", lambda by: by.withdraw_stake(unbond)
                )
            except (AccountMissingError, NotDueError, NotJoinedError) as error:
                back = await funding.bring_back_instead(client, error, output)
                known: dict[str, Json] = {"run": str(run), "owner": str(key.pubkey())}
                output.result(known | back.values(), back.text)
                return
            back = await funding.bring_back(client)
        output.result(values | back.values(), f"{said} {back.text}".rstrip(), block)

    run_async(work())


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

    key, run = read_key(options.key, output.warn), address_of_run(options.run_address)

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            values, said, block = await _acted(client, run, key, done, act)
        output.result(values, said, block)

    run_async(work())


async def _acted(
    client: "CoordinatorClient",
    run: "Pubkey",
    key: "Keypair",
    done: "str | Callable[[NetworkView, SlotTime], str]",
    act: "Callable[[Owner], Awaitable[ConfirmedTransaction]]",
) -> "tuple[dict[str, Json], str, Facts]":
    """Send one transaction with the owner's key; return values, words and remaining claims."""
    from troth_cli.slot_time import slot_time
    from troth_cli.view.chain import transaction_values
    from troth_cli.view.participants import owner_block, owner_values, require_joined
    from troth_cli.workflows.payable import with_date
    from troth_coordinator.chain.addresses import RunAddresses
    from troth_coordinator.chain.errors import ProgramRefusedError
    from troth_coordinator.chain.operations import Owner

    owner = key.pubkey()
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
    return values, said + text, owner_block(values, slot)
