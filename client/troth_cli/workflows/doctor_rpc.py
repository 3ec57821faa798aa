"""The doctor's questions to RPC nodes.

Owns: latency, lag, rate limits, versions, slots, the program, a balance. Each node is asked by
itself; one that has no answer is named and hides nothing of the others.
Never: sends a transaction. Next: `doctor_run.py` for a run and its holders; `doctor.py`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Final, Generic, TypeVar

from solders.pubkey import Pubkey

from troth_cli.slot_time import STATED_SLOT_MICROS
from troth_cli.view.amounts import sol
from troth_cli.workflows.checks import CheckResult, Level, Registry, refusal, untested
from troth_cli.workflows.prospects import Tempo
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import ChainError
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
_PASSED_OVER: Final = "Name another node in its place: `troth join` goes on with the rest."

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Asked(Generic[Answer]):
    """One question to every node: the answers, and the errors of the nodes that have none."""

    answers: dict[HttpRpc, Answer]
    errors: dict[HttpRpc, ChainError]

    def result(self, judge: Callable[[Sequence[Answer]], CheckResult]) -> CheckResult:
        """Judge the answers and name the nodes without one; a refusal where there is no answer."""
        silent = [f"{node.name}: {error.found}" for node, error in self.errors.items()]
        if not self.answers:
            first = next(iter(self.errors.values()))
            return replace(refusal(first), found="; ".join(silent))
        found = judge(list(self.answers.values()))
        if not silent:
            return found
        text = "; ".join((found.found, *silent))
        advice = found.advice or _PASSED_OVER
        return replace(found, level=Level.WARNING, found=text, advice=advice)


@dataclass(frozen=True, slots=True)
class Link:
    """The RPC nodes that answer, and a client over all of them; `wall` is the time of day."""

    nodes: Sequence[HttpRpc]
    client: CoordinatorClient
    tempo: Tempo | None
    wall: Callable[[], float] = time.time


async def ask_each(
    nodes: Sequence[HttpRpc], ask: Callable[[HttpRpc], Awaitable[Answer]]
) -> Asked[Answer]:
    """Ask all nodes at once; the answers are in the order of the nodes."""

    async def ask_one(node: HttpRpc) -> Answer | ChainError:
        try:
            return await ask(node)
        except ChainError as error:
            return error

    asked: Asked[Answer] = Asked({}, {})
    for node, found in zip(nodes, await asyncio.gather(*map(ask_one, nodes)), strict=True):
        if isinstance(found, ChainError):
            asked.errors[node] = found
        else:
            asked.answers[node] = found
    return asked


async def latency(node: HttpRpc) -> float:
    """Time a small request some times; return the seconds of the middle one."""
    times = []
    for _try in range(NUM_TRIES):
        began = time.perf_counter()
        await node.get_slot()
        times.append(time.perf_counter() - began)
    return median(times)


def latency_result(seconds: Sequence[float]) -> CheckResult:
    """Tell whether every node is near enough."""
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
        asked = await ask_each(link.nodes, HttpRpc.get_slot)
        return asked.result(partial(_apart, [node.name for node in asked.answers]))
    _slot, (account,) = await link.nodes[0].get_accounts([CLOCK_ADDRESS])
    if account is None:
        return untested("the chain has no clock")
    behind_seconds = link.wall() - int.from_bytes(account.data[_CLOCK_TIME], "little", signed=True)
    if abs(behind_seconds) > OWN_TIME_SECONDS:
        return untested("the chain keeps its own time, like a local network")
    needed = f"at most {LAG_SECONDS:g} s"
    found = f"{behind_seconds:.0f} s behind the clock of this machine"
    return _lag(found, needed, abs(behind_seconds) <= LAG_SECONDS)


def _apart(names: Sequence[str], slots: Sequence[int]) -> CheckResult:
    apart = max(slots) - min(slots)
    found, needed = f"{apart} slots apart", f"at most {LAG_SLOTS}"
    if apart <= LAG_SLOTS:
        return _lag(found, needed, is_fine=True)
    # Of two nodes nobody knows which one is wrong; of more, the one that is far from the others.
    each = ", ".join(f"{name} at {slot}" for name, slot in zip(names, slots, strict=True))
    return _lag(f"{found}: {each}", needed, is_fine=False)


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
    asked = await ask_each(link.nodes, HttpRpc.version)
    return asked.result(lambda versions: CheckResult(Level.OK, ", ".join(versions)))


async def check_slots(link: Link) -> CheckResult:
    """Compare the measured length of a slot with the stated one."""
    tempo = link.tempo
    if tempo is None or not tempo.slot.is_measured:
        advice = "Choose another node, or look at `rpc rate` if it limits requests."
        found = "nobody has seen slots go by in some seconds"
        return CheckResult(Level.PROBLEM, found, "slots that go on", advice)
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
    ("rpc version", check_version),
    ("rpc rate", check_rate),  # a node may limit what is asked of it directly afterwards
    ("slots", check_slots),
    ("program", check_program),
)
