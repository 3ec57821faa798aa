"""The doctor's questions to RPC nodes.

Owns: latency, lag, rate limits, versions, slots, the program, a balance.
Never: sends a transaction. Next: `doctor_run.py` for a run and its holders; `doctor.py`.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Final

from solders.pubkey import Pubkey

from troth_cli.slot_time import STATED_SLOT_MICROS
from troth_cli.view.amounts import sol
from troth_cli.workflows.checks import CheckResult, Level, Registry, untested
from troth_cli.workflows.prospects import Tempo
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.http_rpc import HttpRpc

NUM_TRIES: Final = 5
BURST: Final = 10
"""Requests at once: about what a participant asks in ten seconds."""
SLOW_SECONDS: Final = 1.0
LAG_SECONDS: Final = 30.0
LAG_SLOTS: Final = 20
OWN_TIME_SECONDS: Final = 86_400
"""A chain whose clock is a day off keeps its own time: a local network."""
CLOCK_ADDRESS: Final = Pubkey.from_string("SysvarC1ock11111111111111111111111111111111")
_CLOCK_TIME: Final = slice(32, 40)


@dataclass(frozen=True, slots=True)
class Link:
    """The RPC nodes, of which most checks ask the first; `wall` is the time of day.

    `program` is the address of the program, None for the packaged one's.
    """

    nodes: tuple[HttpRpc, ...]
    tempo: Tempo | None
    wall: Callable[[], float] = time.time
    program: Pubkey | None = None

    @property
    def client(self) -> CoordinatorClient:
        """A client at the first node."""
        return CoordinatorClient(self.nodes[0], self.program)


async def check_latency(link: Link) -> CheckResult:
    """Time a small request some times at every node."""
    seconds = []
    for node in link.nodes:
        times = []
        for _try in range(NUM_TRIES):
            began = time.perf_counter()
            await node.get_slot()
            times.append(time.perf_counter() - began)
        seconds.append(median(times))
    slowest = max(seconds)
    found = ", ".join(f"{one * 1e3:.0f} ms" for one in seconds)
    values = {"seconds": slowest}
    if slowest <= SLOW_SECONDS:
        return CheckResult(Level.OK, found, f"{SLOW_SECONDS:g} s", values=values)
    advice = "Choose a node nearby: commits and verdicts wait for it."
    return CheckResult(Level.WARNING, found, f"at most {SLOW_SECONDS:g} s", advice, values=values)


async def check_lag(link: Link) -> CheckResult:
    """Compare the nodes with each other; a single one with the clock of this machine."""
    if len(link.nodes) > 1:
        slots = await asyncio.gather(*(node.get_slot() for node in link.nodes))
        behind = max(slots) - min(slots)
        return _lag(f"{behind} slots apart", f"at most {LAG_SLOTS}", behind <= LAG_SLOTS)
    _slot, (account,) = await link.nodes[0].get_accounts([CLOCK_ADDRESS])
    if account is None:
        return untested("the chain has no clock")
    behind_seconds = link.wall() - int.from_bytes(account.data[_CLOCK_TIME], "little", signed=True)
    if abs(behind_seconds) > OWN_TIME_SECONDS:
        return untested("the chain keeps its own time, like a local network")
    needed = f"at most {LAG_SECONDS:g} s"
    found = f"{behind_seconds:.0f} s behind the clock of this machine"
    return _lag(found, needed, abs(behind_seconds) <= LAG_SECONDS)


def _lag(found: str, needed: str, is_fine: bool) -> CheckResult:
    advice = "" if is_fine else "Choose another node, and set the clock of this machine by NTP."
    return CheckResult(Level.OK if is_fine else Level.WARNING, found, needed, advice)


async def check_rate(link: Link) -> CheckResult:
    """Send some small requests at once and count the refusals."""
    asked = [node.get_slot() for node in link.nodes for _try in range(BURST)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    refused = [one for one in answers if isinstance(one, BaseException)]
    found = f"{len(answers) - len(refused)} of {len(answers)} requests at once answered"
    if not refused:
        return CheckResult(Level.OK, found)
    advice = f"A node with a higher limit, or a second --rpc ({refused[0]})."
    return CheckResult(Level.WARNING, found, "all", advice)


async def check_version(link: Link) -> CheckResult:
    """Name the software of every node."""
    return CheckResult(Level.OK, ", ".join([await node.version() for node in link.nodes]))


async def check_slots(link: Link) -> CheckResult:
    """Compare the measured length of a slot with the stated one."""
    tempo = link.tempo
    if tempo is None or not tempo.slot.is_measured:
        return CheckResult(
            Level.PROBLEM, "no new slot in some seconds", "slots that go on", "Choose another node."
        )
    values = {"slot_seconds": tempo.slot.seconds(1)}
    found, needed = f"{tempo.slot.micros / 1e3:.0f} ms a slot", f"{STATED_SLOT_MICROS / 1e3:.0f} ms"
    if 2 * tempo.slot.micros >= STATED_SLOT_MICROS and tempo.slot.micros <= 2 * STATED_SLOT_MICROS:
        return CheckResult(Level.OK, found, needed, values=values)
    advice = "Windows in slots are shorter or longer here than on a public network."
    return CheckResult(Level.WARNING, found, needed, advice, values=values)


async def check_program(link: Link) -> CheckResult:
    """Check that the program is there."""
    await link.client.check_program()
    return CheckResult(Level.OK, str(link.client.program_id))


async def check_owner_balance(client: CoordinatorClient, owner: Pubkey) -> CheckResult:
    """Tell whether the owner can pay for anything."""
    balance = await client.balance(owner)
    values = {"lamports": balance}
    if balance > 0:
        return CheckResult(Level.OK, sol(balance), values=values)
    advice = f"Send SOL to {owner} (on a local network: troth localnet airdrop {owner} 1)."
    return CheckResult(Level.PROBLEM, sol(0), "stake, rent and fees", advice, values=values)


LINK_CHECKS: Final[Registry[Link]] = (
    ("rpc lag", check_lag),
    ("rpc rate", check_rate),
    ("rpc version", check_version),
    ("slots", check_slots),
    ("program", check_program),
)
