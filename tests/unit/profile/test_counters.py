"""Counted bytes: those of an interface and those of this process's own connections."""

import socket

import pytest

from troth_simulation.profile.counters import Traffic, of_interface, of_own_sockets
from troth_simulation.profile.errors import CountingError

NUM_BYTES = 300_000


def test_own_sockets_count_what_was_sent_and_received_and_no_header():
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as caller,
        listener.accept()[0] as called,
    ):
        before, wire = of_own_sockets(), of_interface("lo")
        caller.sendall(bytes(NUM_BYTES))
        left = NUM_BYTES
        while left:
            left -= len(called.recv(65_536))
        # The answer acknowledges all that came before it.
        called.sendall(b"!")
        assert caller.recv(1) == b"!"
        found = of_own_sockets().since(before)
        frames = of_interface("lo").since(wire)
    assert found.received == NUM_BYTES + 1
    assert found.sent >= NUM_BYTES
    assert frames.sent > NUM_BYTES
    assert frames.received > NUM_BYTES


TABLE = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
    lo:    7       1    0    0    0     0          0         0        7       1    0    0
tf9i0: 1500       3    0    0    0     0          0         0    64000      40    0    0
"""


def test_an_interface_has_a_column_for_each_direction(monkeypatch, tmp_path):
    """Loopback receives what it sends, so it cannot show which column is which."""
    (tmp_path / "dev").write_text(TABLE)
    monkeypatch.setattr("troth_simulation.profile.counters._TABLE", tmp_path / "dev")
    assert of_interface("tf9i0") == Traffic(sent=64_000, received=1_500)


def test_an_interface_that_is_not_there_is_refused():
    with pytest.raises(CountingError) as caught:
        of_interface("tf0i0")
    assert caught.value.expected == "an interface tf0i0"
