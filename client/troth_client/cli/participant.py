"""One participant as a real process: HTTP transport, RPC, a state folder, signals.

Owns: joining or resuming, the life of the doors, what a signal does, final weights.
Never: prints (events say what happens) or parses a command line.
Next: `commands/membership.py` (`troth join`) and `demo/` call `participate`.
"""

import asyncio
import os
import random
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_client.assembly import Doors, Workshop, assemble
from troth_client.clock import PollingClock
from troth_client.data.manifest import load_manifest
from troth_client.data.shards import TokenData
from troth_client.model.device import choose_device
from troth_client.model.export import export
from troth_client.model.weights import weight_arrays
from troth_client.peer import Identity, Peer
from troth_client.roles.supervisor import Supervisor
from troth_client.store import Store
from troth_client.store.entries import Identity as StoreIdentity
from troth_client.telemetry.events import EventSink
from troth_client.transport.http import http_transport
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient, SendPolicy
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.chain.operations import Owner
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import Digest, ParticipantIndex
from troth_coordinator.rules.membership import index_of_owner
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView, Role


@dataclass(frozen=True, slots=True)
class ParticipantSettings:
    """What `troth join` needs. Everything is picklable, so that a fleet can hand it to a child.

    `owner` and `session` are 64-byte key pairs; `endpoint` is what others reach, "" for the address
    that is listened on; `state` is the folder of this participant; `session_lamports` are moved to
    the session key at join, to pay for its transactions.
    """

    rpc_url: str
    run: str
    config: RunConfig
    data: Path
    state: Path
    owner: bytes
    session: bytes
    role: Role = Role.TRAINER | Role.WITNESS
    host: str = "127.0.0.1"
    port: int = 0
    endpoint: str = ""
    device: str = "auto"
    poll_seconds: float = 0.4
    session_lamports: int = 50_000_000
    num_threads: int | None = None


@dataclass(frozen=True, slots=True)
class ParticipantEnd:
    """How taking part ended: the last view, the index, and where the weights lie if Finished."""

    index: ParticipantIndex
    round: int
    root: Digest
    is_finished: bool
    weights: Path | None


async def participate(settings: ParticipantSettings, events: EventSink) -> ParticipantEnd:
    """Join the run or resume in it, follow it until it is finished or a signal asks to stop.

    The first SIGINT or SIGTERM lets the round under way end; the stake stays, so that the same
    command resumes. A second one stops at once. Raises what the parts raise.
    """
    owner, session = Keypair.from_bytes(settings.owner), Keypair.from_bytes(settings.session)
    run = Pubkey.from_string(settings.run)
    async with HttpRpc(settings.rpc_url) as rpc:
        policy = SendPolicy(poll_seconds=settings.poll_seconds)
        chain = CoordinatorClient(rpc, policy=policy)
        await chain.check_program()
        transport = http_transport(
            settings.host,
            settings.port,
            folder=settings.state / "blobs",
            advertised=settings.endpoint,
        )
        async with transport:
            at = RunAddresses.of(await chain.read_run(run), chain.program_id)
            joining = Owner(chain, at, owner)
            index = await _join(joining, settings, session, transport.endpoint)
            events.emit("joined", index=int(index), endpoint=transport.endpoint)
            identity = Identity(owner.pubkey(), session, index)
            with (
                _open_store(settings, at, owner, events) as store,
                ThreadPoolExecutor(os.cpu_count(), "hash") as hashers,
            ):
                doors = Doors(chain, transport, store, PollingClock(settings.poll_seconds), events)
                workshop = Workshop(
                    _open_data(settings),
                    choose_device(settings.device),
                    hashers,
                    random.Random(settings.owner),
                )
                view = await chain.read_run(run)
                genesis = Digest(await rpc.genesis_hash())
                peer = await asyncio.to_thread(
                    assemble, view, settings.config, identity, genesis, doors, workshop
                )
                return _end(peer, settings, await _follow(peer))


async def _join(
    owner: Owner, settings: ParticipantSettings, session: Keypair, endpoint: str
) -> ParticipantIndex:
    """Return our index: that of an earlier join with this owner, or a new one."""
    view = await owner.client.snapshot(owner.at.run)
    known = index_of_owner(view.entries, bytes(owner.key.pubkey()))
    if known is None:
        index, _ = await owner.join_run(
            session.pubkey(), int(settings.role), endpoint, settings.session_lamports
        )
        return ParticipantIndex(index)
    entry = view.entries[known]
    if bytes(session.pubkey()) not in (entry.session, entry.next_session):
        await owner.set_session_key(session.pubkey(), settings.session_lamports)
    return known


def _open_store(
    settings: ParticipantSettings, at: RunAddresses, owner: Keypair, events: EventSink
) -> Store:
    identity = StoreIdentity(bytes(at.run), bytes(owner.pubkey()), settings.config.config_hash())

    def damaged(error: Exception) -> None:
        events.emit("file_damaged", reason=str(error))

    return Store(settings.state, identity, damaged)


def _open_data(settings: ParticipantSettings) -> TokenData:
    manifest = load_manifest(settings.data, settings.config.manifest_digest())
    return TokenData(settings.data, manifest)


async def _follow(peer: Peer) -> NetworkView:
    supervisor = Supervisor(peer)
    following = asyncio.create_task(supervisor.run())
    num_signals = 0

    def stop() -> None:
        nonlocal num_signals
        num_signals += 1
        peer.events.emit("stop_requested", count=num_signals)
        if num_signals == 1:
            supervisor.request_stop()
        else:
            following.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        return await following
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _end(peer: Peer, settings: ParticipantSettings, view: NetworkView) -> ParticipantEnd:
    """Export the weights of a finished run and say where the participant stands."""
    is_finished = view.run.phase == Phase.FINISHED
    root = peer.replica.root()
    weights: Path | None = None
    if is_finished:
        weights = settings.state / "weights"
        facts = {"round": str(peer.replica.round), "state_root": root.hex()}
        export(weights, settings.config.model, weight_arrays(peer.model), facts)
    peer.events.emit(
        "ended",
        round=peer.replica.round,
        root=root.hex(),
        finished=is_finished,
        weights=None if weights is None else str(weights),
    )
    return ParticipantEnd(peer.index, peer.replica.round, root, is_finished, weights)
