"""Object stores as holders: a real S3 server, and programs that speak S3 and misbehave."""

import asyncio
import re
from types import SimpleNamespace

import httpx
import pytest
from solders.pubkey import Pubkey
from support import blobs
from support.holders import Hostile, hang, says
from support.run_files import make_run
from support.stores import BUCKET, FIXTURES, KEYS, aim_at
from support.waiting import ANSWER_SECONDS

from troth_cli.workflows.members import Members
from troth_client.run_files.fetch import fetch_config, fetch_manifest, fetch_shards
from troth_client.run_files.folder import DataFolder
from troth_client.run_files.push import push_files
from troth_client.runtime.base import ProcessRuntime
from troth_client.steps.publish import Outbox
from troth_client.telemetry.events import EventList
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.endpoint import check_store
from troth_client.transport.errors import (
    EndpointError,
    FetchError,
    HolderClosedError,
    HolderError,
    HolderLiedError,
)
from troth_client.transport.exchange import Patience
from troth_client.transport.http import http_reader, http_transport
from troth_client.transport.parallel import Source
from troth_client.transport.store import StoreWire
from troth_client.transport.wire import Partial
from troth_coordinator.chain.client import CoordinatorClient

(s3,) = FIXTURES
QUICK = Patience(grace_seconds=2.0, floor_bytes_per_second=1e9, hedge_seconds=0.15)
NO_HEDGE = Patience(grace_seconds=ANSWER_SECONDS, floor_bytes_per_second=1e9, hedge_seconds=30)
BLOB, DATA = blobs.payload(leaves=200)
PREFIX = f"{BUCKET}/run-1"


def object_url(server, blob, prefix="run-1"):
    return f"{server}/troth/{prefix}/{blob.address}"


class RpcOfLocalnet:
    """A node of no public cluster, as far as a transport asks."""

    async def genesis_hash(self):
        return bytes(32)


def reader(patience=NO_HEDGE):
    taker = http_reader(patience)
    taker.use_stores([PREFIX], signs=True)
    return taker


async def put(server, blob, data, prefix="run-1"):
    """Put any bytes under any name, for all to read, as another writer may."""
    async with httpx.AsyncClient(timeout=ANSWER_SECONDS) as client:
        url, public = object_url(server, blob, prefix), {"x-amz-acl": "public-read"}
        (await client.put(url, content=data, headers=public)).raise_for_status()


async def test_what_one_pushes_to_a_store_another_fetches(s3, monkeypatch):
    aim_at(monkeypatch, s3)
    blob, data = blobs.payload(seed=1, leaves=300)
    header, signed = blobs.header(seed=1)
    async with http_transport("127.0.0.1", 0) as giver, reader() as taker:
        giver.use_stores([PREFIX], signs=True)
        giver.hold(blob, data)
        giver.hold(header, signed)
        giver.release(5)
        (pushed,) = await giver.push(5, [PREFIX])
        assert pushed.num_accepted == 2
        assert await taker.fetch(blob, [PREFIX], len(data), bytes) == data
        assert await taker.fetch(header, [PREFIX], len(signed), blobs.signed) == signed


async def test_nothing_reaches_a_store_before_its_round_is_released(s3, monkeypatch):
    aim_at(monkeypatch, s3)
    blob, data = blobs.payload(seed=2)
    async with http_transport("127.0.0.1", 0) as giver:
        giver.use_stores([PREFIX], signs=True)
        giver.hold(blob, data)
        with pytest.raises(Exception, match="round 5 to be released"):
            await giver.push(5, [PREFIX])
    async with httpx.AsyncClient(timeout=ANSWER_SECONDS) as client:
        assert (await client.head(object_url(s3, blob))).status_code == 404


async def test_a_reader_needs_no_credentials_and_writes_nothing(s3, monkeypatch):
    aim_at(monkeypatch, s3, writes=False)
    await put(s3, BLOB, DATA)
    wire, part = StoreWire(ANSWER_SECONDS, signs=True), Partial(len(DATA))
    await wire.read(PREFIX, BLOB, part)
    assert part.data == DATA
    with pytest.raises(HolderClosedError):
        await wire.write(PREFIX, BLOB, DATA)


async def test_reading_goes_on_where_another_holder_stopped(s3, monkeypatch):
    aim_at(monkeypatch, s3, writes=False)
    await put(s3, BLOB, DATA)
    part = Partial(len(DATA), DATA[:70_000], ("another",))
    await StoreWire(ANSWER_SECONDS, signs=True).read(PREFIX, BLOB, part)
    assert part.data == DATA
    assert part.sources == ("another", PREFIX)


async def test_false_bytes_cost_the_store_its_rank_and_a_writer_replaces_them(s3, monkeypatch):
    aim_at(monkeypatch, s3)
    blob, data = blobs.payload(seed=3)
    await put(s3, blob, bytes(len(data)))
    async with reader() as taker:
        with pytest.raises(FetchError) as found:
            await taker.fetch(blob, [PREFIX], len(data), bytes)
        assert blobs.reasons(found.value) == {PREFIX: "HolderLiedError"}
        assert taker.scores.faults(PREFIX) >= 8
        await StoreWire(ANSWER_SECONDS, signs=True).write(PREFIX, blob, data)
        assert await taker.fetch(blob, [PREFIX], len(data), bytes) == data


async def test_bytes_that_are_there_are_neither_read_nor_written_again(s3, monkeypatch):
    """Each member offers each piece of a checkpoint; the size alone would not show false bytes."""
    aim_at(monkeypatch, s3)
    wire, (blob, data) = StoreWire(ANSWER_SECONDS, signs=True), blobs.payload(seed=4)
    await wire.write(PREFIX, blob, data)

    async def moved(*_, **__):
        pytest.fail("bytes moved")

    monkeypatch.setattr(StoreWire, "read", moved)
    monkeypatch.setattr("obstore.put_async", moved)
    await wire.write(PREFIX, blob, data)


async def fetched_from(store, transport):
    """Fetch from a store that has the bytes; return whether the request was signed."""
    async with transport as taker:
        assert await taker.fetch(BLOB, [PREFIX], len(DATA), bytes) == DATA
    (head,) = store.heads
    return "authorization:" in head.lower()


@pytest.mark.parametrize(
    ("named", "is_signed"),
    [((False,), False), ((True,), True), ((True, False), True), ((False, True), True)],
)
async def test_credentials_are_for_stores_that_the_user_named(monkeypatch, named, is_signed):
    async with Hostile(says(answer(200, len(DATA), DATA))) as store:
        aim_at(monkeypatch, store.endpoint)
        taker = http_reader(NO_HEDGE)
        for signs in named:
            taker.use_stores([PREFIX], signs=signs)
        assert await fetched_from(store, taker) == is_signed


@pytest.mark.parametrize("is_own", [True, False])
async def test_who_fetches_signs_nothing_for_a_store_of_the_config(monkeypatch, is_own):
    """The run's config names a store of its author, who would read the watchers' names there."""
    client = CoordinatorClient(RpcOfLocalnet())
    async with Hostile(says(answer(200, len(DATA), DATA))) as store:
        aim_at(monkeypatch, store.endpoint)
        members = Members(client, Pubkey.default(), 1.0, [PREFIX] if is_own else [])
        members.ask_also([PREFIX])
        assert await fetched_from(store, await members.transport()) == is_own


async def test_a_store_that_a_config_names_is_read_and_never_written(s3, monkeypatch):
    aim_at(monkeypatch, s3)
    await put(s3, BLOB, DATA)
    wire, part = StoreWire(ANSWER_SECONDS, signs=False), Partial(len(DATA))
    await wire.read(PREFIX, BLOB, part)
    assert part.data == DATA
    with pytest.raises(HolderClosedError):
        await wire.write(PREFIX, BLOB, DATA)


@pytest.mark.parametrize("change", [lambda data: data + b"x", lambda data: data[:-1]])
async def test_an_object_of_another_size_is_refused_before_it_is_read(s3, monkeypatch, change):
    aim_at(monkeypatch, s3, writes=False)
    blob, data = blobs.payload(seed=4)
    await put(s3, blob, change(data))
    part = Partial(len(data))
    with pytest.raises(HolderLiedError, match=f"{len(change(data))}"):
        await StoreWire(ANSWER_SECONDS, signs=True).read(PREFIX, blob, part)
    assert part.data == b""


async def test_a_file_of_unknown_size_is_read_up_to_its_bound(s3, monkeypatch):
    aim_at(monkeypatch, s3, writes=False)
    blob = BlobId(0, BlobKind.CONFIG, bytes(32))
    await put(s3, blob, b"{}")
    part = Partial(64, is_exact=False)
    await StoreWire(ANSWER_SECONDS, signs=True).read(PREFIX, blob, part)
    assert part.data == b"{}"
    with pytest.raises(HolderLiedError):
        await StoreWire(ANSWER_SECONDS, signs=True).read(PREFIX, blob, Partial(1, is_exact=False))


async def test_the_files_of_a_run_travel_over_a_store(s3, monkeypatch, tmp_path):
    aim_at(monkeypatch, s3)
    run = make_run(tmp_path / "data")
    async with reader() as giver, reader() as taker:
        giver.show_files(run.kept())
        pushed = await push_files(giver, run.kept(), PREFIX, lambda _: None)
        assert pushed.refused == []
        assert pushed.error is None

        async def holders():
            return [PREFIX]

        source = Source(taker, ProcessRuntime(0.0), EventList(), holders, lambda: True)
        folder = tmp_path / "fetched"
        assert await fetch_config(source, folder, run.config.config_hash()) == run.config
        manifest = await fetch_manifest(source, folder, run.manifest.hash)
        data = DataFolder(folder, manifest)
        data.take_up()
        await fetch_shards(source, data, manifest.train)
    for shard in run.manifest.train:
        assert (folder / shard.file).read_bytes() == (run.folder / shard.file).read_bytes()


async def test_what_is_not_there_is_lacked_and_costs_no_rank(s3, monkeypatch):
    aim_at(monkeypatch, s3)
    async with reader() as taker:
        with pytest.raises(FetchError) as found:
            await taker.fetch(blobs.payload(seed=5)[0], [PREFIX], 3072, bytes)
        assert blobs.reasons(found.value) == {PREFIX: "HolderLacksError"}
        assert taker.scores.faults(PREFIX) == 0


HEAD = 'HTTP/1.1 {} X\r\nETag: "x"\r\nLast-Modified: Mon, 23 Nov 2026 00:00:00 GMT\r\n'


def answer(status, num_bytes, body=b""):
    head = f"{HEAD.format(status)}Connection: close\r\nContent-Length: {num_bytes}\r\n\r\n"
    return head.encode() + body


async def stall(_, writer, __):
    writer.write(answer(200, len(DATA), DATA[:70_000]))
    await writer.drain()
    await hang()


REFUSED = b"<Error><Code>AccessDenied</Code><Message>verysecret</Message></Error>"
BEHAVIOURS = {
    "accepts and says nothing": (hang, "HolderSilentError"),
    "stalls half-way": (stall, "HolderSilentError"),
    "closes at once": (says(), "HolderUnreachableError"),
    "closes half-way": (says(answer(200, len(DATA), DATA[:70_000])), "HolderTruncatedError"),
    "answers 403": (says(answer(403, len(REFUSED), REFUSED)), "HolderLacksError"),
    "answers 503": (says(answer(503, 0)), "HolderUnreachableError"),
    "announces 10 GB": (says(answer(200, 10 * 2**30, DATA)), "HolderLiedError"),
    "is not HTTP": (says(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "HolderUnreachableError"),
}


@pytest.mark.parametrize("what", BEHAVIOURS)
async def test_a_store_that_fails_costs_one_try_in_bounded_time(what, monkeypatch):
    behave, error = BEHAVIOURS[what]
    async with Hostile(behave) as bad, reader(QUICK) as taker:
        aim_at(monkeypatch, bad.endpoint)
        async with asyncio.timeout(30):
            with pytest.raises(FetchError) as found:
                await taker.fetch(BLOB, [PREFIX], len(DATA), bytes)
        assert blobs.reasons(found.value) == {PREFIX: error}
        assert len(bad.heads) == 1, "no retries of its own"
        assert not any(key in str(found.value) for key in KEYS.values())


async def test_a_store_that_is_down_is_unreachable(monkeypatch):
    aim_at(monkeypatch, "http://127.0.0.1:9")
    for work in (
        StoreWire(ANSWER_SECONDS, signs=True).read(PREFIX, BLOB, Partial(len(DATA))),
        StoreWire(ANSWER_SECONDS, signs=True).write(PREFIX, BLOB, DATA),
    ):
        with pytest.raises(HolderError) as found:
            await work
        assert type(found.value).__name__ == "HolderUnreachableError"


async def test_credentials_that_may_not_write_close_the_store_for_us(monkeypatch):
    async def deny(holder, writer, head):
        length = re.search(r"(?i)content-length: (\d+)", head)
        await holder.reader.readexactly(int(length[1]) if length else 0)
        writer.write(answer(403, len(REFUSED), REFUSED))

    async with Hostile(deny) as bad:
        aim_at(monkeypatch, bad.endpoint)
        with pytest.raises(HolderClosedError) as found:
            await StoreWire(ANSWER_SECONDS, signs=True).write(PREFIX, BLOB, DATA)
    assert "verysecret" not in str(found.value)
    assert found.value.__cause__ is None


async def test_who_may_not_write_offers_a_payload_once_and_waits_for_nothing(monkeypatch):
    """Else a trainer without credentials would be late in each round."""
    aim_at(monkeypatch, "http://127.0.0.1:9", writes=False)
    events = EventList()
    async with http_transport("127.0.0.1", 0) as giver:
        giver.use_stores([PREFIX], signs=True)
        giver.hold(BLOB, DATA)
        giver.release(5)
        ours = SimpleNamespace(transport=giver, state=SimpleNamespace(events=events))
        box = Outbox(ours, 5, [PREFIX], 1)
        await box.offer()
        assert giver.scores.faults(PREFIX) == 0, "it is read as before"
    assert box.is_empty
    assert not box.may_be_taken
    assert not events.named("published")


async def test_an_endpoint_on_chain_is_never_taken_for_a_store(tmp_path):
    """A member announces a folder or a bucket as its endpoint: nobody reads or writes there."""
    folder = f"file://{tmp_path}"
    async with http_transport("127.0.0.1", 0) as ours:
        ours.hold(BLOB, DATA)
        ours.release(5)
        results = await ours.push(5, [folder, BUCKET])
    assert [type(one.error).__name__ for one in results] == ["HolderUnreachableError"] * 2
    assert list(tmp_path.iterdir()) == []


async def test_a_folder_is_a_store_for_who_names_it(tmp_path):
    folder = f"file://{tmp_path}/store"
    await StoreWire(ANSWER_SECONDS, signs=True).write(folder, BLOB, DATA)
    assert (tmp_path / "store" / BLOB.address).read_bytes() == DATA
    part = Partial(len(DATA), DATA[:70_000])
    await StoreWire(ANSWER_SECONDS, signs=True).read(folder, BLOB, part)
    assert part.data == DATA


@pytest.mark.parametrize(
    "url", ["s3://bucket", "s3://bucket/a/b", "gs://b.c/d", "az://box/p", "file:///srv/troth"]
)
def test_the_address_of_a_store(url):
    check_store(url)


@pytest.mark.parametrize(
    "url",
    [
        "s3://",
        "s3:///prefix",
        "s3://key:verysecret@bucket/prefix",
        "s3://bucket/prefix?endpoint=http://10.0.0.1",
        "s3://bucket:80/prefix",
        "s3://bucket/../other",
        "s3://bucket/" + "a" * 90,
        "file://",
        "file://host/folder",
        "https://bucket.s3.amazonaws.com",
    ],
)
def test_no_address_of_a_store(url):
    with pytest.raises(EndpointError) as found:
        check_store(url)
    assert "verysecret" not in str(found.value)
