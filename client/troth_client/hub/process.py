"""A hub as a process: a server for members, a reader of the chain, a folder with a bound.

Owns: the order of start and end, and what a signal does. Never: prints; events show what happens.
Next: `follow.py` for what is accepted, `keeping.py` for what is kept, `transport/server.py`.
"""

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from solders.pubkey import Pubkey

from troth_client.hub.follow import Follower
from troth_client.hub.keeping import BoundedFiles, KeptSets
from troth_client.hub.metrics import metrics
from troth_client.hub.states import KeptStates
from troth_client.network.watch import RPC_FAILURES
from troth_client.runtime.base import ProcessRuntime
from troth_client.runtime.files import FolderLock
from troth_client.runtime.signals import at_stop_signals
from troth_client.state.audit_tracker import AuditTracker
from troth_client.storage.identity import check_identity
from troth_client.telemetry.events import EventSink
from troth_client.transport.blob_cache import BlobCache
from troth_client.transport.bounded import BoundedBlobs
from troth_client.transport.exchange import Patience
from troth_client.transport.quota import Quota
from troth_client.transport.server import BlobServer, Extras
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.clusters import public_name
from troth_coordinator.rules.view import NetworkView

SHARES = 4
"""Equal parts of the folder's bound: for rounds, opening sets, the run's data, and weights."""
IDENTITY_FILE: Final = "hub.json"
"""The file that says of which run, and of which life of it, the bytes of a folder are."""


@dataclass(frozen=True, slots=True)
class HubSettings:
    """The settings of a hub. `max_bytes` bounds the folder, `quota_bytes` one sender per round.

    A sender may push `quota_bytes` for rounds, and as many in pieces of weights and data.
    """

    run: Pubkey
    folder: Path
    host: str
    port: int
    max_bytes: int
    quota_bytes: int
    keep_rounds: int
    poll_seconds: float = 0.4


async def serve_hub(settings: HubSettings, client: CoordinatorClient, events: EventSink) -> None:
    """Serve until SIGINT or SIGTERM. A restart keeps what lies in the folder.

    Raises EndpointInUseError, EndpointError, FolderInUseError, AccountMissingError without the run,
    StoreIdentityError for the folder of another run or of an earlier life of this one: later rounds
    that lie there leave no room. An RPC node that is away is reported; what is here is served
    meanwhile.
    """
    view = await client.snapshot(settings.run)
    genesis = bytes(await client.rpc.genesis_hash())
    is_guarded = public_name(genesis) is not None
    stopped = asyncio.Event()
    with FolderLock(settings.folder), at_stop_signals(stopped.set):
        check_identity(
            settings.folder / IDENTITY_FILE, _identity(view, genesis), "--dir", durable=False
        )
        hub = _Hub(settings, client, events, view, is_guarded=is_guarded)
        try:
            await hub.serve(view, stopped)
        finally:
            await hub.server.stop()
        events.emit("hub_ended", round=hub.round)


def _identity(view: NetworkView, genesis: bytes) -> dict[str, object]:
    run = view.run
    address, created = bytes(run.address).hex(), run.created_slot
    return {"run": address, "genesis_hash": genesis.hex(), "created_slot": created}


class _Hub:
    """The parts of a hub, and the newest round that it has seen."""

    def __init__(
        self,
        settings: HubSettings,
        client: CoordinatorClient,
        events: EventSink,
        view: NetworkView,
        *,
        is_guarded: bool,
    ) -> None:
        share = settings.max_bytes // SHARES
        self.round = view.run.round
        self._settings = settings
        self._client = client
        self._events = events
        self._kept = BoundedBlobs(settings.folder, share)
        self._sets = KeptSets(settings.folder / "sets", share)
        hashes = view.run.config_hash, view.run.manifest_hash
        files = BoundedFiles(settings.folder / "files", hashes, share)
        folder = settings.folder / "states"
        self._states = KeptStates(folder, files, view.run.config_hash, share)
        self._quota = Quota(settings.quota_bytes)
        cache = BlobCache(self._kept)
        cache.show(self._sets)
        cache.show_files(files)
        cache.show_states(self._states)
        at = RunAddresses.of(view.run, client.program_id)
        tracker = AuditTracker(client, at, ProcessRuntime(settings.poll_seconds), events)
        self._follower = Follower(
            client=client,
            run=at.run,
            cache=cache,
            sets=self._sets,
            states=self._states,
            tracker=tracker,
            keep_rounds=settings.keep_rounds,
            round_bytes=share // 2,
        )
        extras = Extras(self._quota, {"/metrics": self._page}, is_guarded)
        self.server = BlobServer(cache, Patience(), extras)

    async def serve(self, view: NetworkView, stopped: asyncio.Event) -> None:
        """Listen, and follow the run until `stopped`."""
        settings = self._settings
        await self._follower.take(view)
        port = await self.server.start(settings.host, settings.port)
        self._events.emit("hub_listening", host=settings.host, port=port, round=self.round)
        while not await _is_set(stopped, settings.poll_seconds):
            try:
                await self._look()
            except RPC_FAILURES as error:
                self._events.emit("chain_unreachable", count=1, reason=str(error))

    async def _look(self) -> None:
        view = await self._client.snapshot(self._settings.run)
        await self._follower.take(view)
        if view.run.round != self.round:
            self.round = view.run.round
            self._quota.renew()
            self._events.emit("hub_round", round=self.round, bytes=self._kept.num_bytes)

    def _page(self) -> str:
        numbers = {
            "round_bytes": self._kept.num_bytes,
            "opening_set_bytes": self._sets.num_bytes,
            "weight_pieces": self._states.num_pieces,
            "round": self.round,
        }
        return metrics(self.server.tally, numbers)


async def _is_set(stopped: asyncio.Event, seconds: float) -> bool:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stopped.wait(), seconds)
    return stopped.is_set()
