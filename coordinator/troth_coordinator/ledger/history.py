"""The entries of a run from an RPC node: the transactions that name the Run account.

Owns: their order, oldest first, and where a reader goes on.
Never: believes the RPC node. The fold finds an event that is missing, added or changed.
Next: `file.py`, which takes the entries.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Container
from typing import Final

from solders.pubkey import Pubkey
from solders.signature import Signature

from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import MalformedReplyError
from troth_coordinator.ledger.entries import Entry

MOST_PAGES: Final = 10_000
"""Pages of a thousand signatures each; an RPC node that sends more repeats itself."""


async def entries_after(
    client: CoordinatorClient,
    run: Pubkey,
    last: str | None = None,
    known: Container[str] = (),
    pause_seconds: float = 0,
) -> AsyncIterator[Entry]:
    """Yield what landed after the transaction `last`, oldest first; all of it without one.

    Signatures that are `known` are left out and not asked for. Between two requests it waits for
    `pause_seconds`, to leave the RPC node to others. Ends before a transaction of which
    the RPC node has no record yet. Transactions without events of ours are left out. Raises
    RpcError, EventsMissingError, and MalformedReplyError where the RPC node does not know `last`.
    """
    for signature in reversed(await _signatures(client, run, last)):
        if str(signature) in known:
            continue
        await asyncio.sleep(pause_seconds)
        landed = await client.landed(signature)
        if landed is None:
            return
        record, events = landed
        own = [event for event in events if event.run == run]
        if own:
            yield Entry.of(record.slot, signature, own)


async def _signatures(client: CoordinatorClient, run: Pubkey, last: str | None) -> list[Signature]:
    """Return the transactions after `last`, newest first."""
    found: list[Signature] = []
    before: Signature | None = None
    for _ in range(MOST_PAGES):
        page = await client.rpc.signatures(run, before=before)
        texts = [str(one) for one in page]
        if last in texts:
            return found + page[: texts.index(last)]
        if not page:
            break
        found += page
        before = page[-1]
    if last is None:
        return found
    raise MalformedReplyError("getSignaturesForAddress", f"{last} is not among those of the run")
