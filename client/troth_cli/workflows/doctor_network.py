"""The doctor's questions to RPC nodes and to the holders of a run's weights.

Owns: latency, lag, rate limits, versions, slots, balances, bandwidth.
Never: loads PyTorch or sends a transaction. Next: `doctor.py`.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final

from solders.pubkey import Pubkey

from troth_attestation.committed import newest_state
from troth_cli.view.amounts import sol
from troth_cli.workflows.approach import endpoints
from troth_cli.workflows.checkpoint_fetch import Members, fetch_piece_list
from troth_cli.workflows.checks import CheckResult, Level, Registry, untested
from troth_cli.workflows.hub_checks import check_hubs
from troth_cli.workflows.join_checks import FEE_RESERVE_LAMPORTS
from troth_cli.workflows.probes import (
    STATED_SLOT_MICROS,
    WEIGHTS_SECONDS,
    measure_holder,
)
from troth_cli.workflows.prospects import Tempo, prospects
from troth_cli.workflows.reach_checks import ask_holders, reach_result
from troth_client.model.shapes import trainable_shapes
from troth_client.transport.errors import TransportError
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.clusters import public_name
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.earnings import rounds_paid_for
from troth_coordinator.rules.membership import index_of_owner
from troth_coordinator.rules.view import NetworkView, Role

NUM_TRIES: Final = 5
BURST: Final = 10
"""Requests at once: about what a participant asks in ten seconds."""
SLOW_SECONDS: Final = 1.0
LAG_SECONDS: Final = 30.0
LAG_SLOTS: Final = 20
OWN_TIME_SECONDS: Final = 86_400
"""A chain whose clock is a day off keeps its own time: a local network."""
FEW_ROUNDS: Final = 20
MOST_HOLDERS: Final = 8
SLOW_BYTES_PER_SECOND: Final = 256 * 1024
CLOCK_ADDRESS: Final = Pubkey.from_string("SysvarC1ock11111111111111111111111111111111")
_CLOCK_TIME: Final = slice(32, 40)


@dataclass(frozen=True, slots=True)
class Question:
    """The things that the user named; None where nothing was."""

    rpc_urls: tuple[str, ...]
    run: Pubkey | None
    config: RunConfig | None
    key: Path | None
    state: Path
    device: str
    hubs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """The RPC nodes, the first of which is asked by others checks; `wall` is the time of day."""

    nodes: tuple[HttpRpc, ...]
    tempo: Tempo | None
    wall: Callable[[], float] = time.time

    @property
    def client(self) -> CoordinatorClient:
        """A client at the first node."""
        return CoordinatorClient(self.nodes[0])


@dataclass(frozen=True, slots=True)
class Membership:
    """An owner and a run, as one node shows it; `config` is None where no file was given."""

    client: CoordinatorClient
    view: NetworkView
    tempo: Tempo
    config: RunConfig | None
    owner: Pubkey | None
    named_hubs: tuple[str, ...] = ()

    @property
    def hubs(self) -> tuple[str, ...]:
        """The hubs of the config, and those that the user named."""
        known = () if self.config is None else self.config.network.hubs
        return tuple(dict.fromkeys((*known, *self.named_hubs)))

    @property
    def index(self) -> int | None:
        """The place of the owner in the run, or None."""
        return None if self.owner is None else index_of_owner(self.view.entries, bytes(self.owner))

    @property
    def role(self) -> Role:
        """The role of the owner in the run; a newcomer's is both."""
        at = self.index
        return Role.TRAINER | Role.WITNESS if at is None else self.view.entries[at].roles


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


async def check_run_config(member: Membership) -> CheckResult:
    """Compare the config with the run."""
    if member.config is None:
        return untested("no config: name the run's file")
    if not member.config.data.manifest_hash:
        return untested("the config names no data set")
    found, wanted = member.config.config_hash(), member.view.run.config_hash
    if found == wanted:
        return CheckResult(Level.OK, f"config hash {found.hex()[:16]}")
    advice = "Use the file that the run's creator published."
    return CheckResult(Level.PROBLEM, f"config hash {found.hex()}", wanted.hex(), advice)


async def check_rounds_paid(member: Membership) -> CheckResult:
    """Say for how many rounds the paying key has fees; a newcomer's is the owner."""
    if member.owner is None:
        return untested("no key")
    at = member.index
    balance_of = member.owner if at is None else Pubkey(member.view.entries[at].session)
    balance = await member.client.balance(balance_of)
    if at is None:
        needed = member.view.run.params.min_stake_lamports + FEE_RESERVE_LAMPORTS
        is_enough = balance >= needed
        advice = "" if is_enough else f"Send SOL to {balance_of}."
        level = Level.OK if is_enough else Level.PROBLEM
        return CheckResult(level, sol(balance), f"{sol(needed)} to join, and fees", advice)
    each = prospects(member.view, member.role, member.tempo, is_member=True)
    rounds = rounds_paid_for(balance, each)
    found = f"{sol(balance)} on the session key: {rounds} rounds of fees"
    level = Level.OK if rounds >= FEW_ROUNDS else Level.WARNING
    advice = "" if level is Level.OK else "`troth join` refills it: keep SOL on the owner's key."
    return CheckResult(level, found, f"{FEW_ROUNDS} rounds", advice, values={"rounds": rounds})


async def check_holders(member: Membership) -> CheckResult:
    """Fetch one piece of the newest checkpoint from each of some holders."""
    wanted = newest_state(member.view.run)
    if member.config is None:
        return untested("no config: the shapes of the weights are unknown")
    if wanted.round == 0:
        return untested("the weights are genesis: nobody needs to send them")
    others = member.config.network.holders
    run = Pubkey(member.view.run.address)
    members = Members(member.client, run, WEIGHTS_SECONDS, others)
    pieces = await fetch_piece_list(members, wanted, trainable_shapes(member.config.model))
    holders = (await endpoints(member.client, member.view))[:MOST_HOLDERS]
    tried = await asyncio.gather(
        *(measure_holder(members, one, pieces) for one in holders), return_exceptions=True
    )
    rates = [one for one in tried if isinstance(one, float)]
    silent = sum(isinstance(one, TransportError) for one in tried)
    if not rates:
        return CheckResult(
            Level.PROBLEM,
            f"none of {len(holders)} holders sends a piece",
            "one",
            "Try again later.",
        )
    found = f"{len(rates)} of {len(holders)} holders, {min(rates) / 1e6:.2f} MB/s the slowest"
    values = {"holders": len(holders), "silent": silent, "bytes_per_second": max(rates)}
    is_fine = not silent and max(rates) >= SLOW_BYTES_PER_SECOND
    level = Level.OK if is_fine else Level.WARNING
    advice = "" if is_fine else "A slow or silent holder is passed over; more of them help."
    return CheckResult(level, found, "", advice, values=values)


async def check_reach(member: Membership) -> CheckResult:
    """Say whether members and hubs connect to this machine; one that is not reached still works."""
    holders = (*member.hubs, *await endpoints(member.client, member.view))
    is_guarded = public_name(await member.client.rpc.genesis_hash()) is not None
    found = reach_result(await ask_holders(holders, is_guarded=is_guarded))
    return replace(found, level=Level.WARNING) if found.level is Level.REFUSED else found


LINK_CHECKS: Final[Registry[Link]] = (
    ("rpc lag", check_lag),
    ("rpc rate", check_rate),
    ("rpc version", check_version),
    ("slots", check_slots),
    ("program", check_program),
)
RUN_CHECKS: Final[Registry[Membership]] = (
    ("config", check_run_config),
    ("fees", check_rounds_paid),
    ("holders", check_holders),
    ("hubs", check_hubs),
    ("reach", check_reach),
)
