"""The entries of a run from an RPC node: the transactions that name the Run account.

Owns: their order, oldest first, and where a reader goes on.
Never: believes the RPC node. The fold finds an event that is missing, added or changed.
Next: `file.py`, which takes the entries.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Container, Sequence
from dataclasses import dataclass, field
from typing import Final

from solders.pubkey import Pubkey
from solders.signature import Signature

from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import MalformedReplyError, UnreadableRecordError
from troth_coordinator.chain.rpc import Listed
from troth_coordinator.ledger.entries import Entry

MOST_PAGES: Final = 100_000
"""Pages of hundreds of transactions each; an RPC node that sends more has no end."""
_METHOD: Final = "getSignaturesForAddress"


async def entries_after(
    client: CoordinatorClient,
    run: Pubkey,
    newest: Sequence[Entry] = (),
    known: Container[str] = (),
    pause_seconds: float = 0,
) -> AsyncIterator[Entry]:
    """Yield what landed after the last of the entries `newest`, oldest first; else all of it.

    The one before the last of `newest`, where there is one, tells the RPC node where to stop.
    Signatures that are `known` are left out and not asked for. Between two requests it waits for
    `pause_seconds`, to leave the RPC node to others. Ends before a transaction of which
    the RPC node has no record yet. Transactions without events of ours are left out. So are those
    that failed, and those of a shape that nobody knows. An RPC node that says so of one with
    events is found out by the fold, as if it had left that one out. Raises
    RpcError, EventsMissingError, and MalformedReplyError where the RPC node does not know the last
    of `newest`, or repeats itself.
    """
    history = _History(client, run)
    async for listed in history.oldest_first(newest):
        signature = listed.signature
        if listed.has_failed or str(signature) in known:
            continue
        await asyncio.sleep(pause_seconds)
        try:
            landed = await client.landed(signature, run)
        except UnreadableRecordError:
            continue  # a stranger's, else the events that follow do not continue ours
        if landed is None:
            return
        record, events = landed
        if events:
            yield Entry.of(record.slot, signature, events)


@dataclass(slots=True)
class _Pages:
    """The way back through a history. Memory holds two pages of it, and where each one begins.

    `starts`: the signature before which each page was asked for, newest page first.
    """

    first: list[Listed] = field(default_factory=list)
    oldest: list[Listed] = field(default_factory=list)
    starts: list[Signature | None] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _History:
    client: CoordinatorClient
    run: Pubkey

    async def oldest_first(self, newest: Sequence[Entry]) -> AsyncIterator[Listed]:
        """Yield the transactions after the last of `newest`."""
        last = newest[-1] if newest else None
        until = Signature.from_string(newest[-2].signature) if len(newest) > 1 else None
        try:
            pages = await self._pages(last, until)
        except MalformedReplyError:
            if until is None:
                raise
            until = None  # an RPC node that forgot it may stop short
            pages = await self._pages(last, until)
        for listed in reversed(pages.oldest):
            yield listed
        for before in reversed(pages.starts[:-1]):
            page = pages.first if before is None else await self._page(before, until)
            for listed in reversed(page):
                yield listed

    async def _pages(self, last: Entry | None, until: Signature | None) -> _Pages:
        """Walk back to `last`, or to the beginning. An RPC node without `last` is soon left."""
        found, before, seen = _Pages(), None, set[Signature]()
        while len(seen) < MOST_PAGES:
            page = await self._page(before, until)
            texts = [str(one.signature) for one in page] if last else []
            is_there = last is not None and last.signature in texts
            found.oldest = page[: texts.index(last.signature)] if last and is_there else page
            found.first = found.first if found.starts else found.oldest
            found.starts.append(before)
            if is_there or (not page and last is None):
                return found
            if last is not None and (not page or page[-1].slot < last.slot):
                told = f"{last.signature} is not among those of the run"
                raise MalformedReplyError(_METHOD, told)
            before = page[-1].signature
            if before in seen:
                raise MalformedReplyError(_METHOD, f"{before} again, in a later page")
            seen.add(before)
        raise MalformedReplyError(_METHOD, f"more than {MOST_PAGES} pages")

    async def _page(self, before: Signature | None, until: Signature | None) -> list[Listed]:
        return await self.client.rpc.signatures(self.run, before=before, until=until)
