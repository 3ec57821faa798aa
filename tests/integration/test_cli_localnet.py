"""`troth localnet` as real processes: it says where it listens, ends on request, leaves nothing."""

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

pytestmark = pytest.mark.processes
UP = [sys.executable, "-m", "troth_cli", "localnet", "up", "--json"]


@pytest.fixture
def cli(capsys):
    return Cli(capsys)


@pytest.fixture
def network():
    command = [*UP, "--port", "0", "--slot-ms", "20"]
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


def test_it_serves_the_program_and_gives_lamports(cli, network):
    _, reported = network
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
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
    assert json.loads(up.stderr.read().splitlines()[-1])["error"]["kind"] == "RequestFailedError"


def test_a_port_in_use_is_named(cli, network):
    _, reported = network
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


def test_bad_airdrops_are_named(cli, network):
    rpc = ("--rpc", network[1]["rpc_url"])
    to = str(Keypair().pubkey())
    assert cli.refused("localnet", "airdrop", "x", "1", *rpc)["subject"] == "ADDRESS"
    assert cli.refused("localnet", "airdrop", to, "x1", *rpc)["subject"] == "SOL"
    assert cli.refused("localnet", "airdrop", to, "0.000000001", *rpc)["kind"].startswith("Rpc")
