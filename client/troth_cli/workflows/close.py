"""Closing a finished run account by account.

Owns: the accounts of each transaction. Never: decides whether a run may be closed.
Next: `close_run` of the program.
"""

from collections.abc import Sequence

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_cli.errors import OtherRunError
from troth_coordinator.chain.accounts import program_reader
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.case_instructions import release_escrow
from troth_coordinator.chain.client import ConfirmedTransaction, CoordinatorClient
from troth_coordinator.chain.operations import Crank
from troth_coordinator.rules.audits import Step, due_step
from troth_coordinator.rules.ids import MAX_PARTICIPANTS
from troth_coordinator.rules.view import EntryView, ParticipantView, Status

PAIRS_PER_TRANSACTION = 8
"""Accounts closed at once; each brings its own address and at worst another payer's."""
Pair = tuple[Pubkey, Pubkey]


async def close_accounts(
    client: CoordinatorClient, run: Pubkey, key: Keypair
) -> list[ConfirmedTransaction]:
    """Release audits that are over, close settled participants, rounds, checkpoints, the run.

    Anybody may: `key` pays the fees, rent and leftovers go back to those who paid them. Only a run
    that nobody has joined takes the key of its authority.

    Raises OtherRunError while the run still owes somebody money or judges somebody, and the
    program's refusals (RunNotFinished, CasesMayBeOpen, WrongAuthority).
    """
    view = await client.read_run(run)
    at = RunAddresses.of(view, client.program_id)
    crank = Crank(client, at, key)
    sent = await release_audits(client, at, key)
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
            "every participant to have left and been paid, and every audit to be over",
            f"{left.num_participants} that are owed something, {left.num_audits} audits",
            "Wait until they have left, claimed and withdrawn, then repeat.",
            f"run {run}",
        )
    return sent


async def release_audits(
    client: CoordinatorClient, at: RunAddresses, key: Keypair
) -> list[ConfirmedTransaction]:
    """Close every audit that is over and pay what it holds in escrow; others are left alone.

    Anybody may: `key` only pays the fees.
    """
    slot, run = await client.rpc.get_slot(), await client.read_run(at.run)
    sent = []
    for audit in await client.find_audits(at.run) if run.num_audits else []:
        if due_step(audit, run, slot) is Step.RELEASE:
            owner = Pubkey.from_bytes(audit.owner)
            step = release_escrow(at, key.pubkey(), audit, [owner])
            sent.append(await client.send([step], [key]))
    return sent


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
    reader = program_reader()
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
    if participant.index >= MAX_PARTICIPANTS:
        return True
    entry = entries[participant.index]
    if entry.owner != participant.owner:
        return True
    owed = entry.stake or entry.claimable or any(entry.bucket_amount)
    return entry.status in (Status.LEFT, Status.BARRED) and not owed
