"""Requests and bytes that `troth status --watch` needs of an RPC node, on a run of slow rounds.

Owns: one observer behind counting proxies, beside participants that ask the chain directly.
Never: times anything. Next: `rpc_traffic.py` for participants; `troth_cli/observe/observer.py`.

python scripts/bench/watch_traffic.py [--members N] [--rounds N] [--seconds S] [--no-websocket]
"""

import argparse
import asyncio
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from rpc_traffic import Line, Rounds, SlowParticipant, TrafficOptions, ending, take_part

from troth_cli.connection import connect
from troth_cli.demo.participant import PRELOAD
from troth_cli.demo.setup import create_run, participant_processes, start_chain
from troth_cli.observe.observer import Observer, ObserverSettings
from troth_client.telemetry.events import EventList
from troth_coordinator.chain.client import CoordinatorClient, SendPolicy
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions
from troth_localnet.fleet import Fleet, preload


async def measure(options: TrafficOptions, num_rounds: int, seconds: float) -> str:
    """Start a run, observe it for so many rounds, and return a table per minute."""
    preload(PRELOAD)
    embedded = EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=options.slot_milliseconds))
    async with AsyncExitStack() as stack:
        chain = stack.enter_context(embedded)
        start_chain(chain, EventList())
        rpc = await stack.enter_async_context(HttpRpc(chain.rpc_url))
        policy = SendPolicy(poll_seconds=options.slot_milliseconds / 2_000)
        client = CoordinatorClient(rpc, policy=policy)
        created = await create_run(options, client, EventList())
        line = await Line.open(stack, chain, has_websocket=options.has_websocket)
        processes = participant_processes(options, created, chain.rpc_url)
        fleet = Fleet(take_part, [SlowParticipant(process, seconds) for process in processes])
        with ending(fleet):
            reached = Rounds(client, created)
            first = await reached.wait(lambda run: run > 0)
            looking = await stack.enter_async_context(connect(line.http.url, None))
            settings = ObserverSettings(rpc_urls=(line.http.url,))
            async with Observer(looking, created.run, settings) as observer:
                await observer.settle(seconds)
                begun = counts(line)
                line.forget()
                start = time.monotonic()
                last = await reached.wait(lambda run: run >= first + num_rounds)
                minutes = (time.monotonic() - start) / 60
                seen = observer.latest()
            known = sum(one.mean_loss_micro is not None for one in seen.rounds)
            return "\n".join(
                [
                    f"{options.num_trainers} members, {last - first} rounds in {minutes:.1f} min,"
                    f" {known} of {len(seen.rounds)} rounds with a loss",
                    "to begin: " + begun,
                    *per_minute(line, minutes),
                ]
            )


def counts(line: Line) -> str:
    """Return requests and bytes so far."""
    requests, num_bytes = line.counts()
    return f"{requests.total()} requests, {num_bytes.total():,} B"


def per_minute(line: Line, minutes: float) -> list[str]:
    """Return a row for each method, and the sums."""
    requests, num_bytes = line.counts()
    rows = [
        f"  {name:22} {requests[name] / minutes:7.1f} {num_bytes[name] / minutes:12,.0f} B"
        for name, _ in num_bytes.most_common()
    ]
    total, size = requests.total() / minutes, num_bytes.total() / minutes
    return [*rows, f"  a minute: {total:.1f} requests, {size:,.0f} B"]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=12.0, help="of one gradient")
    parser.add_argument("--audited-ppm", type=int, default=100_000, help="share of payloads")
    parser.add_argument("--no-websocket", action="store_true", help="nodes without pushes")
    parser.add_argument("--slot-ms", type=int, default=400)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="troth-traffic-") as scratch:
        options = TrafficOptions(
            folder=Path(scratch) / "run",
            num_trainers=arguments.members,
            slot_milliseconds=arguments.slot_ms,
            audited_ppm=arguments.audited_ppm,
            has_websocket=not arguments.no_websocket,
            seed=1,
        )
        print(asyncio.run(measure(options, arguments.rounds, arguments.seconds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
