"""Closing a finished run account by account.

Owns: the accounts of each transaction. Never: decides whether a run may be closed.
Next: `settle.py` for the audits; `close_run` of the program.
"""

from collections.abc import Sequence

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_cli.errors import OtherRunError
from troth_cli.workflows.settle import next_due, settle_audits
from troth_coordinator.chain.accounts import program_reader
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import ConfirmedTransaction, CoordinatorClient
from troth_coordinator.chain.operations import Crank
from troth_coordinator.rules.ids import Slot
from troth_coordinator.rules.params_checks import longest_settlement_slots
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import EntryView, ParticipantView, Status

PAIRS_PER_TRANSACTION = 8
"""Accounts closed at once; each brings its own address and at worst another payer's."""
Pair = tuple[Pubkey, Pubkey]


async def close_accounts(
    client: CoordinatorClient, run: Pubkey, key: Keypair
) -> list[ConfirmedTransaction]:
    """Take the steps of audits that are due; close settled participants, rounds, checkpoints, run.

    Anybody may: `key` pays the fees, rent and leftovers go back to those who paid them. Only a run
    that nobody has joined takes the key of its authority.

    Raises OtherRunError while the run still owes somebody money or judges somebody, and the
    program's refusals (RunNotFinished, WrongAuthority).
    """
    view = await client.read_run(run)
    at = RunAddresses.of(view, client.program_id)
    crank = Crank(client, at, key)
    sent = []
    if view.phase == Phase.FINISHED:
        sent += await settle_audits(client, at, key)
        await _require_over(client, at)
    pairs = [
        *await _participants(client, at),
        *await _rounds(client, at),
        *await _checkpoints(client, at),
    ]
    for start in range(0, max(1, len(pairs)), PAIRS_PER_TRANSACTION):
        sent.append(await crank.close_run(pairs[start : start + PAIRS_PER_TRANSACTION]))
    _slot, (account,) = await client.rpc.get_accounts([run])
    if account is not None:
        left = await client.read_run(run)
        raise OtherRunError(
            "every participant to have left and been paid",
            f"{left.num_participants} that are owed something",
            "Wait until they have left, claimed and withdrawn, then repeat.",
            f"run {run}",
        )
    return sent


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


async def _participants(client: CoordinatorClient, at: RunAddresses) -> list[Pair]:
    found = await client.find_participants(at.run)
    if not found:
        return []
    entries = (await client.snapshot(at.run)).entries
    return [
        (at.participant(Pubkey.from_bytes(one.owner)), Pubkey.from_bytes(one.payer))
        for one in found
        if is_settled(one, entries)
    ]


async def _rounds(client: CoordinatorClient, at: RunAddresses) -> list[Pair]:
    reader = program_reader(client.program_id)
    positions = [at.round(position) for position in range(at.ring)]
    _slot, accounts = await client.rpc.get_accounts(positions)
    return [
        (address, Pubkey.from_bytes(reader.round(address, account).payer))
        for address, account in zip(positions, accounts, strict=True)
        if account is not None
    ]


async def _checkpoints(client: CoordinatorClient, at: RunAddresses) -> list[Pair]:
    found = await client.find_checkpoints(at.run)
    return [(at.checkpoint(one.round), Pubkey.from_bytes(one.payer)) for one in found]


def is_settled(participant: ParticipantView, entries: Sequence[EntryView]) -> bool:
    """Return whether the program closes this account: left, and owed nothing."""
    tickets = any(ticket.lamports for ticket in participant.tickets)
    if participant.claimable or tickets:
        return False
    theirs = [entry for entry in entries if entry.owner == participant.owner]
    return all(_is_spent(entry) for entry in theirs)


def _is_spent(entry: EntryView) -> bool:
    """Return whether an index owes its owner nothing; one that joined again has two for a while."""
    owed = entry.stake or entry.claimable or any(entry.bucket_amount)
    return entry.status in (Status.LEFT, Status.BARRED) and not owed
