"""The end of a closed run's ledger, held against the transactions that an RPC node still shows.

Owns: the comparison from the newest close on.
Never: says what it means that an account is gone; the auditor does.
Next: `history.py`, which reads entries from an RPC node; `file.py` for what a close proves.

The chain hash in a close proves all entries before it. Where no account is left to prove the rest,
the transactions themselves do.
"""

from itertools import islice

from solders.pubkey import Pubkey
from solders.signature import Signature

from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import MalformedReplyError
from troth_coordinator.chain.event_types_rounds import RoundClosed
from troth_coordinator.ledger.entries import Entry, EntryReader
from troth_coordinator.ledger.errors import LedgerError
from troth_coordinator.ledger.file import Ledger
from troth_coordinator.ledger.history import entries_after


async def shows_end(client: CoordinatorClient, ledger: Ledger) -> bool:
    """Tell whether the RPC node shows the entries of a ledger from its newest close to its end.

    False also for an RPC node that has forgotten them, and for a ledger with damaged entries.
    Raises RpcError where the RPC node gives no answer.
    """
    try:
        return await _shows_end(client, ledger)
    except (MalformedReplyError, LedgerError):
        return False


async def _shows_end(client: CoordinatorClient, ledger: Ledger) -> bool:
    run, reader = Pubkey.from_string(ledger.head.run), ledger.head.reader()
    ours = islice(ledger.entries(), _newest_close(ledger, reader), None)
    first = next(ours, None)
    if first is None or await _landed(client, run, reader, first.signature) != first:
        return False
    async for theirs in entries_after(client, run, [first]):
        if next(ours, None) != theirs:
            return False
    return next(ours, None) is None


def _newest_close(ledger: Ledger, reader: EntryReader) -> int:
    """Return the number of entries before the newest close; 0 where no round was closed."""
    found = 0
    for number, entry in enumerate(ledger.entries()):
        if any(isinstance(event, RoundClosed) for event in reader.events(entry)):
            found = number
    return found


async def _landed(
    client: CoordinatorClient, run: Pubkey, reader: EntryReader, name: str
) -> Entry | None:
    """Return the entry of a transaction as a ledger of this life of the run has it."""
    signature = Signature.from_string(name)
    landed = await client.landed(signature, run)
    if landed is None:
        return None
    record, events = landed
    entry = Entry.of(record.slot, signature, events)
    return reader.from_creation(entry) or entry
