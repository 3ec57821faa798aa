"""A hub takes bytes from strangers. Each test says what one of them does to it."""

import asyncio

import aiohttp
import pytest
from support import blobs

from troth_attestation.openings import openings_root
from troth_client.hub.keeping import MAX_SET_BYTES, KeptSets
from troth_client.hub.metrics import metrics
from troth_client.runtime.files import DiskFullError
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.blob_cache import BlobCache
from troth_client.transport.bounded import BoundedBlobs
from troth_client.transport.exchange import Patience
from troth_client.transport.quota import Quota
from troth_client.transport.server import BlobServer, Extras

BLOB, DATA = blobs.payload(leaves=40)
SET = b"an opening set" * 1000
ROOT = openings_root(SET)
SET_BLOB = BlobId(0, BlobKind.OPENINGS, ROOT)
ROOM = 10 * len(DATA)


class Hub:
    """The server and the folders of a hub, without a chain."""

    def __init__(self, folder, quota_bytes=ROOM, max_bytes=ROOM):
        self.blobs = BoundedBlobs(folder, max_bytes)
        self.sets = KeptSets(folder / "sets", max_bytes)
        self.cache, self.quota = BlobCache(self.blobs), Quota(quota_bytes)
        self.cache.show(self.sets)
        self.cache.release(BLOB.round)
        pages = {
            "/metrics": lambda: metrics(self.server.tally, {"round_bytes": self.blobs.num_bytes})
        }
        self.server = BlobServer(self.cache, Patience(), Extras(self.quota, pages))

    async def __aenter__(self):
        self.url = f"http://127.0.0.1:{await self.server.start('127.0.0.1', 0)}"
        self.session = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_):
        await self.session.close()
        await self.server.stop()

    async def push(self, blob, data):
        async with self.session.post(f"{self.url}/v1/{blob.address}", data=data) as answer:
            return answer.status

    async def read(self, path):
        """The bytes at a path; None if there are none."""
        async with self.session.get(self.url + path) as answer:
            assert answer.status in (200, 404)
            return await answer.read() if answer.status == 200 else None


async def test_false_bytes_and_bytes_that_nobody_named_are_not_kept(tmp_path):
    async with Hub(tmp_path) as hub:
        assert await hub.push(BLOB, DATA) == 409
        assert await hub.push(SET_BLOB, SET) == 409
        hub.cache.expect(BLOB, len(DATA), bytes)
        hub.sets.want([ROOT])
        assert await hub.push(BLOB, bytes(len(DATA))) == 422
        assert await hub.push(SET_BLOB, bytes(len(SET))) == 422
        assert hub.blobs.num_bytes + hub.sets.num_bytes == 0
        assert await hub.push(BLOB, DATA) == 201
        assert await hub.push(SET_BLOB, SET) == 201
        assert await hub.read(f"/v1/{BLOB.address}") == DATA
        assert await hub.read(f"/v1/{SET_BLOB.address}") == SET


async def test_a_huge_body_is_refused_before_it_is_read(tmp_path):
    async with Hub(tmp_path) as hub:
        hub.sets.want([ROOT])
        port = int(hub.url.rsplit(":", 1)[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /v1/{SET_BLOB.address} HTTP/1.1\r\nHost: x\r\n"
        writer.write(f"{head}Content-Length: {MAX_SET_BYTES + 1}\r\n\r\n".encode())
        assert b" 413 " in await asyncio.wait_for(reader.read(), 5)
        writer.close()


async def test_one_address_has_a_quota_that_each_round_renews(tmp_path):
    async with Hub(tmp_path, quota_bytes=3 * len(DATA)) as hub:
        hub.cache.expect(BLOB, len(DATA), bytes)
        answers = [await hub.push(BLOB, bytes(len(DATA))) for _ in range(5)]
        assert answers == [422, 422, 422, 429, 429], "false bytes count: they were received"
        hub.quota.renew()
        assert await hub.push(BLOB, DATA) == 201


async def test_a_full_folder_drops_its_oldest_round_and_never_grows(tmp_path):
    kept = BoundedBlobs(tmp_path, 3 * len(DATA))
    blobs_of = [blobs.payload(round_=at, leaves=40, seed=at) for at in range(5)]
    for blob, data in blobs_of:
        kept.put(blob, data)
        assert kept.num_bytes <= 3 * len(DATA)
    found = [blob.round for blob, _ in blobs_of if kept.get(blob.address)]
    assert found == [2, 3, 4]
    late, data = blobs.payload(round_=1, leaves=40, seed=9)
    with pytest.raises(DiskFullError, match="--max-gb"):
        kept.put(late, data)  # an old round takes no newer one's place


async def test_a_full_disk_is_said_to_the_sender(tmp_path):
    async with Hub(tmp_path, max_bytes=len(DATA) - 1) as hub:
        hub.cache.expect(BLOB, len(DATA), bytes)
        assert await hub.push(BLOB, DATA) == 507
        assert await hub.read(f"/v1/{BLOB.address}") is None


async def test_a_restart_keeps_what_was_whole(tmp_path):
    async with Hub(tmp_path) as hub:
        hub.cache.expect(BLOB, len(DATA), bytes)
        hub.sets.want([ROOT])
        await hub.push(BLOB, DATA)
        await hub.push(SET_BLOB, SET)
    half = tmp_path / "served" / str(BLOB.round) / "payload-00.tmp"
    half.write_bytes(b"half")  # as kill -9 leaves it
    (tmp_path / "sets" / f"{'0' * 64}.tmp").write_bytes(b"half")
    async with Hub(tmp_path) as again:
        assert again.blobs.num_bytes == len(DATA)
        assert again.sets.num_bytes == len(SET)
        assert not half.exists()
        assert await again.read(f"/v1/{BLOB.address}") == DATA
        assert await again.read(f"/v1/{SET_BLOB.address}") == SET
        again.sets.want([])
        assert await again.read(f"/v1/{SET_BLOB.address}") is None
        assert again.sets.num_bytes == 0


async def test_a_set_that_the_disk_spoilt_is_not_served(tmp_path):
    async with Hub(tmp_path) as hub:
        hub.sets.want([ROOT])
        await hub.push(SET_BLOB, SET)
        (tmp_path / "sets" / ROOT.hex()).write_bytes(bytes(len(SET)))
        assert await hub.read(f"/v1/{SET_BLOB.address}") is None


async def test_metrics_count_what_was_answered(tmp_path):
    async with Hub(tmp_path) as hub:
        hub.cache.expect(BLOB, len(DATA), bytes)
        await hub.push(BLOB, DATA)
        await hub.read(f"/v1/{BLOB.address}")
        lines = (await hub.read("/metrics")).decode().splitlines()
        assert 'troth_hub_answers_total{method="POST",status="201"} 1' in lines
        assert f"troth_hub_received_bytes_total {len(DATA)}" in lines
        assert f"troth_hub_sent_bytes_total {len(DATA)}" in lines
        assert f"troth_hub_round_bytes {len(DATA)}" in lines


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"])
async def test_a_proxy_on_this_machine_shows_nobody_the_metrics(tmp_path, name):
    """To the hub, all who come through it are callers on this machine."""
    async with Hub(tmp_path) as hub:
        assert await hub.read("/metrics") is not None
        async with hub.session.get(f"{hub.url}/metrics", headers={name: "127.0.0.1"}) as answer:
            assert answer.status == 404
