"""Which names are this machine: for metrics, the dashboard, and callers of a transport."""

import pytest

from troth_client.telemetry.loopback import is_loopback, names_loopback

HERE = ["localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]
ELSEWHERE = ["8.8.8.8", "::ffff:8.8.8.8", "0.0.0.0", "::", "10.0.0.1", "localhost.evil", ""]


@pytest.mark.parametrize("name", HERE)
def test_this_machine_is_seen(name):
    assert is_loopback(name)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_others_are_not_this_machine(name):
    assert not is_loopback(name)


@pytest.mark.parametrize("host", ["localhost:80", "127.0.0.1", "[::1]:9", "[::ffff:127.0.0.1]:9"])
def test_a_host_of_this_machine_is_answered(host):
    assert names_loopback(host)


@pytest.mark.parametrize("host", ["evil.example", "8.8.8.8:80", "[::1", "127.0.0.1.evil:80", ""])
def test_a_host_that_a_stranger_names_is_not(host):
    assert not names_loopback(host)
