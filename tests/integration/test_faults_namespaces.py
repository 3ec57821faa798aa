"""Members in network namespaces: a rate that the kernel keeps, partitions, nothing left behind."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.namespace_targets import Fetching, Serving, act
from support.profiles import left_of
from support.waiting import wait_for

from troth_localnet.fleet import Fleet
from troth_simulation.faults.namespaces import Housed, Namespaces, are_permitted, run_housed

pytestmark = pytest.mark.processes
PORT = 9_000
BITS = 4_000_000
NUM_BYTES = 500_000
ETHERNET_BYTES = 1_514


@pytest.fixture
def permitted():
    if not are_permitted():
        pytest.skip("namespaces need root, bridges and token buckets")


def fetch(network, member, address, path) -> str:
    fetching = Housed(network.name(member), act, Fetching(address, PORT, path))
    with Fleet(run_housed, [fetching]) as fleet:
        assert fleet.wait(60)
        assert fleet.exit_codes() == [0]
    return path.read_text()


@pytest.mark.usefixtures("permitted")
def test_a_cable_keeps_its_rate_and_a_partition_cuts_members_but_not_the_host(tmp_path):
    with Namespaces(3, BITS) as network:
        ready = tmp_path / "ready"
        serving = Serving(network.address(0), PORT, NUM_BYTES, ready)
        with Fleet(run_housed, [Housed(network.name(0), act, serving)]):
            wait_for(ready.exists)
            num_bytes, seconds = fetch(network, 1, network.address(0), tmp_path / "one").split()
            assert int(num_bytes) == NUM_BYTES
            # A bucket of 16 kB passes at once; a loaded machine is slower, never faster.
            assert float(seconds) > 0.9 * (NUM_BYTES - 20_000) * 8 / BITS
            network.part([0])
            assert "Error" in fetch(network, 1, network.address(0), tmp_path / "two")
            assert act_here(network, tmp_path / "host").startswith(f"{NUM_BYTES} ")
            network.join([0])
            again = fetch(network, 2, network.address(0), tmp_path / "three")
            assert again.startswith(f"{NUM_BYTES} ")
        names = [network.name(member) for member in range(3)]
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    assert [name for name in names if name in listed.stdout] == []
    assert not Path("/sys/class/net", names[0].split("-")[0]).exists()


@pytest.mark.usefixtures("permitted")
def test_each_frame_is_counted_with_headers_of_its_own(tmp_path):
    """Packets of 64 kB passed as one frame: 4 % of the bytes were missing above 10 Mbit/s."""
    with Namespaces(2, 60_000_000) as network:
        ready = tmp_path / "ready"
        serving = Serving(network.address(0), PORT, NUM_BYTES, ready)
        with Fleet(run_housed, [Housed(network.name(0), act, serving)]):
            wait_for(ready.exists)
            fetch(network, 1, network.address(0), tmp_path / "one")
        cable = Path("/sys/class/net", f"{network.name(0).split('-')[0]}o0", "statistics")
        num_bytes = int((cable / "rx_bytes").read_text())
        assert num_bytes > 1.03 * NUM_BYTES
        assert num_bytes <= ETHERNET_BYTES * int((cable / "rx_packets").read_text())


MAKE = """
import signal
from troth_simulation.faults.namespaces import Namespaces
with Namespaces(2, 4_000_000, subnet=234):
    print("made", flush=True)
    signal.pause()
"""


@pytest.mark.usefixtures("permitted")
def test_a_killed_process_leaves_a_network_that_no_other_removes_and_two_commands_do():
    """Its maker may live in another pid namespace, and a name may be somebody else's."""
    with subprocess.Popen([sys.executable, "-c", MAKE], stdout=subprocess.PIPE) as killed:
        try:
            assert killed.stdout.readline() == b"made\n"
        finally:
            killed.kill()
    ends = ("", "-0", "-1", "o0", "o1")
    left = [f"tf{killed.pid}{end}" for end in ends]
    try:
        with Namespaces(1, BITS):
            assert left_of(killed.pid) == left
    finally:
        subprocess.run(["ip", "link", "del", left[0]], check=True)
        for namespace in left[1:3]:
            subprocess.run(["ip", "netns", "del", namespace], check=True)
    wait_for(lambda: not left_of(killed.pid))  # the kernel frees the cables a little later


def act_here(network, path) -> str:
    """Fetch from the host itself, which is where the chain's proxy is."""
    act(Fetching(network.address(0), PORT, path))
    return path.read_text()


@pytest.mark.parametrize(("members", "bits"), [(0, BITS), (201, BITS), (2, 10)])
def test_a_network_that_cannot_be_is_refused(members, bits):
    with pytest.raises(ValueError, match="expected"):
        Namespaces(members, bits)
