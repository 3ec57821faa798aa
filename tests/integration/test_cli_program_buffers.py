"""The buffer of a deploy on the embedded chain: filled, cut off, gone on with, given back.

Its loader keeps buffers and deploys nothing; test_validator_program.py deploys.
"""

import asyncio

import pytest
from solders.keypair import Keypair
from solders.transaction import VersionedTransaction
from support.cli import Cli
from support.deploys import planned, small_image
from support.network import PROGRAM, SOL, start

from troth_cli.errors import DeployError, DeployStoppedError
from troth_cli.keyfiles import read_key, write_key
from troth_cli.workflows import deploy_chunks
from troth_cli.workflows.deploy import carry_out
from troth_cli.workflows.deploy_chunks import fill_buffer
from troth_cli.workflows.deploy_plan import missing_chunks
from troth_coordinator import artifacts
from troth_coordinator.chain import loader
from troth_coordinator.chain.http_rpc import HttpRpc


def flipped(image, at):
    return image[:at] + bytes([image[at] ^ 1]) + image[at + 1 :]


@pytest.fixture(scope="module")
def chain():
    launcher = start({PROGRAM: artifacts.program_image()})
    yield launcher
    launcher.stop()


@pytest.fixture
def cli(capsys):
    return Cli(capsys)


@pytest.fixture
def owner(chain, tmp_path):
    """A key file with 20 SOL."""
    key = Keypair()
    write_key(tmp_path / "owner.json", key)
    chain.airdrop(key.pubkey(), 20 * SOL)
    return tmp_path / "owner.json"


def key_of(path):
    return read_key(path, pytest.fail)


async def fill_then_stop(rpc_url, key, program, image):
    """Run a deploy that fails at its last step: its plan, its error and its buffer."""
    async with HttpRpc(rpc_url) as rpc:
        plan, request = await planned(rpc, key, program, image)
        done = []
        with pytest.raises(DeployStoppedError) as caught:
            await carry_out(rpc, plan, request, lambda *now: done.append(now))
        _slot, (account,) = await rpc.get_accounts([plan.buffer])
    return plan, caught.value, account


def test_a_stopped_deploy_names_its_buffer_and_goes_on_there(cli, chain, owner):
    key, program, image = key_of(owner), Keypair(), small_image()
    plan, stopped, account = asyncio.run(fill_then_stop(chain.rpc_url, key, program, image))
    assert len(plan.missing) == len(image) // loader.CHUNK_BYTES + 1
    assert loader.read_buffer(account) == loader.Buffer(key.pubkey(), image)
    assert account.lamports == plan.buffer_rent
    assert f"Buffer {plan.buffer} holds" in stopped.next_step
    assert f"troth program close {plan.buffer}" in stopped.next_step

    changed = flipped(image, 2_500)
    again, _stopped, account = asyncio.run(fill_then_stop(chain.rpc_url, key, program, changed))
    assert again.buffer == plan.buffer
    assert again.missing == (2 * loader.CHUNK_BYTES,), "only the chunk that differs is sent"
    assert again.spent_lamports == plan.spent_lamports - plan.buffer_rent - 5_000 * 6
    assert loader.read_buffer(account).code == changed

    longer, _stopped, account = asyncio.run(
        fill_then_stop(chain.rpc_url, key, program, image + b"more")
    )
    assert longer.is_stale
    assert loader.read_buffer(account).code == image + b"more"

    rpc = ("--rpc", chain.rpc_url)
    shown = cli.json("program", "show", plan.buffer, *rpc)
    assert shown["lamports"] == longer.buffer_rent
    thief = owner.with_name("thief.json")
    write_key(thief, Keypair())
    refused = cli.refused("program", "close", plan.buffer, "--key", thief, *rpc)
    assert refused["kind"] == "DeployError"
    assert str(key.pubkey()) in refused["expected"]
    closed = cli.json("program", "close", plan.buffer, "--key", owner, *rpc)
    assert closed["returned_lamports"] == longer.buffer_rent
    gone = cli.refused("program", "close", plan.buffer, "--key", owner, *rpc)
    assert gone["kind"] == "ProgramMissingError"


class Dropping(HttpRpc):
    """A cluster that drops each transaction the first time."""

    def __init__(self, url):
        super().__init__(url)
        self.dropped = set()

    async def send(self, raw):
        if raw in self.dropped:
            return await super().send(raw)
        self.dropped.add(raw)
        return VersionedTransaction.from_bytes(raw).signatures[0]


def test_chunks_that_a_cluster_drops_are_sent_again_before_they_expire(chain, owner):
    key, program, image = key_of(owner), Keypair(), small_image()
    plan, _stopped, _account = asyncio.run(fill_then_stop(chain.rpc_url, key, program, image))
    changed = flipped(flipped(image, 0), 2_500)

    async def fill():
        async with Dropping(chain.rpc_url) as rpc:
            await fill_buffer(rpc, key, plan.buffer, changed, lambda *_now: None)
            _slot, (account,) = await rpc.get_accounts([plan.buffer])
            return loader.read_buffer(account).code, len(rpc.dropped)

    code, num_signed = asyncio.run(fill())
    assert code == changed
    assert num_signed == 2, "each chunk was signed once"


class Standing(HttpRpc):
    """A node that takes transactions, knows none of them, and whose height stands still."""

    async def send(self, raw):
        return VersionedTransaction.from_bytes(raw).signatures[0]

    async def statuses(self, signatures):
        return [None] * len(signatures)

    async def block_height(self):
        return 0


def test_a_node_that_stands_still_is_not_waited_for_without_end(chain, owner, monkeypatch):
    monkeypatch.setattr(deploy_chunks, "MOST_POLLS", 3)
    key, program, image = key_of(owner), Keypair(), small_image()

    async def fill():
        async with Standing(chain.rpc_url) as rpc:
            plan, _ = await planned(rpc, key, program, image)
            await fill_buffer(rpc, key, plan.buffer, image, lambda *_now: None)

    with pytest.raises(DeployError, match="every chunk to land") as caught:
        asyncio.run(fill())
    assert "Repeat the command" in caught.value.next_step


def test_a_lamport_of_a_stranger_at_the_buffers_address_stops_no_deploy(chain, owner):
    key, program, image = key_of(owner), Keypair(), small_image()
    buffer = loader.buffer_address(key.pubkey(), program.pubkey())
    chain.airdrop(buffer, SOL // 100)
    plan, _stopped, account = asyncio.run(fill_then_stop(chain.rpc_url, key, program, image))
    assert plan.is_new
    assert plan.buffer_lamports == SOL // 100
    assert loader.read_buffer(account).code == image
    assert account.lamports == plan.buffer_rent


def test_a_new_buffer_needs_no_chunk_of_zeros():
    image = bytes(loader.CHUNK_BYTES) + b"code"
    assert missing_chunks(None, image) == (loader.CHUNK_BYTES,)
    assert missing_chunks(b"x" * 9, image) == (loader.CHUNK_BYTES,)
    assert missing_chunks(image, image) == ()
