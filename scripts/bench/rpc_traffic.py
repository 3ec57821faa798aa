"""Requests and bytes that a participant needs of its RPC node, on a run of slow rounds.

Owns: the chain, the run, one counting pair of proxies per participant, and the table: by method,
per participant and round, and per day. `--json` writes it as JSON.
Never: times anything. Next: `troth_simulation/faults/rpc_proxy.py`, which counts.

python scripts/bench/rpc_traffic.py [--members N] [--rounds N] [--seconds S] [--ledger]
"""

import argparse
import asyncio
import json
import os
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from troth_cli.demo.options import DemoOptions
from troth_cli.demo.participant import PRELOAD, ParticipantProcess
from troth_cli.demo.setup import DemoRun, create_run, participant_processes, start_chain
from troth_client.telemetry.event_log import EventLog
from troth_client.telemetry.events import EventList
from troth_coordinator.chain.client import CoordinatorClient, SendPolicy
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.chain.priority import DEFAULT_POLICY, PriorityPolicy
from troth_coordinator.ledger.file import LEDGER_FILE
from troth_coordinator.rules.settings import RunSettings
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions
from troth_localnet.fleet import Fleet, preload
from troth_simulation.cheats.catalogue import NOBODY
from troth_simulation.faults.proxy import TcpProxy, Traffic
from troth_simulation.faults.rpc_proxy import RpcProxy

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

    from troth_attestation.openings import Sampled
    from troth_client.participant.assembly import Ports
    from troth_client.state.residual_state import Proposal
    from troth_client.state.work import EncodedPayload, TrainerWork
    from troth_client.train.step import Gradient
    from troth_coordinator.rules.ids import Digest, RoundIndex

CONFIG = Path(__file__).parents[2] / "configs" / "smoke.toml"
SECONDS_PER_DAY = 86_400
CLOSED_PORT = 9
PURPOSES = {
    "getMultipleAccounts": "looks",
    "getSlot": "looks",
    "subscription": "looks",
    "getProgramAccounts": "audits",
    "getLatestBlockhash": "sends",
    "sendTransaction": "sends",
    "getSignatureStatuses": "sends",
    "getBlockHeight": "sends",
    "getTransaction": "ledger",
    "getSignaturesForAddress": "ledger",
    "getRecentPrioritizationFees": "sends",
}
"""The purpose of each method; rounds that audits read count as looks."""


@dataclass(frozen=True, slots=True)
class TrafficOptions(DemoOptions):
    """Honest trainers of the smallest model; phases as long as on a public cluster."""

    config: Path = CONFIG
    cheat: str = NOBODY
    num_witnesses: int = 0
    num_rounds: int = 1_000
    audited_ppm: int = 100_000
    """Payloads that are audited; on a public cluster this share, once nobody is new."""
    has_websocket: bool = True
    keeps_ledger: bool = False

    def settings(self) -> RunSettings:
        """Return the run's settings: the config's, with room for the members."""
        found = DemoOptions.settings(self)
        capacity = max(8, self.num_trainers)
        changes: dict[str, Any] = {
            "commit_slots": 150,
            "attest_slots": 125,
            "min_members": 2,
            "capacity": capacity,
            "max_witness_only": capacity // 4,
            "p_new_ppm": self.audited_ppm,
            "p_base_ppm": self.audited_ppm,
        }
        chain = type(found.chain).model_validate(found.chain.model_dump() | changes)
        return found.model_copy(update={"chain": chain})


@dataclass(frozen=True, slots=True)
class SlowParticipant:
    """A participant whose gradient takes so long that rounds have the wanted length."""

    process: ParticipantProcess
    seconds: float


@dataclass(slots=True)
class SlowWork:
    """Honest work; its gradient takes as long as that of a larger model."""

    honest: "TrainerWork"
    seconds: float

    def gradient(self, batch: "NDArray[int64]") -> "Gradient":
        """Pause, then compute."""
        time.sleep(self.seconds)
        return self.honest.gradient(batch)

    def propose(self, round_: "RoundIndex", found: "Gradient") -> "Proposal":
        """Propose as an honest trainer does."""
        return self.honest.propose(round_, found)

    def encode(self, proposal: "Proposal") -> "EncodedPayload":
        """Encode as an honest trainer does."""
        return self.honest.encode(proposal)

    def open_tiles(self, sampled: "Sampled") -> "Digest":
        """Open as an honest trainer does."""
        return self.honest.open_tiles(sampled)


def take_part(slow: SlowParticipant) -> None:
    """Take part until the run ends; events go to the participant's folder."""
    from troth_client.participant.process import participate  # noqa: PLC0415

    slow.process.folder.mkdir(parents=True, exist_ok=True)

    def wrap(ports: "Ports") -> "Ports":
        return replace(ports, trains=lambda honest: SlowWork(honest, slow.seconds))

    with EventLog.open(slow.process.events, peer=slow.process.name) as events:
        asyncio.run(participate(slow.process.settings, events, wrap))


@dataclass(frozen=True, slots=True)
class Line:
    """The way of one participant to the node: HTTP counted by method, the subscription in all."""

    answers: RpcProxy
    http: TcpProxy
    pushes: TcpProxy

    @classmethod
    async def open(
        cls, stack: AsyncExitStack, chain: EmbeddedLauncher, *, has_websocket: bool = True
    ) -> "Line":
        """Start the proxies on two neighbouring ports, as nodes have them."""
        answers = await stack.enter_async_context(RpcProxy(chain.rpc_url))
        above = int(chain.rpc_url.rsplit(":", 1)[1]) + 1 if has_websocket else CLOSED_PORT
        port = _free_pair()
        http = TcpProxy(("127.0.0.1", answers.port), port=port)
        pushes = TcpProxy(("127.0.0.1", above), port=port + 1)
        return cls(
            answers,
            await stack.enter_async_context(http),
            await stack.enter_async_context(pushes),
        )

    def forget(self) -> None:
        """Count from now on."""
        self.answers.traffic, self.http.traffic, self.pushes.traffic = (
            Traffic(),
            Traffic(),
            Traffic(),
        )

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Return requests and bytes by method; headers of HTTP are `headers`."""
        traffic = self.answers.traffic
        num_bytes = traffic.bytes_up + traffic.bytes_down
        num_bytes["headers"] = self.http.traffic.num_bytes - num_bytes.total()
        num_bytes["subscription"] = self.pushes.traffic.num_bytes
        return Counter(traffic.requests), num_bytes


@dataclass(frozen=True, slots=True)
class Measured:
    """Averages of one participant: requests and bytes of one round, by method."""

    members: int
    rounds: int
    seconds_per_round: float
    requests: dict[str, float]
    num_bytes: dict[str, float]
    cpu_seconds: float
    """Processor seconds of a round, with the gradient."""

    @property
    def requests_per_second(self) -> float:
        """Requests of one participant."""
        return sum(self.requests.values()) / self.seconds_per_round

    @property
    def gigabytes_per_day(self) -> float:
        """Bytes of one participant in both directions, HTTP headers included."""
        return sum(self.num_bytes.values()) / self.seconds_per_round * SECONDS_PER_DAY / 1e9

    def to_text(self) -> str:
        """Return a table and two lines of totals."""
        lines = [f"{self.members} members, {self.rounds} rounds of {self.seconds_per_round:.1f} s"]
        for name in sorted(self.num_bytes, key=lambda name: -self.num_bytes[name]):
            purpose = PURPOSES.get(name, "other")
            asked = self.requests.get(name, 0.0)
            lines.append(f"  {name:22} {purpose:7} {asked:7.1f} {self.num_bytes[name]:12,.0f} B")
        lines.append(f"  {self.requests_per_second:.2f} requests a second")
        lines.append(f"  {self.gigabytes_per_day:.3f} GB a day")
        lines.append(f"  {self.cpu_seconds:.3f} processor seconds a round")
        return "\n".join(lines)


async def measure(options: TrafficOptions, num_rounds: int, seconds: float) -> Measured:
    """Start everything, skip the first round, count so many rounds, end everything."""
    preload(PRELOAD)
    embedded = EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=options.slot_milliseconds))
    async with AsyncExitStack() as stack:
        chain = stack.enter_context(embedded)
        start_chain(chain, EventList())
        rpc = await stack.enter_async_context(HttpRpc(chain.rpc_url))
        policy = SendPolicy(poll_seconds=options.slot_milliseconds / 2_000)
        client = CoordinatorClient(rpc, policy=policy)
        created = await create_run(options, client, EventList())
        lines = [
            await Line.open(stack, chain, has_websocket=options.has_websocket)
            for _ in options.plans
        ]
        fleet = Fleet(take_part, _participants(options, created, lines, seconds))
        with ending(fleet):
            reached = Rounds(client, created)
            first = await reached.wait(lambda run: run > 0)
            for line in lines:
                line.forget()
            begun, worked = time.monotonic(), _cpu_seconds(fleet.pids)
            last = await reached.wait(lambda run: run >= first + num_rounds)
            took = time.monotonic() - begun
            worked = _cpu_seconds(fleet.pids) - worked
            return _averages(lines, last - first, took, worked)


def _participants(
    options: TrafficOptions, created: DemoRun, lines: Sequence[Line], seconds: float
) -> list[SlowParticipant]:
    processes = participant_processes(options, created, "http://unused")
    return [
        SlowParticipant(
            replace(
                process,
                settings=replace(
                    process.settings,
                    rpc_urls=(line.http.url,),
                    poll_seconds=0.4,
                    priority=PriorityPolicy.parse(DEFAULT_POLICY),
                    ledger=process.folder / LEDGER_FILE if options.keeps_ledger else None,
                ),
            ),
            seconds,
        )
        for process, line in zip(processes, lines, strict=True)
    ]


class Rounds:
    """The open round of the run, as the chain shows it."""

    def __init__(self, client: CoordinatorClient, created: DemoRun) -> None:
        self._client, self._run = client, created.run

    async def wait(self, holds: Callable[[int], bool]) -> int:
        """Wait until the condition holds for the number of the open round; return it."""
        while True:
            found = await self._client.read_run(self._run)
            if holds(found.round):
                return found.round
            await asyncio.sleep(0.2)


def _cpu_seconds(pids: Sequence[int]) -> float:
    """Return what these processes have used so far."""
    found = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids)
    return sum(int(one[11]) + int(one[12]) for one in found) / os.sysconf("SC_CLK_TCK")


def _averages(lines: Sequence[Line], num_rounds: int, took: float, worked: float) -> Measured:
    requests: Counter[str] = Counter()
    num_bytes: Counter[str] = Counter()
    for line in lines:
        asked, passed = line.counts()
        requests += asked
        num_bytes += passed
    each = len(lines) * num_rounds
    return Measured(
        len(lines),
        num_rounds,
        took / num_rounds,
        {name: count / each for name, count in requests.items()},
        {name: count / each for name, count in num_bytes.items()},
        worked / each,
    )


@contextmanager
def ending(fleet: Fleet[SlowParticipant]) -> Iterator[None]:
    """Start the fleet; kill it at the end: nobody waits for a round."""
    fleet.start()
    try:
        yield
    finally:
        for index, code in enumerate(fleet.exit_codes()):
            if code is None:
                fleet.kill(index)


def _free_pair() -> int:
    """Return a port of loopback that is free, like the next one."""
    while True:
        with socket.socket() as one, socket.socket() as two:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
            try:
                two.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=24.0, help="of one gradient")
    parser.add_argument("--audited-ppm", type=int, default=100_000, help="share of payloads")
    parser.add_argument("--no-websocket", action="store_true", help="nodes without pushes")
    parser.add_argument("--ledger", action="store_true", help="members keep a ledger")
    parser.add_argument("--slot-ms", type=int, default=400)
    parser.add_argument("--out", type=Path, help="folder for logs; without it they are removed")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="troth-traffic-") as scratch:
        options = TrafficOptions(
            folder=arguments.out or Path(scratch) / "run",
            num_trainers=arguments.members,
            slot_milliseconds=arguments.slot_ms,
            audited_ppm=arguments.audited_ppm,
            has_websocket=not arguments.no_websocket,
            keeps_ledger=arguments.ledger,
            seed=1,
        )
        found = asyncio.run(measure(options, arguments.rounds, arguments.seconds))
    print(found.to_text())
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(asdict(found), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
