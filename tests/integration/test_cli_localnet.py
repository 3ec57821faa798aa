"""`troth localnet` as real processes: it says where it listens, ends on request, leaves nothing."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from solders.keypair import Keypair
from support.cli import Cli
from support.waiting import wait_for

from troth_localnet.errors import RequestFailedError
from troth_localnet.launcher import request
from troth_localnet.rpc import MAX_MISSED_SLOTS

pytestmark = pytest.mark.processes
AGAIN = pytest.mark.long(reason="the same for another signal")
UP = [sys.executable, "-m", "troth_cli", "localnet", "up", "--json"]


@pytest.fixture
def cli(capsys):
    return Cli(capsys)


@pytest.fixture
def network():
    """A chain that a test may stop or kill."""
    with running() as found:
        yield found


@pytest.fixture(scope="module")
def reported():
    """The report of a chain that no test of this file stops."""
    with running() as (_, found):
        yield found


@contextlib.contextmanager
def running(*options):
    command = [*UP, "--port", "0", "--slot-ms", "20", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as up:
        yield up, json.loads(up.stdout.readline())
        if up.poll() is None:
            up.terminate()


def children(pid):
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]


def is_free(url):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) != 0


def test_it_serves_the_program_and_gives_lamports(cli, reported):
    assert reported["kind"] == "embedded"
    to = str(Keypair().pubkey())
    given = cli.json("localnet", "airdrop", to, "1.5", "--rpc", reported["rpc_url"])
    assert given == {
        "address": to,
        "lamports": 1_500_000_000,
        "balance_lamports": 1_500_000_000,
    }
    # Past the check of the program: only the run is missing.
    error = cli.refused("status", to, "--rpc", reported["rpc_url"])
    assert error["kind"] == "AccountOwnerError"


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=AGAIN)])
def test_a_signal_ends_it_and_its_chain(network, number):
    up, reported = network
    up.send_signal(number)
    assert up.wait(20) == 0
    assert "Stopped." in up.stderr.read()
    assert is_free(reported["rpc_url"])


def test_it_says_so_when_its_chain_dies(network):
    up, _ = network
    (chain,) = children(up.pid)
    os.kill(chain, signal.SIGKILL)
    assert up.wait(20) == 1
    assert json.loads(up.stderr.read().splitlines()[-1])["error"]["kind"] == "ChainEndedError"


def slot_of(reported, seconds=1.0):
    return request(reported["rpc_url"], "getSlot", [], seconds)


def test_a_chain_that_was_stopped_goes_on_where_it_stood(network):
    """A laptop that sleeps: no answer for longer than anybody waits, and no windows missed."""
    up, reported = network
    (chain,) = children(up.pid)
    before = wait_for(lambda: slot_of(reported))
    os.kill(chain, signal.SIGSTOP)
    for _ in range(3):
        with pytest.raises(RequestFailedError):
            slot_of(reported)
    assert up.poll() is None
    os.kill(chain, signal.SIGCONT)
    after = slot_of(reported, 20.0)
    assert after < before + 2 * MAX_MISSED_SLOTS, "three seconds are 150 slots"
    wait_for(lambda: slot_of(reported, 20.0) > after)
    assert up.poll() is None


def test_a_kept_chain_goes_on_after_kill_9(cli, tmp_path):
    """Killed while its slots pass: accounts, statuses and slots are there again."""
    ledger, to = tmp_path / "ledger", str(Keypair().pubkey())
    with running("--ledger", str(ledger)) as (up, reported):
        cli.json("localnet", "airdrop", to, "1.5", "--rpc", reported["rpc_url"])
        genesis = request(reported["rpc_url"], "getGenesisHash", [])
        before = slot_of(reported, 20.0)
        (chain,) = children(up.pid)
        os.kill(chain, signal.SIGKILL)
        assert up.wait(20) == 1
    with running("--ledger", str(ledger)) as (up, again):
        assert slot_of(again, 20.0) >= before
        found = request(again["rpc_url"], "getBalance", [to])
        assert found["value"] == 1_500_000_000
        assert request(again["rpc_url"], "getGenesisHash", []) == genesis
        error = cli.refused("localnet", "up", "--port", "0", "--ledger", ledger)
        assert error["kind"] == "ChainInUseError"
        assert str(ledger) in error["expected"]
        up.send_signal(signal.SIGINT)
        assert up.wait(20) == 0
    error = cli.refused("localnet", "up", "--port", "0", "--slot-ms", "50", "--ledger", ledger)
    assert error["kind"] == "ChainMismatchError"


def test_a_port_in_use_is_named(cli, reported):
    port = reported["rpc_url"].rpartition(":")[2]
    error = cli.refused("localnet", "up", "--port", port)
    assert error["kind"] == "PortInUseError"
    assert port in error["expected"]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["--slot-ms", "5"], "OptionError"),
        (["--port", "70000"], "OptionError"),
        (["--validator", "no/such/binary"], "ValidatorMissingError"),
        (["--validator", "no/such/binary", "--slot-ms", "5"], "OptionError"),
    ],
)
def test_bad_options_are_named(cli, arguments, kind):
    assert cli.refused("localnet", "up", *arguments)["kind"] == kind


def test_bad_airdrops_are_named(cli, reported):
    rpc = ("--rpc", reported["rpc_url"])
    to = str(Keypair().pubkey())
    assert cli.refused("localnet", "airdrop", "x", "1", *rpc)["subject"] == "ADDRESS"
    assert cli.refused("localnet", "airdrop", to, "x1", *rpc)["subject"] == "SOL"
    assert cli.refused("localnet", "airdrop", to, "0.000000001", *rpc)["kind"].startswith("Rpc")
    for amount in ("0", "-5", "-.5", "0.0"):
        error = cli.refused("localnet", "airdrop", to, amount, *rpc)
        assert error["expected"] == "more than 0 SOL, like 1.5"
        assert error["found"] == repr(amount)
    assert "--rcp" in cli.refused("localnet", "airdrop", to, "1", "--rcp", "x", code=2)["found"]


def test_an_airdrop_to_a_key_file_goes_to_its_address(cli, reported, tmp_path):
    key, rpc = tmp_path / "key.json", ("--rpc", reported["rpc_url"])
    address = cli.json("keys", "new", key)["address"]
    assert cli.json("localnet", "airdrop", key, "2", *rpc)["address"] == address
    key.write_text("[]")
    assert cli.refused("localnet", "airdrop", key, "2", *rpc)["kind"] == "KeyFileContentError"
    missing = cli.refused("localnet", "airdrop", tmp_path / "none.json", "2", *rpc)
    assert missing["kind"] == "InputError"


@pytest.mark.parametrize("scheme", ["http", "ws"])
def test_a_websocket_port_given_as_rpc_is_recognised(cli, reported, scheme):
    websocket, rpc = reported["ws_url"], reported["rpc_url"]
    address = websocket.replace("ws:", f"{scheme}:")
    error = cli.refused("status", Keypair().pubkey(), "--rpc", address)
    assert error["kind"] == "RpcUnreachableError"
    assert "a websocket" in error["found"]
    assert f"--rpc {rpc}" in error["next_step"]


def test_kill_9_leaves_no_chain_no_port_and_no_file(tmp_path):
    """The chain notices the end of its parent, and removes the folder that the parent made."""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [*UP, "--port", "0", "--slot-ms", "20"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as up:
        reported = json.loads(up.stdout.readline())
        (chain,) = children(up.pid)
        assert list(tmp_path.iterdir()) != []
        up.kill()
    wait_for(lambda: not Path(f"/proc/{chain}").exists())
    assert is_free(reported["rpc_url"])
    assert list(tmp_path.iterdir()) == []
