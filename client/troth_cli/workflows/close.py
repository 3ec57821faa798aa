"""Closing a finished run account by account.

Owns: the order of the steps, and the refusals before anything moves.
Never: decides whether a run may be closed; `close_run` of the program does.
Next: `closing.py` for what goes back to whom; `settle.py` for the audits.
"""

from collections.abc import Sequence
from dataclasses import replace

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_cli.errors import OtherRunError
from troth_cli.workflows.closing import Closing, is_gone, look_at
from troth_cli.workflows.settle import next_due, settle_audits
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import ConfirmedTransaction, CoordinatorClient
from troth_coordinator.chain.operations import Crank
from troth_coordinator.rules.ids import Slot
from troth_coordinator.rules.params_checks import longest_settlement_slots
from troth_coordinator.rules.phase import Phase

PAIRS_PER_TRANSACTION = 8
"""Accounts closed at once; each brings its own address and at worst another payer's."""


async def preview(client: CoordinatorClient, run: Pubkey) -> Closing:
    """Return what closing would give back now, and to whom; nothing is sent.

    Raises OtherRunError for a run that is not over, or where nothing can be closed yet.
    """
    closing = await look_at(client, run)
    _require_end(closing)
    if not closing.view.num_audits and closing.view.phase == Phase.FINISHED:
        await _require_over(client, closing.at)
        _require_something(closing)
    return closing


async def close_accounts(
    client: CoordinatorClient, run: Pubkey, key: Keypair
) -> tuple[Closing, Sequence[ConfirmedTransaction]]:
    """Take the steps of audits that are due; close settled participants, rounds, checkpoints, run.

    Anybody may: `key` pays the fees, rent and leftovers go back to those who paid them. Only a run
    that nobody has joined takes the key of its authority. While somebody is owed money, the
    accounts of that participant and of the run stay. The chain says whether the run is gone.

    Raises OtherRunError while the run is not over or judges somebody, or if nothing can be closed,
    and the program's refusals (WrongAuthority).
    """
    view = await client.read_run(run)
    at, sent = RunAddresses.of(view, client.program_id), []
    if view.phase == Phase.FINISHED:
        sent += await settle_audits(client, at, key)
        await _require_over(client, at)
    closing = await look_at(client, run)
    _require_end(closing)
    _require_something(closing)
    crank, pairs = Crank(client, at, key), [one.pair for one in closing.accounts]
    for start in range(0, max(1, len(pairs)), PAIRS_PER_TRANSACTION):
        sent.append(await crank.close_run(pairs[start : start + PAIRS_PER_TRANSACTION]))
    return replace(closing, is_closed=await is_gone(client, run)), sent


def _require_end(closing: Closing) -> None:
    run = closing.view
    is_unused = run.phase == Phase.WAITING_FOR_MEMBERS and not run.round
    if run.phase == Phase.FINISHED or (is_unused and not run.num_participants):
        return
    phase = run.phase.name.lower().replace("_", " ")
    raise OtherRunError(
        "a run that has finished, or that nobody has joined",
        f"{phase}, round {run.round} of {run.params.max_rounds}, {run.num_participants} members",
        "A run ends after its rounds; troth run cancel ends one that waits in vain.",
        f"run {closing.at.run}",
    )


def _require_something(closing: Closing) -> None:
    """Raise OtherRunError if closing would give nothing back: all that is left is owed."""
    if closing.is_complete or closing.accounts or closing.leftover:
        return
    raise OtherRunError(
        "something to close",
        "; ".join(f"{one.owner} is owed {one.text}" for one in closing.owed)
        or "leftovers that are too small for an account",
        "The owners leave, claim and withdraw; repeat it then.",
        f"run {closing.at.run}",
    )


async def _require_over(client: CoordinatorClient, at: RunAddresses) -> None:
    """Raise OtherRunError while audits are open or cases may be opened, with the slot to wait for.

    The program refuses to close anything before that.
    """
    view = await client.snapshot(at.run)
    last = view.run.finished_slot + longest_settlement_slots(view.run.params)
    found = f"no audit, but cases until slot {last}"
    end: Slot | None = Slot(last)
    if view.run.num_audits:
        found = f"{view.run.num_audits} audits that are not over"
        end = await next_due(client, at, view)
    elif view.slot > last:
        return
    when = "later" if end is None else f"after slot {end}"
    raise OtherRunError(
        "a run that judges nobody any more",
        f"{found}; the chain is at slot {view.slot}",
        f"Repeat {when}: each call takes the steps that are due, and anybody may make it.",
        f"run {at.run}",
    )
