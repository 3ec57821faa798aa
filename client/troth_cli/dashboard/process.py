"""The dashboard from start to end: an observer, a server, a signal.

Owns: their order. Never: prints. Next: `feed.py`, `server.py`.
"""

import asyncio
from collections.abc import Callable, Coroutine

from solders.pubkey import Pubkey

from troth_cli.dashboard.feed import Feed
from troth_cli.dashboard.server import DashboardServer
from troth_cli.observe.observer import Observer, ObserverSettings
from troth_client.runtime.base import end
from troth_client.runtime.signals import at_stop_signals
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.clusters import public_cluster


async def serve(
    client: CoordinatorClient,
    run: Pubkey,
    settings: ObserverSettings,
    port: int,
    started: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM; `started` receives the address of the page.

    Raises RpcError, AccountError without such a run, EndpointInUseError for a taken port.
    """
    stopped = asyncio.Event()
    cluster = await public_cluster(client.rpc)
    with at_stop_signals(stopped.set):
        async with Observer(client, run, settings) as observer:
            rpc_url = settings.rpc_urls[0] if settings.rpc_urls else ""
            feed = Feed(client, run, observer, rpc_url, cluster)
            server = DashboardServer(feed, port)
            try:
                started(await server.start())
                await _first(feed.keep_stakes(), stopped.wait())
            finally:
                await server.stop()


async def _first(*works: Coroutine[None, None, object]) -> None:
    """Wait until one of them ends; raise its error."""
    running = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for one in done:
            one.result()
    finally:
        await end(*running)
