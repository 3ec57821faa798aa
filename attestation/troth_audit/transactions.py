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
    """Return the newest transactions that name an account of a run, as far as they are known.

    Raises RpcError, and EventsMissingError if inner calls of one are not kept.
    """
    signatures = await client.rpc.signatures(address)
    found = [(signature, await client.landed(signature, run)) for signature in signatures[:newest]]
    lines = tuple(
        TransactionLine(
            str(signature),
            landed[0].slot,
            landed[0].failure is not None,
            tuple(event.name for event in landed[1]),
        )
        for signature, landed in found
        if landed is not None
    )
    return TransactionList(lines, len(signatures) > newest)
