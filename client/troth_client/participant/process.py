"""One participant as a real process: HTTP transport, RPC, a state folder, signals.

Owns: the order of a start, the life of the ports, what a signal does.
Never: prints (events show what happens) or parses a command line.
Next: `joining.py` and `ending.py`; `troth join` and the demo call `participate`.
"""

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_client.archive.process import ArchiveSettings, archive_beside
from troth_client.archive.room import Keeping
from troth_client.checkpoint.folder import Weights
from troth_client.checkpoint.start import read_start
from troth_client.data.fit import load_fitting
from troth_client.data.shards import TokenData
from troth_client.member import Member
from troth_client.model.device import Device, choose_device
from troth_client.network.chain import OUTSIDE, Identity
from troth_client.network.named_tasks import Work, run_beside
from troth_client.network.rpc_events import RpcEvents
from troth_client.participant.assembly import (
    EarlyParts,
    Ports,
    Resources,
    assemble,
    early_parts,
    joined,
)
from troth_client.participant.checkpoints import Checkpoints
from troth_client.participant.ending import ParticipantEnd, conclude
from troth_client.participant.joining import announce, join, known_place
from troth_client.participant.learning import learner_of
from troth_client.participant.ledger_keeping import LedgerSource, complete_ledger, keep_ledger
from troth_client.participant.payer import report_cap
from troth_client.participant.restarting import tell_while
from troth_client.participant.session_funding import SessionFunding
from troth_client.participant.settings import ParticipantSettings
from troth_client.participant.spent import keep_spent
from troth_client.participant.stake_keeping import StakeKeeping
from troth_client.participant.supervisor import Beside, Supervisor
from troth_client.participant.validating import HeldOut, validate
from troth_client.run_files.files import member_files
from troth_client.runtime.allocator import keep_freed_memory
from troth_client.runtime.base import ProcessRuntime
from troth_client.runtime.signals import at_stop_signals
from troth_client.runtime.threads import compute_with
from troth_client.storage import Store, report_damage
from troth_client.storage.entries import StoreIdentity
from troth_client.telemetry.events import EventSink
from troth_client.telemetry.library_logs import as_events
from troth_client.transport.endpoint import check_endpoint
from troth_client.transport.exchange import Exchange
from troth_client.transport.files import BLOBS_FOLDER
from troth_client.transport.guard import is_outbound_only
from troth_client.transport.http import http_transport
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.agreement import check_run
from troth_coordinator.chain.attempts import Once
from troth_coordinator.chain.client import CoordinatorClient, SendPolicy
from troth_coordinator.chain.clusters import public_name
from troth_coordinator.chain.errors import (
    BlockhashExpiredError,
    RpcDisagreementError,
    RpcError,
    UnconfirmedError,
)
from troth_coordinator.chain.failover import FailoverRpc
from troth_coordinator.chain.operations import Owner
from troth_coordinator.chain.pricing import Pricing
from troth_coordinator.chain.rpc import Rpc
from troth_coordinator.chain.sharing import SharingRpc
from troth_coordinator.chain.subscription import RunPushes, websocket_url
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import Digest
from troth_coordinator.rules.view import NetworkView, RunView

T = TypeVar("T")

FUNDING_POLLS = 150
"""How many polls of the chain pass between two checks of the session key's balance and stake."""
ARCHIVE_SECONDS = 1.0
"""An archive beside a participant looks so often; members keep bytes for many rounds."""


def unchanged(ports: Ports) -> Ports:
    """Return the ports as they are."""
    return ports


async def participate(
    settings: ParticipantSettings,
    events: EventSink,
    wrap: Callable[[Ports], Ports] = unchanged,
) -> ParticipantEnd:
    """Join the run or resume in it, follow it until it is finished or a signal asks to stop.

    A newcomer to a run that has begun brings its weights there first, and deposits afterwards.
    `wrap` may replace the ports of the participant; the demo uses it for cheats.

    The first SIGINT or SIGTERM lets the round under way end. The stake stays, so the same command
    resumes. A second signal stops at once. Raises the errors of its parts.
    """
    keep_freed_memory()
    compute_with(settings.num_threads)
    key, session = Keypair.from_bytes(settings.owner), Keypair.from_bytes(settings.session)
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(as_events(events))
        opened = FailoverRpc.over(settings.rpc_urls, RpcEvents(events))
        rpc = await stack.enter_async_context(opened)
        chain = _client(settings, rpc, events)
        source = await stack.enter_async_context(_ledger_source(settings, chain.program_id))
        run = await _patiently(settings, partial(_checked_run, chain, settings))
        owner = Owner(chain, RunAddresses.of(run, chain.program_id), key)
        known, announced = await _patiently(settings, partial(known_place, owner))
        genesis = Digest(await _patiently(settings, rpc.genesis_hash))
        opening = _open_transport(settings, announced, genesis)
        transport = await stack.enter_async_context(opening)
        transport.show_files(member_files(settings.data, settings.config))
        await stack.enter_async_context(_archive(settings, owner, transport, events, genesis))
        store = stack.enter_context(_open_store(settings, owner, run, genesis, events))
        keep_spent(settings.state, chain.pricing.epoch)
        threads = settings.num_threads or os.cpu_count()
        hashers = stack.enter_context(ThreadPoolExecutor(threads, "hash"))
        runtime = ProcessRuntime(settings.poll_seconds)
        urls = [websocket_url(url) for url in dict.fromkeys(settings.rpc_urls)]
        pushes = RunPushes(urls, owner.at.run)
        made = Ports(
            chain,
            transport,
            store,
            runtime,
            events,
            hubs=settings.hubs,
            stores=settings.stores,
            pushes=pushes,
        )
        ports = wrap(made)
        identity = Identity(key.pubkey(), session, OUTSIDE if known is None else known)
        early = early_parts(run, settings.config, identity, genesis, ports)
        load = partial(_load, settings, run, early, ports, hashers)
        member = await tell_while(early, lambda: asyncio.to_thread(load))
        member.chain.funds.bound_by(settings.session_lamports)
        following: dict[str, Work] = {"pushes": pushes.follow}
        supervisor = await _enter(owner, settings, member, following, source)
        if known is not None:
            await announce(owner, announced, transport.endpoint, events)
        others = following | _funding(settings, owner, session.pubkey(), events)
        view = await _interruptible(supervisor.member, supervisor.run, others)
        return await _end(supervisor.member, settings, view, source)


async def _end(
    member: Member, settings: ParticipantSettings, view: NetworkView, source: LedgerSource
) -> ParticipantEnd:
    """Complete the ledger, export the weights, and offer them: that may take long."""
    await complete_ledger(member, settings.ledger, source)
    end = conclude(member, settings, view)
    await _interruptible(member, Checkpoints(member).complete, {})
    return end


@contextlib.asynccontextmanager
async def _ledger_source(
    settings: ParticipantSettings, program: Pubkey
) -> AsyncIterator[LedgerSource]:
    """Open connections of the ledger's own: a limit that it meets stops no round."""
    async with FailoverRpc.over(settings.rpc_urls) as rpc:
        yield LedgerSource(CoordinatorClient(rpc, program))


def _client(settings: ParticipantSettings, rpc: Rpc, events: EventSink) -> CoordinatorClient:
    """Return the client of the chain, whose sends share what they ask of an RPC node."""
    policy = SendPolicy(poll_seconds=settings.poll_seconds)
    shared = SharingRpc(rpc, policy.poll_seconds)
    return CoordinatorClient(
        rpc,
        Pubkey.from_string(settings.program) if settings.program else None,
        policy=policy,
        pricing=Pricing(shared, settings.priority, partial(report_cap, events)),
    )


async def _enter(
    owner: Owner,
    settings: ParticipantSettings,
    member: Member,
    following: Mapping[str, Work],
    source: LedgerSource,
) -> Supervisor:
    """Return the member at work under its index; a newcomer fetches and replays, then deposits."""
    chain, endpoint = member.chain, member.submissions.transport.endpoint
    view = await _patiently(settings, partial(owner.client.read_run, owner.at.run))
    is_given = member.state.config.has_given_start  # then the weights are a stranger's
    is_late = chain.index == OUTSIDE and (view.round > 0 or is_given)
    if is_late:
        await _interruptible(member, Supervisor(member).arrive, following)
    joining = partial(join, owner, settings, chain.identity.session, endpoint, Once())
    index, fee = await _patiently(settings, joining)
    chain.events.emit("joined", index=int(index), endpoint=endpoint, fee=fee)
    beside = _beside(settings, source)
    return Supervisor(joined(member, index), has_arrived=is_late, owner=owner, besides=beside)


async def _patiently(settings: ParticipantSettings, ask: Callable[[], Awaitable[T]]) -> T:
    """Return the answer of the RPC nodes, however long they are away.

    Raises at once what no waiting heals: a run or a program that is not there, or two RPC
    nodes that disagree.
    """
    while True:
        try:
            return await ask()
        except RpcDisagreementError:
            raise
        except (RpcError, UnconfirmedError, BlockhashExpiredError):  # see `rpc_trouble`
            await asyncio.sleep(settings.poll_seconds)


async def _checked_run(chain: CoordinatorClient, settings: ParticipantSettings) -> RunView:
    """Return the run, of which all RPC nodes say the same. Raises AccountError, ProgramIdError."""
    run = Pubkey.from_string(settings.run)
    await chain.check_program()
    await check_run(chain, run)
    return await chain.read_run(run)


def _load(
    settings: ParticipantSettings, run: RunView, early: EarlyParts, ports: Ports, hashers: Executor
) -> Member:
    """Read data and weights, and meet other ranks; slow, for a thread."""
    device = _device(settings)
    num_ranks = 1 if ports.ranks is None else ports.ranks.size
    threads = torch.get_num_threads()
    ports.events.emit(
        "computing",
        device=str(device.torch),
        precision=device.precision,
        threads=threads,
        ranks=num_ranks,
        microbatch=device.at_once(settings.config.train.microbatch_sequences),
    )
    is_member = early.chain.index != OUTSIDE
    learner = learner_of(settings, ports.events, ports.ranks, is_member=is_member)
    drawn, start = random.Random(settings.owner), None
    if settings.start is not None:
        start = partial(_read_start, settings.start, settings.config)
    data, past = _open_data(settings), settings.past_bytes
    resources = Resources(data, device, start, hashers, drawn, learner, past)
    return assemble(run, settings.config, early, ports, resources)


def _read_start(folder: Path, config: RunConfig) -> Weights:
    return read_start(folder, config.model).weights


def _funding(
    settings: ParticipantSettings, owner: Owner, session: Pubkey, events: EventSink
) -> dict[str, Work]:
    """Return what keeps the session key and the stake large enough, by name."""
    full, limit = settings.session_lamports, settings.refill_lamports
    funding = SessionFunding(owner, limit, events, session, full)
    keeping = StakeKeeping(owner, settings.top_up_lamports, events)
    seconds = FUNDING_POLLS * settings.poll_seconds
    return {"session": partial(funding.watch, seconds), "stake": partial(keeping.watch, seconds)}


def _open_transport(settings: ParticipantSettings, announced: str, genesis_hash: bytes) -> Exchange:
    """Return the transport, not started, on the announced port.

    The user may announce another address than we listen on: a proxy may stand before us.
    Without a host it listens nowhere, nor does it on a public cluster at a private address: nobody
    would connect to that.
    """
    port = settings.port
    if announced and port == 0 and not settings.endpoint:
        port = check_endpoint(announced).port or 0
    blobs = settings.state / BLOBS_FOLDER
    is_guarded = public_name(genesis_hash) is not None and not settings.allow_private
    is_hidden = is_outbound_only(settings.host, settings.endpoint, is_guarded=is_guarded)
    host = "" if is_hidden else settings.host
    return http_transport(
        host, port, folder=blobs, advertised=settings.endpoint, is_guarded=is_guarded
    )


def _archive(
    settings: ParticipantSettings,
    owner: Owner,
    transport: Exchange,
    events: EventSink,
    genesis: bytes,
) -> contextlib.AbstractAsyncContextManager[None]:
    """Keep an archive beside us, if the user wants one: it asks whom we ask."""
    if settings.archive is None:
        return contextlib.nullcontext()
    kept = ArchiveSettings(
        run=owner.at.run,
        folder=settings.archive,
        keeping=Keeping(settings.archive_bytes, settings.archive_rounds),
        others=(*settings.hubs, *settings.stores),
        poll_seconds=max(ARCHIVE_SECONDS, settings.poll_seconds),
    )
    return archive_beside(kept, owner.client, transport, events, genesis)


def _open_store(
    settings: ParticipantSettings, owner: Owner, run: RunView, genesis: bytes, events: EventSink
) -> Store:
    us, config_hash = bytes(owner.key.pubkey()), settings.config.config_hash()
    identity = StoreIdentity(bytes(owner.at.run), us, config_hash, genesis, run.created_slot)
    return Store(settings.state, identity, report_damage(events), settings.is_durable)


def _open_data(settings: ParticipantSettings) -> TokenData:
    manifest = load_fitting(settings.data, settings.config)
    return TokenData(settings.data, manifest)


def _beside(settings: ParticipantSettings, source: LedgerSource) -> dict[str, Beside]:
    """Return what the participant does beside the rounds, by name."""
    found: dict[str, Beside] = {}
    if (held_out := _held_out(settings)) is not None:
        found["validation"] = partial(validate, held_out=held_out)
    if settings.ledger is not None and settings.archive is None:  # an archive has a ledger
        found["ledger"] = partial(keep_ledger, path=settings.ledger, source=source)
    return found


def _held_out(settings: ParticipantSettings) -> HeldOut | None:
    """Return the text to validate on; None if nobody asked for it, or the data set has none."""
    manifest = load_fitting(settings.data, settings.config)
    if not settings.validate_every or not manifest.validation:
        return None
    data = TokenData(settings.data, manifest, "validation")
    return HeldOut(data, settings.validate_every, _device(settings))


def _device(settings: ParticipantSettings) -> Device:
    return choose_device(settings.device, settings.microbatch_sequences, settings.precision)


async def _interruptible(
    member: Member, work: Callable[[], Coroutine[Any, Any, T]], others: Mapping[str, Work]
) -> T:
    """Return the result of the work, which others run beside.

    The first signal asks it to stop, the second cancels it.
    """
    following = asyncio.ensure_future(run_beside(member.chain, work(), others))
    num_signals = 0

    def stop() -> None:
        nonlocal num_signals
        num_signals += 1
        member.chain.events.emit("stop_requested", count=num_signals)
        if num_signals == 1:
            member.state.stop.set()
        else:
            following.cancel()

    with at_stop_signals(stop):
        return await following
