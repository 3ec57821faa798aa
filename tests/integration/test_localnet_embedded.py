"""The embedded chain as a process: start, readiness, faults, and that nothing is left behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from anchorpy import Provider, Wallet
from solana.rpc.async_api import AsyncClient
from solana.rpc.commitment import Confirmed
from solana.rpc.types import TxOpts
from solana.rpc.websocket_api import connect
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from support.localnet import SOL, pay, signed
from support.waiting import wait_for

from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions
from troth_localnet.errors import (
    BindRefusedError,
    OptionError,
    PortInUseError,
    ProgramImageError,
    RequestFailedError,
    StartFailedError,
)

pytestmark = pytest.mark.processes
AGAIN = pytest.mark.long(reason="a process each, for another value")
STEPPED = EmbeddedOptions(slot_milliseconds=None)


@pytest.fixture
def launcher():
    """A chain that a test may step, stop or kill."""
    with EmbeddedLauncher(STEPPED) as one:
        one.start({})
        yield one


@pytest.fixture(scope="module")
def lasting():
    """A chain that no test of this file steps or stops."""
    with EmbeddedLauncher(STEPPED) as one:
        one.start({})
        yield one


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_airdrop_is_confirmed_when_it_returns(lasting):
    assert lasting.airdrop(Pubkey.new_unique(), SOL)
    with pytest.raises(RequestFailedError, match="Airdrop refused"):
        lasting.airdrop(Pubkey.new_unique(), 1)


def test_time_is_stepped_on_request(launcher):
    assert launcher.advance(10) == 11
    assert launcher.skip(4) == 16


def test_slots_are_skipped_as_configured():
    with EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=None, skip_every=4)) as one:
        one.start({})
        assert [one.advance() for _ in range(5)] == [2, 4, 5, 6, 8]


def test_stop_ends_the_process_and_can_be_repeated(launcher):
    pid = launcher.pid
    launcher.stop()
    assert not is_running(pid)
    launcher.stop()
    with pytest.raises(StartFailedError, match="start"):
        _ = launcher.rpc_url


def test_a_launcher_starts_again_after_stop(launcher):
    with pytest.raises(StartFailedError, match="stop"):
        launcher.start({})
    launcher.stop()
    launcher.start({})
    assert launcher.advance() == 2


def test_two_chains_run_side_by_side_and_differ(lasting):
    with EmbeddedLauncher(STEPPED) as other:
        other.start({})
        assert other.rpc_url != lasting.rpc_url


def test_a_taken_port_is_named(lasting):
    port = int(lasting.rpc_url.rsplit(":", 1)[1])
    other = EmbeddedLauncher(EmbeddedOptions(port=port))
    with pytest.raises(PortInUseError, match=f"port {port}") as caught:
        other.start({})
    assert caught.value.port == port


def test_the_same_port_can_be_used_right_after(launcher):
    port = int(launcher.rpc_url.rsplit(":", 1)[1])
    launcher.stop()
    with EmbeddedLauncher(EmbeddedOptions(port=port)) as other:
        other.start({})
        assert other.rpc_url.endswith(f":{port}")


def test_only_loopback_is_listened_on():
    with pytest.raises(BindRefusedError, match=r"0\.0\.0\.0"):
        EmbeddedLauncher(EmbeddedOptions(host="0.0.0.0")).start({})


def test_bad_images_are_refused_and_nothing_runs(tmp_path):
    one = EmbeddedLauncher()
    for image in (b"no program", tmp_path / "missing.so"):
        with pytest.raises(ProgramImageError):
            one.start({Pubkey.new_unique(): image})
        with pytest.raises(StartFailedError):
            _ = one.pid


def test_bad_options_are_the_launchers_error_too():
    with pytest.raises(OptionError, match="20 to 400"):
        EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=7)).start({})


def test_a_killed_chain_is_noticed_and_cleared_away(launcher):
    pid = launcher.pid
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(RequestFailedError, match="still runs"):
        while True:
            launcher.advance()
    launcher.stop()
    assert not is_running(pid)


def test_the_chain_ends_when_its_launcher_is_killed():
    """A killed launcher cannot stop its chain; the chain sees its stdin end."""
    script = (
        "import os, signal\n"
        "from troth_localnet.embedded import EmbeddedLauncher\n"
        "one = EmbeddedLauncher(); one.start({})\n"
        "print(one.pid, one._folder.name, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    pid, folder = int(done.stdout.split()[0]), Path(done.stdout.split()[1])
    wait_for(lambda: not is_running(pid), 10)
    assert not folder.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=AGAIN)])
def test_signals_end_it_cleanly(number):
    command = [sys.executable, "-m", "troth_localnet", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert "rpc_url" in json.loads(process.stdout.readline())
    process.send_signal(number)
    _, stderr = process.communicate(timeout=10)
    assert process.returncode == 0
    assert stderr == b""


def test_the_command_line_refuses_with_a_sentence_and_code_1(lasting):
    port = lasting.rpc_url.rsplit(":", 1)[1]
    done = subprocess.run(
        [sys.executable, "-m", "troth_localnet", "--port", port],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert f"port {port}" in done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["error"] == "PortInUseError"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--slot-milliseconds", "5"],
        pytest.param(["--skip-every", "1"], marks=AGAIN),
        pytest.param(["--port", "65535"], marks=AGAIN),
        ["--program", "x=y"],
    ],
)
def test_bad_arguments_are_refused_without_a_traceback(arguments):
    done = subprocess.run(
        [sys.executable, "-m", "troth_localnet", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "error:" in done.stderr


async def test_anchorpys_provider_sends_and_confirms(lasting):
    """anchorpy signs with its wallet, sends through solana-py and waits for confirmation."""
    key, to = Keypair(), Pubkey.new_unique()
    lasting.airdrop(key.pubkey(), 10 * SOL)
    async with AsyncClient(lasting.rpc_url, commitment=Confirmed) as client:
        options = TxOpts(preflight_commitment=Confirmed, skip_confirmation=False)
        provider = Provider(client, Wallet(key), options)
        blockhash = (await client.get_latest_blockhash()).value.blockhash
        await provider.send(signed([pay(key, to, SOL)], [key], blockhash))
        assert (await client.get_balance(to)).value == SOL


async def test_subscriptions_come_through_the_process(lasting):
    to = Pubkey.new_unique()
    async with connect(lasting.ws_url) as ws:
        await ws.account_subscribe(to)
        await ws.recv()
        lasting.airdrop(to, SOL)
        (reported,) = await ws.recv()
        assert reported.result.value.lamports == SOL
