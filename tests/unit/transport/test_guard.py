"""Strangers' endpoints lead to public addresses only, however they are written."""

import socket

import pytest
from support import blobs

from troth_client.transport.errors import FetchError
from troth_client.transport.guard import is_private_host, is_public, public_socket
from troth_client.transport.http import http_reader, http_transport

PUBLIC = ("8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1")
INTERNAL = (
    *("127.0.0.1", "::1", "0.0.0.0", "::", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1"),
    *("169.254.169.254", "fe80::1%eth0", "fc00::1", "fec0::1", "224.0.0.1", "ff02::1"),
    *("255.255.255.255", "240.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254"),
    *("::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:8f00:1::80ff:fffe", "no address"),
)
BLOB, DATA = blobs.payload()


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_connected_to(address):
    assert is_public(address)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    public_socket((family, socket.SOCK_STREAM, 0, "", (address, 80))).close()


@pytest.mark.parametrize("address", INTERNAL)
def test_all_others_are_not(address):
    assert not is_public(address)
    with pytest.raises(PermissionError, match="no public address"):
        public_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, 80)))


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST.", "127.1", "2130706433", "0x7f.1", "::1"]
)
def test_odd_ways_to_write_an_internal_address_are_seen(host):
    assert is_private_host(host)


@pytest.mark.parametrize("host", ["8.8.8.8", "troth.example", "2606:4700::1111"])
def test_names_and_public_addresses_are_no_internal_ones(host):
    assert not is_private_host(host)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:7f00:1]"]
)
async def test_a_guarded_transport_neither_asks_nor_tells_them_anything(host):
    """The server there is real: without the guard it would answer."""
    async with http_transport("127.0.0.1", 0) as inside:
        inside.hold(BLOB, DATA)
        inside.release(BLOB.round)
        port = inside.endpoint.rsplit(":", 1)[1]
        endpoint = f"http://{host}:{port}"
        async with http_reader(is_guarded=True) as ours:
            with pytest.raises(FetchError, match=r"no public address|not a canonical IPv4"):
                await ours.fetch(BLOB, [endpoint], len(DATA), bytes)
        async with http_transport("", 0, is_guarded=True) as ours:
            ours.hold(BLOB, DATA)
            ours.release(BLOB.round)
            (result,) = await ours.push(BLOB.round, [endpoint])
            assert "no public address" in str(result.error) or "canonical" in str(result.error)
        if host in ("127.0.0.1", "localhost"):
            async with http_reader() as ours:
                assert await ours.fetch(BLOB, [endpoint], len(DATA), bytes) == DATA
