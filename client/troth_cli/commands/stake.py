"""`troth stake`: what a participant has at stake, what it lost and why, and adding to it.

Owns: options and printing. Never: the work; the chain client has it.
Next: `../view/stake.py`; `membership.py` for leaving, withdrawing and claiming.
"""

from dataclasses import dataclass
from typing import Annotated

import typer

from troth_cli.commands.membership import as_owner
from troth_cli.errors import InputError
from troth_cli.options import AsOwner, command
from troth_cli.view.amounts import address_of_run, lamports, sol
from troth_cli.view.output import Output

GROUP = typer.Typer(
    name="stake",
    help="See what you have at stake and what you lost; add to it.",
    no_args_is_help=True,
)


@dataclass(frozen=True, kw_only=True)
class TopUpOptions(AsOwner):
    """Options of `troth stake top-up`."""

    # Arguments come in the order of a command's own fields.
    run_address: Annotated[
        str,
        typer.Argument(metavar="RUN", help="The run's address, or its file.", show_default=False),
    ]
    amount: Annotated[
        str, typer.Argument(metavar="SOL", help="How much to add.", show_default=False)
    ]


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    app.add_typer(GROUP)


@command(GROUP, "show", AsOwner)
def show(options: AsOwner, output: Output) -> None:
    """Show the deposit, the least to stay with, what has not vested or is due, and every fine.

    Fines and convictions are read from the transactions of the run, with their reasons.
    """
    from solders.pubkey import Pubkey

    from troth_audit.cases import of_account
    from troth_audit.slashes import read_slashes, slashes_of
    from troth_cli.connection import connect, run_async
    from troth_cli.keyfiles import read_key
    from troth_cli.slot_time import slot_time
    from troth_cli.view.participants import require_joined
    from troth_cli.view.stake import losses_of, stake_blocks, stake_values
    from troth_coordinator.chain.addresses import RunAddresses

    owner: Pubkey = read_key(options.key, output.warn).pubkey()
    run = address_of_run(options.run_address)

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            view = await client.snapshot(run)
            participant = await client.read_participant(run, owner)
            require_joined(participant, run, owner)
            at = RunAddresses.of(view.run, client.program_id)
            slot = await slot_time(client.rpc)
            audits = await client.find_audits(run) if view.run.num_audits else []
            cases = [of_account(audit) for audit in audits]
            slashes = slashes_of(await read_slashes(client, at), cases)
        losses = losses_of(view, owner, slashes)
        values = {"run": str(run), "owner": str(owner), **stake_values(view, participant, owner)}
        blocks = stake_blocks(values, losses, slot)
        output.result({**values, "losses": [dict(one) for one in losses]}, *blocks)

    run_async(work())


@command(GROUP, "top-up", TopUpOptions)
def top_up(options: TopUpOptions, output: Output) -> None:
    """Add to the stake. If fines had made it too small, a running `troth join` then comes back.

    While a case against you is open, a conviction would take its share of this, too.
    """
    amount = lamports(options.amount, "SOL")
    if amount == 0:
        raise InputError("an amount above 0", repr(options.amount), "Name how much to add.", "SOL")

    as_owner(
        options,
        output,
        f"Added {sol(amount)}.",
        lambda by: by.top_up_stake(amount),
    )
