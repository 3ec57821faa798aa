"""The newest transactions that name an account: what somebody looks up after the fact.

Owns: one line per transaction, with the events of our program in it. Never: prints.
Next: `history.py` for what the events of an audit add up to.
"""

from dataclasses import dataclass

from solders.pubkey import Pubkey

from troth_coordinator.chain.client import CoordinatorClient


@dataclass(frozen=True, slots=True)
class TransactionLine:
    """A transaction that landed; `events` are the names of the run's, none where it failed."""

    signature: str
    slot: int
    has_failed: bool
    events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TransactionList:
    """Transactions of an account, newest first; `is_cut` if there are older ones."""

    lines: tuple[TransactionLine, ...]
    is_cut: bool


async def read_transactions(
    client: CoordinatorClient, address: Pubkey, run: Pubkey, newest: int
) -> TransactionList:
    """Return the newest transactions that name an account of a run, as far as they can be read.

    Raises RpcError, and EventsMissingError if inner calls of one are not kept.
    """
    listed = await client.rpc.signatures(address)
    found = [
        (one, () if one.has_failed else await client.events_of(one.signature, run))
        for one in listed[:newest]
    ]
    lines = tuple(
        TransactionLine(
            str(one.signature), one.slot, one.has_failed, tuple(event.name for event in events)
        )
        for one, events in found
        if events is not None
    )
    return TransactionList(lines, len(listed) > newest)
