"""The members of a run as holders: whom a command fetches from, and for how long.

Owns: the addresses to ask, when they are read again, and when to give up.
Never: trusts a member, listens, or serves anything.
Next: `checkpoint_fetch.py` and `run_files.py`, which fetch; `troth_client/transport/parallel.py`.
"""

import time
from collections.abc import Sequence
from typing import Final

from solders.pubkey import Pubkey

from troth_cli.view.output import Report
from troth_cli.workflows.checkpoint import GONE
from troth_client.runtime.base import ProcessRuntime
from troth_client.telemetry.events import JsonValue
from troth_client.transport.base import Transport
from troth_client.transport.endpoint import is_store
from troth_client.transport.exchange import Exchange
from troth_client.transport.http import http_reader
from troth_client.transport.parallel import Source
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.clusters import public_cluster
from troth_coordinator.chain.errors import RpcError
from troth_coordinator.rules.view import NetworkView

POLL_SECONDS: Final = 0.5
REREAD_SECONDS: Final = 10.0
"""How long the endpoints of members are taken as known."""


class Members:
    """The members of a run to fetch from, and `others`, like hubs and object stores of the user.

    Requests to these stores are signed. After `seconds` without progress it is vain to go on.
    """

    def __init__(
        self,
        client: CoordinatorClient,
        run: Pubkey,
        seconds: float,
        others: Sequence[str] = (),
        *,
        allow_private: bool = False,
    ) -> None:
        self.program = str(client.program_id)
        self._client = client
        self.run = run
        self._seconds = seconds
        self._others = tuple(others)
        self._of_config: tuple[str, ...] = ()
        self._allow_private = allow_private
        self._known: list[str] = []
        self._read_at: float | None = None
        self._last = time.monotonic()

    def ask_also(self, others: Sequence[str]) -> None:
        """Ask these relays of a config too, from the next transport on.

        A stranger may have written it, so requests to its stores are not signed.
        """
        self._of_config = (*self._of_config, *others)

    async def holders(self) -> list[str]:
        """Return the others, and the endpoints of all who have not left.

        The chain is asked from time to time.
        """
        await self._look()
        return list(dict.fromkeys([*self._others, *self._of_config, *self._known]))

    async def _look(self) -> None:
        now = time.monotonic()
        if self._read_at is not None and now - self._read_at <= REREAD_SECONDS:
            return
        try:
            self._known = await endpoints(self._client, await self._client.snapshot(self.run))
        except RpcError:
            if not self._known:
                raise
            # Those from before may do, and the next try asks again.
        else:
            self._read_at = now

    async def transport(self) -> Exchange:
        """Return a transport, not started.

        On public clusters it connects to public addresses only, unless the user allows others.
        """
        is_public = await public_cluster(self._client.rpc) is not None
        transport = http_reader(is_guarded=is_public and not self._allow_private)
        transport.use_stores(filter(is_store, self._others), signs=True)
        transport.use_stores(filter(is_store, self._of_config), signs=False)
        return transport

    def source(self, transport: Transport, report: Report) -> Source:
        """Return these members as the source of a fetch."""
        runtime, bar = ProcessRuntime(POLL_SECONDS), _Bar(report)
        return Source(transport, runtime, bar, self.holders, self.is_vain, self.note_progress)

    def note_progress(self) -> None:
        """Begin to count the seconds anew."""
        self._last = time.monotonic()

    def is_vain(self) -> bool:
        """Tell whether there was no progress for so long."""
        return time.monotonic() - self._last >= self._seconds


async def endpoints(client: CoordinatorClient, view: NetworkView) -> list[str]:
    """Return the announced endpoints of those who have not left, each once."""
    owners = [Pubkey(one.owner) for one in view.entries if one.status not in GONE]
    run = Pubkey(view.run.address)
    found = await client.read_participants(run, owners) if owners else []
    return list(dict.fromkeys(one.endpoint for one in found if one and one.endpoint))


class _Bar:
    """Turns the events of a fetch into a progress bar."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Move the bar as weights or data arrive; nothing else is shown."""
        done, total, left = (fields.get(k) for k in ("done_bytes", "total_bytes", "seconds_left"))
        if (
            event in ("fetching", "fetching_data")
            and isinstance(done, int)
            and isinstance(total, int)
        ):
            note = f"{left} s left" if isinstance(left, int) and done < total else ""
            self._report(done, total, note)
