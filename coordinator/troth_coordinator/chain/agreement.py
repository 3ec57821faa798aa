"""Facts that decide money or weights, compared between the RPC nodes that a user named.

Owns: which facts are compared, and the error that names both nodes and both values.
Never: decides which of two nodes is right, or holds up anybody for one that does not answer.
Next: failover.py, which has the nodes; client.py reads the facts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from types import MappingProxyType

from solders.pubkey import Pubkey

from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import AccountError, RpcDisagreementError, RpcError, Said
from troth_coordinator.chain.failover import FailoverRpc
from troth_coordinator.rules.membership import index_of_owner
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RoundFlag, RunView, Status

Facts = Mapping[str, str]
"""Values by what they are. A fact that a node does not have (yet) is absent."""
NOTHING: Mapping[str, Said] = MappingProxyType({})
BEFORE_RESTART = (Phase.HALTED, Phase.WAITING_FOR_MEMBERS, Phase.WARMUP)
PATIENCE_SECONDS = 4.0
"""How long a comparison waits for a node that is silent."""


async def check_run(client: CoordinatorClient, run: Pubkey) -> None:
    """Compare the network, what a run is bound to, and its stake terms.

    Raises RpcDisagreementError. A node that does not answer is left out; with one node nothing is
    compared.
    """

    async def facts(one: CoordinatorClient) -> Facts:
        network = {"the genesis hash of the network": (await one.rpc.genesis_hash()).hex()}
        try:
            view = await one.read_run(run)
        except AccountError as error:
            return network | {f"the config hash of run {run}": error.found}
        found = {
            f"the config hash of run {run}": view.config_hash.hex(),
            f"the data manifest hash of run {run}": view.manifest_hash.hex(),
            f"the genesis root of run {run}": view.genesis_root.hex(),
        }
        terms = {f"{name} of run {run}": str(value) for name, value in asdict(view.params).items()}
        return network | found | terms

    await _compare(client, facts)


async def check_roots(client: CoordinatorClient, run: Pubkey, round_: int) -> None:
    """Compare the stored checkpoint, and the canonical root of a round. Raises as above.

    Nodes are not equally far: a checkpoint is compared where they show that of the same round, a
    canonical root where they show the round closed.
    """

    async def facts(one: CoordinatorClient) -> Facts:
        view = await one.read_run(run)
        found = {f"the checkpoint root of round {view.root_round}": view.root.hex()}
        (account,) = await one.read_rounds(run, [round_])
        if account is not None and account.flags & RoundFlag.CLOSED:
            found[f"the canonical root of round {round_}"] = account.canonical_root.hex()
        return found

    await _compare(client, facts)


async def check_restart(client: CoordinatorClient, run: Pubkey, seen: RunView) -> None:
    """Compare the restart that was `seen`, at which all members take the weights of a checkpoint.

    Raises as above, also where no node shows the one seen any more. A restart follows a Warmup: a
    node that shows the run before or in one is left out, since it may only be late.
    """
    fact = f"the last restart of run {run}"

    async def facts(one: CoordinatorClient) -> Facts:
        view = await one.read_run(run)
        return {} if view.phase in BEFORE_RESTART else {fact: _restart(view)}

    await _compare(client, facts, {fact: Said("a look before", _restart(seen))})


def _restart(run: RunView) -> str:
    return f"in round {run.restart_round}, from round {run.restart_root_round}"


async def check_end(client: CoordinatorClient, run: Pubkey, owner: Pubkey) -> None:
    """Compare what ends a member: a run that is over, a place that is lost, a key that is dry.

    Raises as above. Balances are those of the session key that has the place.
    """

    async def facts(one: CoordinatorClient) -> Facts:
        view = await one.snapshot(run)
        found = {f"whether run {run} has ended": str(view.run.phase == Phase.FINISHED)}
        index = index_of_owner(view.entries, bytes(owner))
        entry = None if index is None else view.entries[index]
        is_gone = entry is None or entry.status in (Status.LEFT, Status.BARRED)
        found[f"whether {owner} has its place in run {run}"] = str(not is_gone)
        if entry is None:
            return found
        key = Pubkey(entry.session)
        balance = str(await one.balance(key))
        return found | {f"the session key of {owner}": str(key), f"the balance of {key}": balance}

    await _compare(client, facts)


async def _compare(
    client: CoordinatorClient,
    read: Callable[[CoordinatorClient], Awaitable[Facts]],
    seen: Mapping[str, Said] = NOTHING,
) -> None:
    """Read the facts from each node, and compare them with each other and with those `seen`."""
    rpc = client.rpc
    if not isinstance(rpc, FailoverRpc) or len(rpc.nodes) == 1:
        return

    async def ask(name: str) -> tuple[str, Facts]:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return name, await read(CoordinatorClient(rpc.nodes[name], client.program_id))
        except (RpcError, AccountError, TimeoutError):
            return name, {}

    known = dict(seen)
    for name, facts in await asyncio.gather(*(ask(name) for name in rpc.nodes)):
        for fact, value in facts.items():
            said = Said(name, value)
            first = known.setdefault(fact, said)
            if first.value != value:
                raise RpcDisagreementError(fact, first, said)
