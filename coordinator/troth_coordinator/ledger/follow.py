"""A ledger that follows its run on an RPC node, and the comparison with the Run account.

Owns: what is dropped and read again when the answers contradict the chain hash, and whether a
ledger is that of the run.
Never: believes one RPC node about events that no close has proven.
Next: `history.py` for the reading, `merge.py` for help from other ledgers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from solders.pubkey import Pubkey

from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import MalformedReplyError, RpcError
from troth_coordinator.ledger.entries import Entry
from troth_coordinator.ledger.errors import LedgerError
from troth_coordinator.ledger.file import LedgerFile, keep_aside
from troth_coordinator.ledger.fold import Fold
from troth_coordinator.ledger.history import entries_after
from troth_coordinator.rules.view import RunView

ANEW: Final = ".anew"
TRIES: Final = 3
"""The chain may go on between reading entries and reading the Run account."""
REFUSALS: Final = 4
"""After so many in a row, and then ever more seldom, the whole history is read anew."""
AT_ONCE: Final = 50
"""So many entries are written and flushed together."""


@dataclass(slots=True)
class Refusals:
    """How often in a row the chain has contradicted a ledger, and when that calls for a new start.

    An archive has one, and a participant with a ledger. `renews`: `renew` is due.
    """

    count: int = 0
    renews: bool = False

    def add(self) -> None:
        """Take note of a contradiction."""
        self.count += 1
        self.renews = self.count >= REFUSALS and self.count & (self.count - 1) == 0

    def end(self) -> None:
        """Take note that the ledger and the chain agree."""
        self.count, self.renews = 0, False

    async def renew(self, client: CoordinatorClient, ledger: LedgerFile, pause: float = 0) -> bool:
        """Read the whole history if that is due; tell whether the ledger goes on with it.

        Once for each time that it is due, whether or not it succeeds. Raises as `renew`.
        """
        is_due, self.renews = self.renews, False
        if not is_due or not await renew(client, ledger, pause):
            return False
        self.end()
        return True


async def follow(client: CoordinatorClient, ledger: LedgerFile, pause_seconds: float = 0) -> int:
    """Append what has landed since the ledger's last entry; return how many entries.

    Where the answers do not fit, entries that no close has proven are dropped and read again,
    once: the chain may have left a fork. Raises RpcError, OSError, and LedgerError where the RPC
    node contradicts itself or has forgotten transactions.
    """
    try:
        return await _append(client, ledger, pause_seconds)
    except (LedgerError, MalformedReplyError):
        ledger.cut_to_proven()
    return await _append(client, ledger, pause_seconds)


async def catch_up(
    client: CoordinatorClient, ledger: LedgerFile, pause_seconds: float = 0
) -> tuple[int, Compared]:
    """Append all that has landed; return how much, and the comparison with the Run account.

    Raises as `follow`, and AccountMissingError.
    """
    total, run = 0, Pubkey.from_string(ledger.head.run)
    for _ in range(TRIES):
        total += await follow(client, ledger, pause_seconds)
        found = compare(ledger.fold, await client.read_run(run))
        if found.match is not Match.BEHIND:
            break
    return total, found


async def renew(client: CoordinatorClient, ledger: LedgerFile, pause_seconds: float = 0) -> bool:
    """Read the whole history, and go on with it if the Run account proves it; tell whether it does.

    For a ledger that is contradicted again and again: an RPC node may have shown closes of its
    own, which nothing later fits. The ledger from before stays beside it. Raises RpcError, OSError.
    """
    beside = ledger.path.with_name(ledger.path.name + ANEW)
    beside.unlink(missing_ok=True)
    try:
        with LedgerFile(beside, ledger.head) as fresh:
            _, found = await catch_up(client, fresh, pause_seconds)
            if found.match is Match.WHOLE:
                keep_aside(ledger.path)
                ledger.take_over(fresh)
                return True
    except (LedgerError, MalformedReplyError):
        pass  # this RPC node is no better now
    finally:
        beside.unlink(missing_ok=True)
    return False


class Match(Enum):
    """How a ledger compares with a Run account."""

    WHOLE = "whole"
    """Hash and number of events are those of the account: every byte is proven."""
    BEHIND = "behind"
    """The account has absorbed more events, or closed more rounds."""
    AHEAD = "ahead"
    """The ledger has more events: the RPC node lags."""
    OTHER = "other"
    """As many events with another hash: the tail of the ledger is false, or the account is."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison: events of the ledger and of the account."""

    match: Match
    num_events: int
    num_on_chain: int


def compare(fold: Fold, run: RunView) -> Compared:
    """Compare a folded ledger with the Run account at one moment."""
    own, theirs = fold.next_sequence, run.event_sequence
    if own == theirs:
        match = Match.WHOLE if fold.hash == run.chain_hash else Match.OTHER
    else:
        match = Match.BEHIND if own < theirs else Match.AHEAD
    return Compared(match, own, theirs)


async def _append(client: CoordinatorClient, ledger: LedgerFile, pause_seconds: float) -> int:
    total = 0
    async for chosen in new_entries(client, ledger, pause_seconds):
        total += ledger.append(chosen)  # in no thread: whoever cancels us closes the file
    return total


async def new_entries(
    client: CoordinatorClient, ledger: LedgerFile, pause_seconds: float = 0
) -> AsyncIterator[list[Entry]]:
    """Yield what has landed since the ledger's last entry, up to AT_ONCE entries at a time.

    Raises as `entries_after`, after it has yielded what was read before: an RPC node that limits
    requests may never answer so many in a row.
    """
    run, batch = Pubkey.from_string(ledger.head.run), list[Entry]()
    failure: RpcError | None = None
    try:
        async for entry in entries_after(client, run, ledger.newest, pause_seconds=pause_seconds):
            batch.append(entry)
            if len(batch) >= AT_ONCE:
                yield batch
                batch = []
    except RpcError as error:
        failure = error
    if batch:
        yield batch
    if failure is not None:
        raise failure
