"""`troth program` on solana-test-validator, which has every feature on and no program of ours.

The binary is the one on PATH or the one that TROTH_VALIDATOR names; without it the test is skipped.
"""

import asyncio
import itertools
import json
import signal
import subprocess
import sys

import pytest
from solders.keypair import Keypair
from support.cli import Cli
from support.network import SOL
from support.validator import validator_binary
from support.waiting import wait_for

from troth_cli.keyfiles import read_key, write_key
from troth_coordinator import artifacts
from troth_coordinator.chain import loader
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.chain.program_image import code_hash, packaged_image
from troth_localnet.validator import ValidatorLauncher, ValidatorOptions

pytestmark = [pytest.mark.validator, pytest.mark.processes]

NUMBERS = itertools.count(1)
V3_BYTES = len(artifacts.read_bytes(artifacts.PROGRAM_V3))
PROGRAM_RENT = (128 + loader.PROGRAM_BYTES) * 6_960
DATA_RENT = (128 + loader.DATA_HEADER_BYTES + V3_BYTES) * 6_960
SECONDS = 60


@pytest.fixture(scope="module")
def chain():
    options = ValidatorOptions(binary=validator_binary(), slot_milliseconds=100)
    with ValidatorLauncher(options) as launcher:
        launcher.start({})
        yield launcher


@pytest.fixture
def at(capsys, chain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Bench(Cli(capsys), chain, tmp_path)


class Bench:
    """A folder with the key of an authority that has 20 SOL, and the key of a program."""

    def __init__(self, cli, chain, folder):
        self.cli, self.chain, self.folder = cli, chain, folder
        self.owner, self.program_key = folder / "owner.json", folder / "program.json"
        write_key(self.owner, Keypair())
        write_key(self.program_key, Keypair())
        self.authority = address_of(self.owner)
        self.program = address_of(self.program_key)
        chain.airdrop(self.authority, 20 * SOL)

    @property
    def deploying(self):
        named = ("--key", self.owner, "--program-key", self.program_key, "--rpc")
        return ("program", "deploy", *named, self.chain.rpc_url)

    def deploy(self, *options):
        return self.cli.json(*self.deploying, "--yes", *options)

    def refused(self, *options):
        return self.cli.refused(*self.deploying, "--yes", *options)

    def json(self, *words):
        return self.cli.json(*words, "--rpc", self.chain.rpc_url)

    def balance(self):
        return asyncio.run(self._balance())

    async def _balance(self):
        async with HttpRpc(self.chain.rpc_url) as rpc:
            _slot, (account,) = await rpc.get_accounts([self.authority])
        return account.lamports

    def buffer(self):
        return asyncio.run(self._buffer())

    async def _buffer(self):
        async with HttpRpc(self.chain.rpc_url) as rpc:
            where = loader.buffer_address(self.authority, self.program)
            _slot, (account,) = await rpc.get_accounts([where])
        return account and loader.read_buffer(account)

    def image_with(self, before, after):
        """A file with our image for the program, changed in its texts; no loader reads those."""
        path = self.folder / f"image-{next(NUMBERS)}.so"
        path.write_bytes(packaged_image("v3", self.program).replace(before, after))
        return path


def address_of(path):
    return read_key(path, pytest.fail).pubkey()


def test_a_program_is_deployed_shown_and_verified_at_any_id(at):
    plan = at.cli.json(*at.deploying, "--dry-run")
    assert plan["sbpf"] == "v3", "this cluster deploys nothing older"
    assert at.balance() == 20 * SOL
    done = at.deploy()
    spent = 20 * SOL - at.balance()
    assert spent == done["spent_lamports"] == plan["spent_lamports"]
    assert spent == PROGRAM_RENT + DATA_RENT + plan["fees_lamports"]
    shown = at.json("program", "show", at.program)
    assert shown["authority"] == str(at.authority)
    assert shown["loader"] == str(loader.UPGRADEABLE)
    assert shown["sha256"] == code_hash(packaged_image("v3", at.program))
    assert shown["lamports"] == PROGRAM_RENT + DATA_RENT
    verified = at.json("program", "verify", at.program)
    assert verified["image"] == "packaged v3"
    assert at.buffer() is None
    assert at.deploy()["spent_lamports"] == 0, "it is there already"


def test_an_image_that_the_cluster_refuses_is_refused_before_it_is_paid(at):
    refused = at.refused("--image", "v0")
    assert "SIMD-0500" in refused["found"]
    assert at.balance() == 20 * SOL


def test_a_killed_deploy_goes_on_with_the_chunks_that_are_missing(at):
    num_chunks = at.cli.json(*at.deploying, "--dry-run")["chunks_to_send"]
    command = [sys.executable, "-m", "troth_cli", *map(str, at.deploying), "--yes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        wait_for(lambda: (found := at.buffer()) and found.code[50_000:].strip(b"\0"), SECONDS)
        child.kill()
        assert child.wait() == -signal.SIGKILL
    again = at.deploy()
    assert 0 < again["chunks_to_send"] < num_chunks
    assert again["buffer_lamports"] > 0
    assert at.json("program", "verify", at.program)["is_equal"]
    assert at.buffer() is None
    fees = 20 * SOL - at.balance() - PROGRAM_RENT - DATA_RENT
    # Chunks under way at the kill may land after the second look, and are paid twice then.
    assert (num_chunks + 3) * 5_000 <= fees <= (num_chunks + 3 + 32) * 5_000


def test_only_the_authority_upgrades_and_a_final_program_stays(at):
    at.deploy("--image", at.image_with(b"Error Code: ", b"Error code: "))
    different = at.cli("program", "verify", at.program, "--json", "--rpc", at.chain.rpc_url)
    assert different.code == 1
    assert different.json["authority"] == str(at.authority)

    stranger = at.folder / "stranger.json"
    write_key(stranger, Keypair())
    at.chain.airdrop(address_of(stranger), 20 * SOL)
    upgrade = ("program", "deploy", "--upgrade", at.program, "--yes", "--rpc", at.chain.rpc_url)
    refused = at.cli.refused(*upgrade, "--key", stranger)
    assert str(at.authority) in refused["expected"]

    before = at.balance()
    done = at.cli.json(*upgrade, "--key", at.owner, "--max-len", V3_BYTES + 1, "--final")
    assert done["kind"] == "upgrade"
    assert done["room_bytes"] == V3_BYTES + loader.MIN_EXTENSION_BYTES
    assert before - at.balance() == done["spent_lamports"]
    assert done["spent_lamports"] == done["data_rent_lamports"] + done["fees_lamports"]
    assert at.json("program", "verify", at.program)["authority"] is None
    assert "no authority" in at.cli.refused(*upgrade, "--key", at.owner)["found"]


def test_a_foreign_program_of_the_same_key_is_not_overwritten(at):
    errors = artifacts.read_json(artifacts.LAYOUT)["errors"].values()
    path = at.image_with(b"", b"")
    image = path.read_bytes()
    for name in errors:
        image = image.replace(name.encode(), b"x" * len(name))
    path.write_bytes(image)
    at.deploy("--image", path)
    before = at.balance()
    refused = at.refused()
    assert refused["kind"] == "ForeignProgramError"
    assert at.balance() == before


def test_a_closed_program_gives_its_rent_back_and_its_id_is_lost(at):
    at.deploy()
    close = ("program", "close", at.program, "--key", at.owner)
    asked = at.cli.refused(*close, "--rpc", at.chain.rpc_url)
    assert "--yes" in asked["next_step"]
    before = at.balance()
    closed = at.json(*close, "--yes")
    assert closed["returned_lamports"] == DATA_RENT
    assert at.balance() - before == DATA_RENT - closed["fee_lamports"]
    assert "closed" in at.refused()["found"]
    assert json.dumps(at.cli.refused(*close, "--rpc", at.chain.rpc_url)).count("closed") == 1
