"""A transport that only fetches: it listens nowhere, and gets blobs like any other."""

import pytest

from troth_client.compression.codec import payload_root
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.http import http_reader, http_transport

PAYLOAD = b"payload" * 100
BLOB = BlobId(0, BlobKind.PAYLOAD, payload_root(PAYLOAD))


async def test_it_fetches_what_another_serves():
    async with http_transport("127.0.0.1", 0) as holder, http_reader() as reader:
        holder.hold(BLOB, PAYLOAD)
        holder.release(0)
        assert await reader.fetch(BLOB, [holder.endpoint], len(PAYLOAD), bytes) == PAYLOAD
        assert reader.endpoint == ""


async def test_it_opens_no_socket_to_listen_on(monkeypatch):
    def refuse(*_, **__):
        pytest.fail("it listens")

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.create_server", refuse)
    async with http_reader() as reader:
        assert reader.endpoint == ""
