"""The dashboard's server against pages of other origins, long subjects and readers that stop.

Threat T123. The attacker has a web page that the user visits, or any process on the machine.
"""

import asyncio
import contextlib

import aiohttp
import pytest
from aiohttp import web
from support.browser import CHROMIUM, visiting
from support.runs import NO_AUDITS

from troth_cli.dashboard.feed import Feed
from troth_cli.dashboard.server import MAX_STREAMS, DashboardServer
from troth_cli.observe.observer import Observer, ObserverSettings
from troth_client.transport.memory import memory_transport
from troth_coordinator.chain.client import CoordinatorClient
from troth_localnet.direct import DirectRpc

SETTINGS = ObserverSettings(follows=False)
RPC_URL = "http://10.0.0.1:8899/hush?api-key=hush"


@contextlib.asynccontextmanager
async def serving(run_factory):
    """The dashboard of a run that waits for members; yields the page's address and a client."""
    async with serving_run(await run_factory.create(3, **NO_AUDITS)) as found:
        yield found


@contextlib.asynccontextmanager
async def serving_run(run, rpc=None):
    client = CoordinatorClient(rpc or DirectRpc(run.chain))
    transport = memory_transport(run.network, "outsider", listens=False)
    async with contextlib.AsyncExitStack() as stack:
        observer = Observer(client, run.at.run, SETTINGS, transport=transport)
        await stack.enter_async_context(observer)
        server = DashboardServer(Feed(client, run.at.run, observer, RPC_URL, None), 0)
        url = await server.start()
        stack.push_async_callback(server.stop)
        yield url, await stack.enter_async_context(aiohttp.ClientSession())


async def status_of(session, url, **headers):
    async with session.get(url, headers={k.replace("_", "-"): v for k, v in headers.items()}) as it:
        return it.status


async def test_a_name_that_points_here_is_refused_and_a_tunnel_is_not(run_factory):
    async with serving(run_factory) as (url, session):
        port = url.rsplit(":", 1)[1].strip("/")
        for host in (f"evil.example:{port}", "localhost.evil.example", "10.0.0.1", "", "[::"):
            assert await status_of(session, f"{url}api/state", Host=host) == 421, host
        for host in (f"127.0.0.1:{port}", "localhost:9000", "127.0.0.1", "[::1]:9000"):
            assert await status_of(session, f"{url}api/state", Host=host) == 200, host


async def test_what_a_browser_asks_for_on_another_pages_behalf_is_refused(run_factory):
    async with serving(run_factory) as (url, session):
        for path in ("api/state", "api/events", "api/transactions/participant/0"):
            for site in ("cross-site", "same-site"):
                assert await status_of(session, url + path, Sec_Fetch_Site=site) == 403, path
        for site in ("same-origin", "none"):
            assert await status_of(session, f"{url}api/state", Sec_Fetch_Site=site) == 200
        assert await status_of(session, url, Sec_Fetch_Site="cross-site") == 200, (
            "a link leads here"
        )


@pytest.mark.parametrize("number", ["9" * 5_000, "²", "٣", "-1", ""], ids=len)
async def test_a_subject_that_is_no_number_is_not_found(run_factory, number):
    async with serving(run_factory) as (url, session):
        for subject in (
            f"participant/{number}",
            f"audit/{number}/0/work",
            f"audit/0/{number}/work",
        ):
            assert await status_of(session, f"{url}api/transactions/{subject}") == 404


async def test_the_explorers_site_is_told_no_key_of_a_node(run_factory):
    run = await run_factory.start(1, names="ada bob", **NO_AUDITS)
    await run.finish()
    async with (
        serving_run(run) as (url, session),
        session.get(f"{url}api/transactions/participant/0") as answer,
    ):
        found = (await answer.json())["transactions"]
    assert found[0]["url"].endswith("customUrl=http%3A%2F%2F10.0.0.1%3A8899")
    assert "hush" not in str(found)


async def test_readers_that_never_read_leave_the_others_alone(run_factory):
    async with serving(run_factory) as (url, session):
        host, port = url.removeprefix("http://").strip("/").split(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(MAX_STREAMS)]
        for _, writer in silent[:-1]:
            writer.write(f"GET /api/events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        async with session.get(f"{url}api/events") as stream:
            assert (await stream.content.readline()) == b"event: state\n"
        assert await status_of(session, f"{url}api/state") == 200
        for _, writer in silent:
            writer.close()


class Asked(DirectRpc):
    """Counts the reads of transactions, of which each costs a node up to fifty more."""

    num_lists = 0

    async def signatures(self, address, *, before=None, until=None):
        self.num_lists += 1
        return await super().signatures(address, before=before, until=until)


@pytest.mark.skipif(not CHROMIUM, reason="needs Debian's chromium")
async def test_a_page_elsewhere_reads_nothing_and_makes_the_node_work_for_nothing(run_factory):
    run = await run_factory.create(3, **NO_AUDITS)
    rpc = Asked(run.chain)

    def visit(address):
        with visiting(address) as found:
            found.page.wait_for_function("document.title === 'done'")
            return found.page.evaluate("window.told")

    async with serving_run(run, rpc) as (url, session):
        subject = f"{url}api/transactions/audit/0/0/work"
        async with foreign_page(url, subject) as address:
            told = await asyncio.to_thread(visit, address)
        assert rpc.num_lists == 0
        assert await status_of(session, subject, Sec_Fetch_Site="same-origin") == 200
    assert told == ["fetch: TypeError", "events: error", "opaque", "img: error"]
    assert rpc.num_lists == 1, "the page itself may ask"


@contextlib.asynccontextmanager
async def foreign_page(url, subject):
    """A page of another origin that tries each way to the dashboard; yields its address."""
    script = f"""
    window.told = [];
    const tell = (text) => told.push(text);
    const event = (one, name) => new Promise((then) => {{
      for (const kind of ["open", "load", "error"])
        one.addEventListener(kind, () => then(tell(`${{name}}: ${{kind}}`)));
    }});
    (async () => {{
      await fetch("{url}api/state").then(() => tell("read"), (e) => tell(`fetch: ${{e.name}}`));
      await event(new EventSource("{url}api/events"), "events");
      const blind = await fetch("{subject}", {{mode: "no-cors"}});
      tell(blind.type);
      const image = new Image();
      const loaded = event(image, "img");
      image.src = "{subject}";
      await loaded;
      document.title = "done";
    }})();
    """

    async def page(_request):
        return web.Response(text=f"<script>{script}</script>", content_type="text/html")

    app = web.Application()
    app.add_routes([web.get("/", page)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()
