"""Places at a server, shared fairly between the addresses that callers come from.

Owns: how many callers are served at a time, and who gives up a place when all are taken.
Never: opens or ends a connection. A taker says how its place is given up.
Next: `server.py`, which has places for connections, reads and pushes.

There is no limit per address while a place is free: a whole fleet may sit behind one address. When
all places are taken, a newcomer's address may take one from the address that has the most. So one
address never keeps another out, however many connections it opens.
"""

import asyncio
import contextlib
import ipaddress
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

UNKNOWN: Final = ""
"""The address of a caller whose connection has ended already."""
_HOST_BITS: Final = 64
"""An IPv6 host may use any of so many bits, so its callers count by the network."""


@dataclass(eq=False, slots=True)
class Place:
    """One place that an address has; `give_up` ends what it is used for."""

    caller: str
    give_up: Callable[[], None]


@dataclass(eq=False, slots=True)
class _Waiter:
    caller: str
    free: "asyncio.Future[None]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Places:
    """At most `num` places at a time. All calls come from one event loop."""

    def __init__(self, num: int) -> None:
        self._num = num
        self._taken: dict[Place, None] = {}  # the oldest first
        self._held: Counter[str] = Counter()
        self._waiting: dict[_Waiter, None] = {}

    def take(self, caller: str, give_up: Callable[[], None]) -> Place | None:
        """Return a place, or None if all are taken by addresses that have no more than this one.

        It may be the place of another, whose `give_up` is called: the oldest of the address that
        has the most, if that is at least two more than the caller's.
        """
        if len(self._taken) >= self._num and not self._displace(caller):
            return None
        place = Place(caller, give_up)
        self._taken[place] = None
        self._held[caller] += 1
        return place

    def leave(self, place: Place) -> None:
        """Give a place back; idempotent."""
        if self._remove(place):
            self._wake()

    @contextlib.asynccontextmanager
    async def wait(self, caller: str, give_up: Callable[[], None]) -> AsyncIterator[None]:
        """Hold a place inside the block, after waiting for one for as long as it takes."""
        while (place := self.take(caller, give_up)) is None:
            await self._until_one_is_free(caller)
        try:
            yield
        finally:
            self.leave(place)

    @contextlib.contextmanager
    def hold(self, caller: str, give_up: Callable[[], None]) -> Iterator[bool]:
        """Hold a place inside the block, if there is one now; yields whether there is."""
        place = self.take(caller, give_up)
        try:
            yield place is not None
        finally:
            if place is not None:
                self.leave(place)

    async def _until_one_is_free(self, caller: str) -> None:
        waiter = _Waiter(caller)
        self._waiting[waiter] = None
        try:
            await waiter.free
        except asyncio.CancelledError:
            if waiter.free.done() and not waiter.free.cancelled():
                self._wake()  # the place that it was woken for is another's now
            raise
        finally:
            self._waiting.pop(waiter, None)

    def _displace(self, caller: str) -> bool:
        rival, most = max(self._held.items(), key=lambda item: item[1], default=(UNKNOWN, 0))
        if most < self._held[caller] + 2:
            return False
        place = next(one for one in self._taken if one.caller == rival)
        self._remove(place)
        place.give_up()
        return True

    def _remove(self, place: Place) -> bool:
        if place not in self._taken:
            return False
        del self._taken[place]
        self._held[place.caller] -= 1
        if not self._held[place.caller]:
            del self._held[place.caller]
        return True

    def _wake(self) -> None:
        """Let the waiter go on whose address has the fewest places."""
        # One that was cancelled just now is still listed, and would take the place with it.
        waiting = [one for one in self._waiting if not one.free.done()]
        waiter = min(waiting, key=lambda one: self._held[one.caller], default=None)
        if waiter is not None:
            del self._waiting[waiter]
            waiter.free.set_result(None)


def caller_of(peer: object) -> str:
    """Return the address that a caller counts under, from the peer name of its socket.

    That is the IPv4 address, also where it is written as IPv6, or the network of an IPv6 address.
    """
    text = peer[0] if isinstance(peer, tuple) and peer else peer
    try:
        address = ipaddress.ip_address(str(text).partition("%")[0])
    except ValueError:
        return UNKNOWN
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address) >> _HOST_BITS << _HOST_BITS, _HOST_BITS)))
