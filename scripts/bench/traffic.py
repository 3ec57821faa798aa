"""Requests and bytes of a participant to its RPC node, to hubs and to other members.

Owns: a run of six as processes, of whom some accept no connection, and the proxies on each way.
`--json` writes the numbers.
Never: times anything. Next: `rpc_traffic.py`, which has the parts and counts RPC by method.

python scripts/bench/traffic.py [--listening N] [--no-hub] [--rounds N] [--seconds S]
"""

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rpc_traffic import Line, Rounds, SlowParticipant, TrafficOptions, ending, take_part
from soak import free_ports

from troth_cli.demo.participant import PRELOAD
from troth_cli.demo.setup import DemoRun, create_run, participant_processes, start_chain
from troth_client.hub.process import HubSettings, serve_hub
from troth_client.participant.settings import ParticipantSettings
from troth_client.telemetry.events import EventList
from troth_coordinator.chain.client import CoordinatorClient, SendPolicy
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions
from troth_localnet.fleet import Fleet, preload
from troth_simulation.faults.proxy import TcpProxy, Traffic

MEMBERS = 6
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Ways:
    """The proxies of one member: to its RPC node, to the hub, and in front of its endpoint."""

    rpc: Line
    hub: TcpProxy | None
    endpoint: TcpProxy | None

    @classmethod
    async def open(
        cls,
        stack: AsyncExitStack,
        chain: EmbeddedLauncher,
        hub: tuple[str, int] | None,
        *,
        accepts: bool,
    ) -> "Ways":
        """Start the proxies; one that accepts no connection has none in front of it."""
        rpc = await Line.open(stack, chain)
        to_hub = to_us = None
        if hub is not None:
            to_hub = await stack.enter_async_context(TcpProxy(hub))
        if accepts:
            listens = LOOPBACK, next(free_ports())
            to_us = await stack.enter_async_context(TcpProxy(listens))
        return cls(rpc, to_hub, to_us)

    def settings(self, direct: ParticipantSettings) -> ParticipantSettings:
        """Return the settings of a member that goes these ways."""
        ours = self.endpoint
        return replace(
            direct,
            rpc_urls=(self.rpc.http.url,),
            poll_seconds=2 * direct.poll_seconds,
            host=LOOPBACK if ours else "",
            port=ours.upstream[1] if ours else 0,
            endpoint=ours.url if ours else "",
            hubs=(self.hub.url,) if self.hub else (),
        )

    def forget(self) -> None:
        """Count from now on."""
        self.rpc.forget()
        for one in (self.hub, self.endpoint):
            if one is not None:
                one.traffic = Traffic()


@dataclass(frozen=True, slots=True)
class Way:
    """Averages of one way, for one member and round; sent and received as its caller sees it."""

    name: str
    requests: float
    sent_bytes: float
    received_bytes: float

    def row(self) -> str:
        """Return one line of the table."""
        sent, received = round(self.sent_bytes), round(self.received_bytes)
        return f"| {self.name} | {self.requests:.1f} | {sent:,} | {received:,} |"


async def measure(
    options: TrafficOptions, num_listening: int, num_rounds: int, seconds: float, *, has_hub: bool
) -> list[Way]:
    """Start everything, skip the first round, count so many rounds, end everything."""
    preload(PRELOAD)
    embedded = EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=options.slot_milliseconds))
    async with AsyncExitStack() as stack:
        chain = stack.enter_context(embedded)
        start_chain(chain, EventList())
        rpc = await stack.enter_async_context(HttpRpc(chain.rpc_url))
        client = CoordinatorClient(
            rpc, policy=SendPolicy(poll_seconds=options.slot_milliseconds / 2_000)
        )
        created = await create_run(options, client, EventList())
        hub = (LOOPBACK, next(free_ports())) if has_hub else None
        if hub is not None:
            serving = _hub(client, created, options.folder / "hub", hub)
            await stack.enter_async_context(serving)
        processes = participant_processes(options, created, "http://unused")
        ways = [
            await Ways.open(stack, chain, hub, accepts=number < num_listening)
            for number in range(len(processes))
        ]
        members = [
            SlowParticipant(replace(process, settings=way.settings(process.settings)), seconds)
            for process, way in zip(processes, ways, strict=True)
        ]
        with ending(Fleet(take_part, members)):
            reached = Rounds(client, created)
            first = await reached.wait(lambda run: run > 0)
            for one in ways:
                one.forget()
            begun = time.monotonic()
            last = await reached.wait(lambda run: run >= first + num_rounds)
            took = (time.monotonic() - begun) / (last - first)
            print(f"{last - first} rounds of {took:.1f} s", flush=True)
            return _averages(ways, num_listening, last - first)


@contextlib.asynccontextmanager
async def _hub(
    client: CoordinatorClient, created: DemoRun, folder: Path, at: tuple[str, int]
) -> AsyncIterator[None]:
    """Serve as `troth hub` does inside the block."""
    settings = HubSettings(
        run=created.run,
        folder=folder,
        host=at[0],
        port=at[1],
        max_bytes=10**9,
        quota_bytes=10**9,
        keep_rounds=32,
    )
    serving = asyncio.create_task(serve_hub(settings, client, EventList()))
    try:
        yield
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def _averages(ways: Sequence[Ways], num_listening: int, num_rounds: int) -> list[Way]:
    groups = {"accept": ways[:num_listening], "accept nothing": ways[num_listening:]}
    found: list[Way] = []
    for name, members in groups.items():
        if not members:
            continue
        each = len(members) * num_rounds
        rpc = [one.traffic for way in members for one in (way.rpc.http, way.rpc.pushes)]
        found.append(_way(f"RPC node, of those that {name}", rpc, each))
        hub = [way.hub.traffic for way in members if way.hub is not None]
        if hub:
            found.append(_way(f"hub, of those that {name}", hub, each))
    # A proxy in front of an endpoint does not know which member calls.
    peers = [way.endpoint.traffic for way in ways if way.endpoint is not None]
    found.append(_way("members, of all", peers, len(ways) * num_rounds))
    return found


def _way(name: str, lines: Iterable[Traffic], each: int) -> Way:
    counted = list(lines)
    return Way(
        name,
        sum(one.requests.total() for one in counted) / each,
        sum(one.bytes_up.total() for one in counted) / each,
        sum(one.bytes_down.total() for one in counted) / each,
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--listening", type=int, default=3, help="members that accept connections")
    parser.add_argument("--no-hub", action="store_true")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=8.0, help="of one gradient")
    parser.add_argument("--audited-ppm", type=int, default=500_000, help="share of payloads")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="troth-traffic-") as scratch:
        options = TrafficOptions(
            folder=Path(scratch) / "run",
            num_trainers=MEMBERS,
            slot_milliseconds=400,
            audited_ppm=arguments.audited_ppm,
            seed=1,
        )
        found = asyncio.run(
            measure(
                options,
                arguments.listening,
                arguments.rounds,
                arguments.seconds,
                has_hub=not arguments.no_hub,
            )
        )
    print("\n".join(one.row() for one in found))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
