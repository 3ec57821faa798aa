"""Two RPC nodes that say different things about what decides money or weights."""

from dataclasses import replace

import pytest
from solders.pubkey import Pubkey
from support.rpc_nodes import Weather, nothing, refused
from support.runs import NO_AUDITS, until_round

from troth_coordinator.chain.agreement import check_restart, check_roots, check_run
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.codec import DISCRIMINATOR_BYTES
from troth_coordinator.chain.errors import RpcDisagreementError
from troth_coordinator.chain.failover import FailoverRpc
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.rules.phase import Phase


@pytest.fixture
async def run(run_factory):
    return await run_factory.create(6, **NO_AUDITS)


def client_over(*nodes):
    return CoordinatorClient(FailoverRpc({node.name: node for node in nodes}))


def altered(value):
    """Change every occurrence of 32 bytes in what a node reads."""

    def alter(found):
        slot, accounts = found
        other = bytes(byte ^ 1 for byte in value)
        return slot, [one and replace(one, data=one.data.replace(value, other)) for one in accounts]

    return alter


async def test_nodes_that_agree_are_believed(run):
    client = client_over(Weather("a", run.rpc), Weather("b", run.rpc))
    await check_run(client, run.at.run)
    await check_roots(client, run.at.run, 0)


@pytest.mark.parametrize("fact", ["config_hash", "manifest_hash", "genesis_root"])
async def test_two_nodes_that_disagree_are_named_with_both_values(run, fact):
    value = bytes(getattr((await run.view()).run, fact))
    client = client_over(Weather("a", run.rpc), Weather("b", run.rpc, alter=altered(value)))
    with pytest.raises(RpcDisagreementError) as caught:
        await check_run(client, run.at.run)
    assert caught.value.first == ("a", value.hex())
    assert caught.value.second == ("b", bytes(byte ^ 1 for byte in value).hex())
    assert fact.replace("_", " ").replace("manifest", "data manifest") in caught.value.fact


async def test_a_node_of_another_network_is_named(run):
    other = Weather("b", run.rpc, alter=nothing)
    with pytest.raises(RpcDisagreementError, match="no account there, as b says"):
        await check_run(client_over(Weather("a", run.rpc), other), run.at.run)


def shown(**numbers):
    """Show other numbers in the Run account."""

    def alter(found):
        slot, (run_account, *rest) = found
        data = run_account.data
        for name, (value, size) in numbers.items():
            place = DISCRIMINATOR_BYTES + program_layout().field("Run", name).offset
            data = data[:place] + value.to_bytes(size, "little") + data[place + size :]
        return slot, [replace(run_account, data=data), *rest]

    return alter


async def test_another_restart_is_a_disagreement_but_not_that_of_a_node_that_is_late(run_factory):
    run = await run_factory.start(4, names="ada bob", **NO_AUDITS)
    await until_round(run, 2)
    seen = (await run.view()).run
    liar = Weather("b", run.rpc, alter=shown(restart_round=(2, 8)))
    client = client_over(Weather("a", run.rpc), liar)
    with pytest.raises(RpcDisagreementError, match="the last restart"):
        await check_restart(client, run.at.run, seen)
    liar.alter = shown(restart_round=(1, 8), phase=(Phase.WARMUP, 1))
    await check_restart(client, run.at.run, seen)


@pytest.mark.parametrize("lie", [{}, {"restart_round": (2, 8), "phase": (Phase.WARMUP, 1)}])
async def test_a_restart_that_only_a_liar_has_shown_is_a_disagreement(run_factory, lie):
    """It may show the run as it is, or in a Warmup, by the time that nodes are compared."""
    run = await run_factory.start(4, names="ada bob", **NO_AUDITS)
    await until_round(run, 2)
    seen = replace((await run.view()).run, restart_round=2)
    client = client_over(Weather("a", run.rpc), Weather("b", run.rpc, alter=shown(**lie)))
    with pytest.raises(RpcDisagreementError, match="a look before"):
        await check_restart(client, run.at.run, seen)


async def test_another_checkpoint_root_is_a_disagreement(run):
    root = bytes((await run.view()).run.root)
    liar = Weather("b", run.rpc, alter=altered(root))
    with pytest.raises(RpcDisagreementError, match="the checkpoint root of round 0"):
        await check_roots(client_over(Weather("a", run.rpc), liar), run.at.run, 0)


async def test_a_node_that_does_not_answer_is_left_out(run):
    client = client_over(Weather("a", run.rpc), Weather("b", run.rpc, raises=refused))
    await check_run(client, run.at.run)


async def test_one_node_is_compared_with_nobody(run):
    node = Weather("a", run.rpc, alter=nothing)
    await check_run(client_over(node), run.at.run)
    await check_run(CoordinatorClient(node), Pubkey.default())
    assert node.calls == []
