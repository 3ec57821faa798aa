"""`RunPushes`: a websocket over which a node says that a run has changed. A hint, never a fact.

Owns: the connection, its renewal with growing pauses, and the newest mark of the run.
Never: reads state for anybody. A push only says that it is worth looking; what is acted on comes
from a look through `FailoverRpc`. So a socket that is dead, silent or lying costs time, no more.
Next: `troth_client/network/reading.py` decides when to look.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from struct import Struct
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit, urlunsplit

import aiohttp
from solders.pubkey import Pubkey

from troth_coordinator.chain.account_json import ENCODING, unfold
from troth_coordinator.chain.codec import DISCRIMINATOR_BYTES
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.rules.ids import Slot
from troth_coordinator.rules.view import RunView

CONNECT_SECONDS: Final = 10.0
CLOSE_SECONDS: Final = 1.0
HEARTBEAT_SECONDS: Final = 10.0
"""A ping so often; a socket that does not answer it is dead."""
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 300.0
"""The pause before the next connection doubles from the first to the longest."""
GOOD_SECONDS: Final = 120.0
"""After a connection that was good for so long, the pauses begin anew."""
MAX_MESSAGE_BYTES: Final = 64 * 1024
MAX_PUSHES_PER_SECOND: Final = 200
"""An account changes once a slot on a public chain, and some ten times a second on a local one."""
_FAULTS: Final = (
    aiohttp.ClientError,
    OSError,
    TimeoutError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
)
"""Errors of a connection, and of bytes of a stranger that are read as a push."""
_FIRST, _LAST = "round", "event_sequence"
"""The part of a Run account that is asked for: a tenth of it."""
_NAMES: Final = (
    "round",
    "phase_start_slot",
    "phase_end_slot",
    "quorum_slot",
    "seeds_pending",
    "paused_at_slot",
)


@dataclass(frozen=True, slots=True)
class Mark:
    """A state of a run at a slot, by the fields that tell it from others.

    edge: round, limits of the phase, quorum, seeds and pause, which everybody waits for.
    event_sequence counts all that happens, but for commits and attestations.
    """

    slot: Slot
    edge: tuple[int, ...]
    event_sequence: int

    @property
    def round(self) -> int:
        """The open round."""
        return self.edge[_NAMES.index("round")]

    @property
    def quorum_slot(self) -> Slot:
        """The slot of the quorum of the phase."""
        return Slot(self.edge[_NAMES.index("quorum_slot")])


def mark_of(run: RunView, slot: int) -> Mark:
    """Return the mark of a Run account that was read at a slot."""
    edge = tuple(int(getattr(run, name)) for name in _NAMES)
    return Mark(Slot(slot), edge, run.event_sequence)


class RunPushes:
    """Receives the pushes of one run while `follow` runs, which its owner starts.

    urls: the websockets of the nodes, in the order of preference; each failure moves on to the
    next. `is_live`: a node has taken the subscription, and nothing speaks against it. `listener`:
    is called after each push.
    """

    def __init__(self, urls: Sequence[str], run: Pubkey, random: Random | None = None) -> None:
        self.newest: Mark | None = None
        self.listener: Callable[[], None] | None = None
        self._urls = list(urls)
        self._run = run
        self._random = random or Random()
        self._reading: asyncio.Task[None] | None = None
        self._is_live = False
        self._num_failures = 0
        self._part = _Part()

    @property
    def is_live(self) -> bool:
        """Whether changes are pushed, as far as is known."""
        return self._is_live

    def distrust(self) -> None:
        """Drop a connection that did not push what happened, or pushed what did not."""
        self._is_live, self.newest = False, None
        if self._reading is not None:
            self._reading.cancel()

    async def follow(self) -> NoReturn:
        """Keep a subscription for ever; nodes without websockets are asked ever more rarely."""
        loop = asyncio.get_running_loop()
        while True:
            url, begun = self._urls[self._num_failures % len(self._urls)], loop.time()
            self._reading = asyncio.create_task(self._subscribe(url), name=f"pushes of {self._run}")
            try:
                await asyncio.wait({self._reading})
            finally:
                self._is_live = False
                self._reading.cancel()
            _check(self._reading)
            is_good = loop.time() - begun > GOOD_SECONDS
            self._num_failures = 1 if is_good else self._num_failures + 1
            pause = FIRST_PAUSE_SECONDS * 2 ** min(self._num_failures - 1, 10)
            await asyncio.sleep(min(pause, LONGEST_PAUSE_SECONDS) * self._random.uniform(0.5, 1.0))

    async def _subscribe(self, url: str) -> None:
        """Subscribe at one node and take in its pushes until the connection ends."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=False) as session,
            asyncio.timeout(CONNECT_SECONDS) as opening,
            session.ws_connect(
                url,
                heartbeat=HEARTBEAT_SECONDS,
                max_msg_size=MAX_MESSAGE_BYTES,
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
            ) as socket,
        ):
            await socket.send_str(self._request())
            clock = asyncio.get_running_loop().time
            left, counted_at = MAX_PUSHES_PER_SECOND, clock()
            async for message in socket:
                left -= 1
                if clock() - counted_at >= 1.0:
                    left, counted_at = MAX_PUSHES_PER_SECOND, clock()
                if left < 0:
                    raise ValueError(f"more than {MAX_PUSHES_PER_SECOND} pushes in a second")
                if message.type is not aiohttp.WSMsgType.TEXT:
                    raise ValueError(f"expected text, found {message.type!r}")
                self._take(json.loads(message.data))
                if self._is_live:
                    opening.reschedule(None)

    def _request(self) -> str:
        config = {
            "encoding": ENCODING,
            "commitment": "confirmed",
            "dataSlice": {"offset": self._part.offset, "length": self._part.length},
        }
        params = [str(self._run), config]
        call = {"jsonrpc": "2.0", "id": 1, "method": "accountSubscribe", "params": params}
        return json.dumps(call)

    def _take(self, message: dict[str, Any]) -> None:
        """Take in the answer to the subscription, or a push. Raises what a bad one makes it."""
        if message.get("method") != "accountNotification":
            if not isinstance(message["result"], int):
                raise TypeError(f"expected the number of a subscription, found {message!r:.200}")
            self._is_live = True
            return
        result = message["params"]["result"]
        slot, (text, encoding) = result["context"]["slot"], result["value"]["data"]
        if type(slot) is not int:
            raise TypeError(f"expected a slot, found {slot!r:.80}")
        mark = self._part.mark(slot, unfold(text, encoding, MAX_MESSAGE_BYTES))
        if self.newest is None or mark.slot >= self.newest.slot:
            self.newest = mark
            if self.listener is not None:
                self.listener()


def _check(reading: asyncio.Task[None]) -> None:
    """Raise what is no fault of a connection; the slow polls bridge those that are."""
    error = None if reading.cancelled() else reading.exception()
    if error is not None and not isinstance(error, _FAULTS):
        raise error


class _Part:
    """The part of a Run account that is pushed."""

    def __init__(self) -> None:
        fields = {field.name: field for field in program_layout().structs["Run"]}
        first, last = fields[_FIRST].offset, fields[_LAST].offset
        word = Struct("<Q")
        self._unpack = word.unpack_from
        self.offset = DISCRIMINATOR_BYTES + first
        self.length = last + word.size - first
        self._edge = [fields[name].offset - first for name in _NAMES]
        self._sequence = last - first

    def mark(self, slot: int, data: bytes) -> Mark:
        """Read a mark from the part, or from a whole account where a node does not cut.

        ValueError for neither.
        """
        if len(data) == program_layout().accounts["Run"].size:
            data = data[self.offset : self.offset + self.length]
        if len(data) != self.length:
            raise ValueError(f"expected {self.length} bytes of a Run account, found {len(data)}")
        edge = tuple(self._unpack(data, offset)[0] for offset in self._edge)
        return Mark(Slot(slot), edge, self._unpack(data, self._sequence)[0])


def websocket_url(rpc_url: str) -> str:
    """Return where a node has its websocket: the next port, or the same address if none is named.

    This is the rule of Solana's own clients.
    """
    parts = urlsplit(rpc_url)
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    where = parts.netloc
    if parts.port is not None:
        where = f"{where[: -len(str(parts.port))]}{parts.port + 1}"
    return urlunsplit((scheme, where, parts.path, parts.query, ""))
