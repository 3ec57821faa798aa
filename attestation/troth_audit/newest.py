"""The newest events of an account, read piece by piece while new ones come.

Owns: which transactions were read, and a bound on how many events are kept.
Never: reads a transaction twice, or more than `most` at the beginning.
Next: `slashes.py`, which reads slashes from the events of a vault.
"""

from collections import deque
from itertools import takewhile

from solders.pubkey import Pubkey
from solders.signature import Signature

from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.events import Event, creation_in
from troth_coordinator.chain.rpc import Listed

MOST_TRIES = 3
"""A transaction that an RPC node lists and cannot show is asked for so often."""


class NewestEvents:
    """The events of a run in the transactions that name an account, oldest first.

    `most` bounds the transactions of the first read and the events that are kept. `is_cut` tells
    whether older ones are left out.
    """

    def __init__(self, client: CoordinatorClient, address: Pubkey, run: Pubkey, most: int) -> None:
        self._client = client
        self._address, self._run = address, run
        self._most = most
        self._events: deque[Event] = deque(maxlen=most)
        self._read: dict[Signature, None] = {}
        self._tries = 0
        self.is_cut = False

    async def read(self) -> tuple[Event, ...]:
        """Read what is new and return all that is kept. Raises RpcError; the next call goes on."""
        for listed in reversed(await self._unread()):
            signature, run = listed.signature, self._run
            events = () if listed.has_failed else await self._client.events_of(signature, run)
            self._tries = self._tries + 1 if events is None else 0
            if events is None and self._tries < MOST_TRIES:
                break
            self._tries = 0
            self._take(events or ())
            self._read[signature] = None
        while len(self._read) > 2 * self._most:
            del self._read[next(iter(self._read))]
        return tuple(self._events)

    def _take(self, events: tuple[Event, ...]) -> None:
        created = creation_in(events)
        if created is not None:
            self._events.clear()  # those were of an earlier life of the run
            events, self.is_cut = events[created:], False
        self.is_cut |= len(self._events) + len(events) > self._most
        self._events.extend(events)

    async def _unread(self) -> list[Listed]:
        """Return the transactions that were not read, newest first."""
        found: list[Listed] = []
        last: Signature | None = None
        while page := await self._client.rpc.signatures(self._address, before=last):
            new = list(takewhile(lambda one: one.signature not in self._read, page))
            found, last = found + new, page[-1].signature
            if len(new) < len(page):
                break  # all older ones were read, or left out
            if len(found) >= self._most:
                break
        self.is_cut |= len(found) > self._most
        return found[: self._most]
