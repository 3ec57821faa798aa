"""A hub takes bytes from strangers. Each test says what one of them does to it."""

import asyncio
import contextlib
from dataclasses import replace

import aiohttp
import pytest
from support import blobs, disks
from support.audit_views import audit_view
from support.headers import HEADER, SEED
from support.recorded import parsed
from support.run_files import make_run
from support.views import BALLOT, network, round_view, run_view
from yarl import URL

from troth_attestation import header as headers
from troth_attestation.openings import openings_root
from troth_client.hub.follow import Follower
from troth_client.hub.keeping import MAX_SET_BYTES, BoundedFiles, KeptSets
from troth_client.hub.metrics import metrics
from troth_client.hub.states import KeptStates
from troth_client.network.expecting import expect_submissions
from troth_client.run_files.files import LIMITS, KeptFiles
from troth_client.run_files.push import push_files
from troth_client.runtime.files import DiskFullError
from troth_client.state.unneeded import NUM_VIEWS
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.blob_cache import BlobCache
from troth_client.transport.bounded import BoundedBlobs
from troth_client.transport.errors import BlobRefusedError
from troth_client.transport.exchange import Patience
from troth_client.transport.http import http_reader
from troth_client.transport.quota import Quota
from troth_client.transport.server import BlobServer, Extras
from troth_coordinator.rules.phase import Phase

BLOB, DATA = blobs.payload(leaves=40)
SET = b"an opening set" * 1000
ROOT = openings_root(SET)
SET_BLOB = BlobId(0, BlobKind.OPENINGS, ROOT)
ROOM = 10 * len(DATA)


class Hub:
    """The server and the folders of a hub, without a chain."""

    def __init__(self, folder, quota_bytes=ROOM, max_bytes=ROOM, files=None):
        self.blobs = BoundedBlobs(folder, max_bytes)
        self.sets = KeptSets(folder / "sets", max_bytes)
        self.cache, self.quota = BlobCache(self.blobs), Quota(quota_bytes)
        self.cache.show(self.sets)
        if files is not None:
            self.cache.show_files(files)
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
        hub.sets.want([ROOT], 1)
        assert await hub.push(BLOB, bytes(len(DATA))) == 422
        assert await hub.push(SET_BLOB, bytes(len(SET))) == 422
        assert hub.blobs.num_bytes + hub.sets.num_bytes == 0
        assert await hub.push(BLOB, DATA) == 201
        assert await hub.push(SET_BLOB, SET) == 201
        assert await hub.read(f"/v1/{BLOB.address}") == DATA
        assert await hub.read(f"/v1/{SET_BLOB.address}") == SET


async def test_a_huge_body_is_refused_before_it_is_read(tmp_path):
    async with Hub(tmp_path) as hub:
        hub.sets.want([ROOT], 1)
        port = URL(hub.url).port
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
        hub.sets.want([ROOT], 1)
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
        for slot in range(NUM_VIEWS + 1):
            again.sets.want([], slot)
        assert await again.read(f"/v1/{SET_BLOB.address}") is None
        assert again.sets.num_bytes == 0


async def test_a_set_that_the_disk_spoilt_is_not_served(tmp_path):
    async with Hub(tmp_path) as hub:
        hub.sets.want([ROOT], 1)
        await hub.push(SET_BLOB, SET)
        (tmp_path / "sets" / ROOT.hex()).write_bytes(bytes(len(SET)))
        assert await hub.read(f"/v1/{SET_BLOB.address}") is None


async def test_metrics_count_what_was_answered(tmp_path):
    async with Hub(tmp_path) as hub:
        hub.cache.expect(BLOB, len(DATA), bytes)
        await hub.push(BLOB, DATA)
        await hub.read(f"/v1/{BLOB.address}")
        found = parsed((await hub.read("/metrics")).decode())
        assert found['troth_hub_answers_total{method="POST",status="201"}'] == 1
        assert found["troth_hub_received_bytes_total"] == len(DATA)
        assert found["troth_hub_sent_bytes_total"] == len(DATA)
        assert found["troth_hub_round_bytes"] == len(DATA)


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"])
async def test_a_proxy_on_this_machine_shows_nobody_the_metrics(tmp_path, name):
    """To the hub, all who come through it are callers on this machine."""
    async with Hub(tmp_path) as hub:
        assert await hub.read("/metrics") is not None
        async with hub.session.get(f"{hub.url}/metrics", headers={name: "127.0.0.1"}) as answer:
            assert answer.status == 404


async def test_a_full_disk_is_no_reason_to_keep_rounds_in_memory(tmp_path):
    """The bound of the folder is larger than the disk: then the disk is the bound."""
    payload, data = blobs.payload(round_=1, leaves=1024)
    with disks.small_disk(tmp_path / "disk", "2900k") as disk:
        kept = BoundedBlobs(disk, 10**9)
        kept.put(payload, data)
        other, more = blobs.payload(round_=1, leaves=1024, seed=1)
        with pytest.raises(DiskFullError, match="free"):
            kept.put(other, more)
        assert kept.get(other.address) is None
        newer, newest = blobs.payload(round_=2, leaves=1024, seed=2)
        kept.put(newer, newest)  # in place of the older round
        assert kept.get(newer.address) == newest
        assert kept.get(payload.address) is None


async def test_large_sets_of_one_keep_nobody_elses_out(tmp_path):
    """A trainer may post the root of any bytes: 64 MiB of them, for each of its audits."""
    large, small = [bytes([at]) * 4000 for at in range(2)], [bytes([at]) * 900 for at in range(4)]
    roots = {openings_root(one): one for one in [*large, *small]}
    sets = KeptSets(tmp_path, 8000)
    sets.want(roots, 1)
    for root, data in roots.items():
        sets.accept(root, data)
        assert sets.num_bytes <= 8000
    assert [len(one) for root, one in roots.items() if sets.shown(root)] == [4000, *[900] * 4]
    with pytest.raises(DiskFullError, match="--max-gb"):
        sets.accept(next(iter(roots)), large[0])  # no larger set than its own gives way


def test_a_set_that_nobody_wants_gives_way_to_one_that_is_wanted(tmp_path):
    old, new = bytes(900), b"n" * 900
    sets = KeptSets(tmp_path, 1000)
    sets.want([openings_root(old)], 1)
    sets.accept(openings_root(old), old)
    sets.want([openings_root(new)], 2)
    assert sets.shown(openings_root(old)) == old
    sets.accept(openings_root(new), new)
    assert sets.shown(openings_root(old)) is None
    assert sets.num_bytes == 900


class Audits:
    """A tracker of these audits."""

    def __init__(self, *open_audits):
        self.open = open_audits

    async def refresh(self, _view):
        """There is nothing to read."""

    def audits(self, _view):
        return list(self.open)


def follower_at(folder, tracker):
    cache, sets = BlobCache(BoundedBlobs(folder, 2000)), KeptSets(folder / "sets", ROOM)
    files = KeptFiles(folder, bytes(32), bytes(32))
    states = KeptStates(folder / "states", files, bytes(32), 1)
    return Follower(None, None, cache, sets, states, tracker, 1, 1000)


async def test_a_hub_keeps_a_set_through_views_that_step_back(tmp_path):
    """An RPC node that lags shows the audit before its root was posted; nobody pushes it again."""
    posted = Audits(audit_view(openings_root=ROOT))
    follower = follower_at(tmp_path, posted)
    view = network(run=run_view(round=205))
    await follower.take(view)
    follower.sets.accept(ROOT, SET)
    for slot in range(2 * NUM_VIEWS):
        is_behind = slot % NUM_VIEWS < NUM_VIEWS - 1
        follower.tracker = Audits(audit_view()) if is_behind else posted
        await follower.take(replace(view, slot=slot))
    assert follower.sets.shown(ROOT) == SET
    follower.tracker = Audits()
    for slot in (NUM_VIEWS, 10**18):
        await follower.take(replace(view, slot=slot))
    assert follower.sets.shown(ROOT) == SET, "a slot that a node made up counts once"
    for slot in range(NUM_VIEWS):
        await follower.take(replace(view, slot=slot))
    assert follower.sets.shown(ROOT) is None


@pytest.mark.parametrize(("num_bytes", "is_kept"), [(250, True), (251, False)])
async def test_a_payload_has_its_trainers_part_of_the_hubs_room(tmp_path, num_bytes, is_kept):
    """Two payloads of half the room were a round without the others', and without older rounds."""
    signed = replace(HEADER, payload_bytes=num_bytes)
    data = headers.encode(signed) + headers.sign(signed, SEED)
    address = headers.header_hash(signed)
    round_ = round_view({0: replace(BALLOT, header_hash=address)}, committed=0b1111, round=205)
    view = network(run=run_view(round=205, phase=Phase.ATTEST), round_=round_)
    follower = follower_at(tmp_path, Audits())
    cache = follower.cache
    await follower.take(view)
    with contextlib.nullcontext() if is_kept else pytest.raises(BlobRefusedError, match="--max-gb"):
        cache.judge(f"header/{address.hex()}", data)
    payload = BlobId(HEADER.round, BlobKind.PAYLOAD, HEADER.payload_root)
    assert list(cache.welcome(payload.address)) == ([num_bytes] if is_kept else [])


async def test_a_hub_that_restarts_after_a_header_takes_its_payload(tmp_path):
    """The payload is expected because of the header, which the hub has by now."""
    named = replace(HEADER, round=BLOB.round, payload_root=BLOB.key, payload_bytes=len(DATA))
    data = headers.encode(named) + headers.sign(named, SEED)
    header = BlobId(BLOB.round, BlobKind.HEADER, headers.header_hash(named))
    ballots = {0: replace(BALLOT, header_hash=header.key)}
    round_ = round_view(ballots, committed=1, round=BLOB.round)

    def expect(cache):
        expect_submissions(cache, round_, lambda *_: None)

    async with Hub(tmp_path) as hub:
        expect(hub.cache)
        assert await hub.push(header, data) == 201
    async with Hub(tmp_path) as again:
        expect(again.cache)
        assert await again.push(header, data) == 200
        assert await again.push(BLOB, DATA) == 201


@pytest.mark.parametrize(("is_small", "num_refused"), [(True, 0), (False, 6)])
async def test_the_files_of_the_run_are_kept_if_there_is_room(tmp_path, is_small, num_refused):
    """A data set that is too large is refused before a byte of it is sent."""
    run = make_run(tmp_path / "data")
    hashes = run.config.config_hash(), run.manifest.hash
    small = sum(LIMITS.values())
    room = small + 2**22 if is_small else small + 2**20
    files = BoundedFiles(tmp_path / "hub" / "files", hashes, room)
    async with (
        Hub(tmp_path / "hub", 2**30, files=files) as hub,
        http_reader() as giver,
        http_reader() as taker,
    ):
        giver.show_files(run.kept())
        pushed = await push_files(giver, run.kept(), hub.url, lambda _: None)
        assert pushed.error is None
        assert len(pushed.refused) == num_refused
        config = BlobId(0, BlobKind.CONFIG, run.config.config_hash())
        found = await taker.fetch(config, [hub.url], LIMITS[BlobKind.CONFIG], bytes)
        assert found == run.config.canonical_json()
    again = BoundedFiles(tmp_path / "hub" / "files", hashes, room)
    shards = (*run.manifest.train, *run.manifest.validation)
    assert len(again.data.missing(shards)) == num_refused


async def test_files_of_another_run_are_not_kept(tmp_path):
    run = make_run(tmp_path / "data")
    files = BoundedFiles(tmp_path / "hub" / "files", (bytes(32), bytes(32)), 2**30)
    async with Hub(tmp_path / "hub", 2**30, files=files) as hub, http_reader() as giver:
        giver.show_files(run.kept())
        pushed = await push_files(giver, run.kept(), hub.url, lambda _: None)
        assert pushed.num_accepted == 0
    assert not (tmp_path / "hub" / "files").exists()
