"""The doctor's questions about one run: its config, the fees, the holders, whether they reach us.

Owns: the bandwidth of holders, and the rounds that a balance pays for.
Never: loads PyTorch or sends a transaction.
Next: `hub_checks.py` and `reach_checks.py` for two of the answers; `doctor.py`.
"""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from solders.pubkey import Pubkey

from troth_attestation.committed import newest_state
from troth_cli.view.amounts import sol
from troth_cli.workflows.checkpoint_fetch import fetch_piece_list
from troth_cli.workflows.checks import CheckResult, Level, Registry, untested
from troth_cli.workflows.hub_checks import hubs_result
from troth_cli.workflows.join_cost import join_lamports
from troth_cli.workflows.members import Members, endpoints
from troth_cli.workflows.probes import (
    SLOW_BYTES_PER_SECOND,
    WEIGHTS_SECONDS,
    measure_holder,
)
from troth_cli.workflows.prospects import Tempo, prospects
from troth_cli.workflows.reach_checks import ask_holders, reach_result
from troth_client.model.shapes import trainable_shapes
from troth_client.participant.settings import SESSION_LAMPORTS
from troth_client.transport.errors import TransportError
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.clusters import public_cluster
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.earnings import rounds_paid_for
from troth_coordinator.rules.membership import index_of_owner
from troth_coordinator.rules.view import NetworkView, Role

FEW_ROUNDS: Final = 20
MOST_HOLDERS: Final = 8
_TO_JOIN: Final = f"the least stake, the session key's {sol(SESSION_LAMPORTS)}, rent and fees"


@dataclass(frozen=True, slots=True)
class Question:
    """The things that the user named; None where nothing was."""

    rpc_urls: tuple[str, ...]
    program: Pubkey | None
    run: Pubkey | None
    config: RunConfig | None
    key: Path | None
    state: Path | None
    device: str
    precision: str = "auto"
    microbatch_sequences: int | None = None
    hubs: tuple[str, ...] = ()


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
        needed = join_lamports(member.view.run.params.min_stake_lamports, SESSION_LAMPORTS)
        is_enough = balance >= needed
        advice = "" if is_enough else f"Send SOL to {balance_of}."
        level = Level.OK if is_enough else Level.PROBLEM
        return CheckResult(level, sol(balance), f"{sol(needed)}: {_TO_JOIN}", advice)
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
    if wanted.round == 0 and not member.config.has_given_start:
        return untested("the weights are genesis: nobody needs to send them")
    run = Pubkey(member.view.run.address)
    members = Members(member.client, run, WEIGHTS_SECONDS)
    members.ask_also(member.config.network.relays)
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


async def check_hubs(member: Membership) -> CheckResult:
    """Say whether the hubs send a payload, and how fast."""
    return await hubs_result(member.client, member.view, member.hubs)


async def check_reach(member: Membership) -> CheckResult:
    """Say whether members and hubs connect to this machine; one that is not reached still works."""
    holders = (*member.hubs, *await endpoints(member.client, member.view))
    is_guarded = await public_cluster(member.client.rpc) is not None
    found = reach_result(await ask_holders(holders, is_guarded=is_guarded))
    return replace(found, level=Level.WARNING) if found.level is Level.REFUSED else found


RUN_CHECKS: Final[Registry[Membership]] = (
    ("config", check_run_config),
    ("fees", check_rounds_paid),
    ("holders", check_holders),
    ("hubs", check_hubs),
    ("reach", check_reach),
)
