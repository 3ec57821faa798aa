"""Faults on real processes: `python scripts/bench/soak.py [--minutes M] [--kinds KIND,…]`.

Owns: the chain, the run, the proxies and the processes of one soak; its report, as text on stdout
and as JSON with --json. The exit code is 1 if a promise of the report is broken.
Never: plays a fault. Next: `localnet/troth_simulation/faults/soak.py`, which does.

Kinds: those of `troth_simulation.faults.trouble.Kind`, or `kills`, `rpc`, `peers`, `mixed`.
"""

import argparse
import asyncio
import random
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from troth_cli.demo.options import DemoOptions
from troth_cli.demo.participant import PRELOAD, ParticipantProcess, run_participant
from troth_cli.demo.setup import DemoRun, create_run, participant_processes, start_chain
from troth_client.telemetry.events import EventList
from troth_coordinator.chain.client import CoordinatorClient, SendPolicy
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.rules.settings import RunSettings
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions
from troth_localnet.fleet import Fleet, preload
from troth_simulation.cheats.catalogue import NOBODY
from troth_simulation.faults.ground import Ground, Lines, Station
from troth_simulation.faults.namespaces import Housed, Namespaces, run_housed
from troth_simulation.faults.report import Report
from troth_simulation.faults.schedule import Fault, Weather, schedule
from troth_simulation.faults.soak import Soak
from troth_simulation.faults.trouble import PEER_TROUBLES, RPC_TROUBLES, Kind

AnyFleet = Fleet[ParticipantProcess] | Fleet[Housed[ParticipantProcess]]

CONFIG = Path(__file__).parents[2] / "configs" / "smoke.toml"
GROUPS = {
    "kills": (Kind.KILL,),
    "rpc": tuple(RPC_TROUBLES),
    "peers": tuple(PEER_TROUBLES),
    "mixed": tuple(Kind),
}
# One payload in two is audited, also of members that are not new: each epoch has audits.
CHAIN = {
    "p_new_ppm": 500_000,
    "p_base_ppm": 500_000,
    "rounds_per_epoch": 10,
    "checkpoint_every": 10,
    "ring": 64,
}
MAX_ROUNDS = 2_400
"""More than an hour at public slot time has; the faucet pays for so many."""
MIN_CAPACITY = 8
FIRST_PORT = 10_000
"""Below the ports that the system gives to callers, so that nobody takes one between two lives."""


@dataclass(frozen=True, slots=True)
class SoakOptions(DemoOptions):
    """Honest trainers of the smallest model, in a run that goes on while one or two are away."""

    config: Path = CONFIG
    cheat: str = NOBODY
    num_witnesses: int = 0
    num_rounds: int = MAX_ROUNDS
    megabits: float = 0.0
    """Rate of each member's cable, in a network namespace of its own; 0: loopback, no bound."""

    def settings(self) -> RunSettings:
        """Return the run's settings: the config's with `CHAIN` on top."""
        found = DemoOptions.settings(self)
        capacity = max(MIN_CAPACITY, self.num_trainers)
        changes = CHAIN | {
            "min_members": max(2, self.num_trainers - 2),
            "capacity": capacity,
            "max_witness_only": capacity // 4,
            "audit_cap": -(-capacity // 2),
        }
        chain = type(found.chain).model_validate(found.chain.model_dump() | changes)
        return found.model_copy(update={"chain": chain})


async def soak(options: SoakOptions, faults: Sequence[Fault], num_slots: int) -> Report:
    """Start everything, play the faults for so many slots, end everything, return the report."""
    options.folder.mkdir(parents=True, exist_ok=True)
    preload(PRELOAD)
    seconds = options.slot_milliseconds / 1_000
    embedded = EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=options.slot_milliseconds))
    async with AsyncExitStack() as stack:
        chain = stack.enter_context(embedded)
        start_chain(chain, EventList())
        rpc = await stack.enter_async_context(HttpRpc(chain.rpc_url))
        client = CoordinatorClient(rpc, policy=SendPolicy(poll_seconds=seconds / 2))
        created = await create_run(options, client, EventList())
        network = _network(stack, options)
        processes, stations = await _lined_up(stack, options, created, chain.rpc_url, network)
        with _ending(_fleet(processes, network)) as fleet:
            ground = Ground(
                client, created.run, fleet, stations, chain.pid, seconds, options.seed or 0
            )
            return await Soak(ground, faults, num_slots).play()


def _network(stack: AsyncExitStack, options: SoakOptions) -> Namespaces | None:
    if not options.megabits:
        return None
    rate = round(options.megabits * 10**6)
    return stack.enter_context(Namespaces(len(options.plans), rate))


def _fleet(processes: list[ParticipantProcess], network: Namespaces | None) -> AnyFleet:
    """Return a fleet of the processes, each in its namespace if there is a network."""
    if network is None:
        return Fleet(run_participant, processes)
    housed = [
        Housed(network.name(number), run_participant, process)
        for number, process in enumerate(processes)
    ]
    return Fleet(run_housed, housed)


async def _lined_up(
    stack: AsyncExitStack,
    options: SoakOptions,
    created: DemoRun,
    rpc_url: str,
    network: Namespaces | None,
) -> tuple[list[ParticipantProcess], list[Station]]:
    """Return processes that reach the node and each other through proxies, and their stations."""
    processes, stations = [], []
    ports = free_ports()
    outside = "127.0.0.1" if network is None else network.host
    direct = participant_processes(options, created, rpc_url)
    for number, (process, one) in enumerate(zip(direct, created.participants, strict=True)):
        listens = "127.0.0.1" if network is None else network.address(number)
        port = next(ports)
        lines = await Lines.open(stack, rpc_url, (listens, port), host=outside, seed=number)
        settings = replace(
            process.settings,
            rpc_urls=(lines.to_rpc.url,),
            host=listens,
            port=port,
            endpoint=lines.to_us.url,
            poll_seconds=options.slot_milliseconds / 1_000,
        )
        processes.append(replace(process, settings=settings))
        stations.append(Station(process.name, one.owner.pubkey(), process.folder, lines))
    return processes, stations


@contextmanager
def _ending(fleet: AnyFleet) -> Iterator[AnyFleet]:
    """Start the fleet; kill it at the end: the soak is over, and nobody waits for a round."""
    fleet.start()
    try:
        yield fleet
    finally:
        for index, code in enumerate(fleet.exit_codes()):
            if code is None:
                fleet.kill(index)


def free_ports() -> Iterator[int]:
    """Yield ports of loopback that are free now."""
    first_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    draw = random.SystemRandom()
    while True:
        port = draw.randrange(FIRST_PORT, first_given)
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)):
                yield port


def kinds_of(text: str) -> tuple[Kind, ...]:
    """Return the kinds that a list of kinds and groups names; ValueError for others."""
    found: list[Kind] = []
    for name in text.split(","):
        found += GROUPS.get(name, ()) or (Kind(name),)
    return tuple(dict.fromkeys(found))


def main() -> int:
    """Play one soak and print its report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--slot-ms", type=int, default=400)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--kinds", type=kinds_of, default=GROUPS["mixed"])
    parser.add_argument("--period", type=float, default=15.0, help="seconds between two faults")
    parser.add_argument("--mbit", type=float, default=0.0, help="rate of each member's cable")
    parser.add_argument("--longest", type=float, default=10.0, help="seconds of the longest fault")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder for logs; without it they are removed")
    parser.add_argument("--json", type=Path, help="file for the report as JSON")
    arguments = parser.parse_args()
    num_slots = round(arguments.minutes * 60_000 / arguments.slot_ms)
    weather = Weather(
        kinds=arguments.kinds,
        members=range(arguments.members),
        num_slots=num_slots,
        period_slots=max(1, round(arguments.period * 1_000 / arguments.slot_ms)),
        seed=arguments.seed,
        lengths=(3, max(3, round(arguments.longest * 1_000 / arguments.slot_ms))),
    )
    with tempfile.TemporaryDirectory(prefix="troth-soak-") as scratch:
        options = SoakOptions(
            folder=arguments.out or Path(scratch) / "run",
            num_trainers=arguments.members,
            slot_milliseconds=arguments.slot_ms,
            seed=arguments.seed,
            megabits=arguments.mbit,
        )
        report = asyncio.run(soak(options, schedule(weather), num_slots))
    print(report.to_text())
    if arguments.json is not None:
        arguments.json.write_text(report.to_json())
    return 1 if report.broken() else 0


class _Raw(argparse.RawDescriptionHelpFormatter):
    pass


if __name__ == "__main__":
    sys.exit(main())
