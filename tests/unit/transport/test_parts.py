"""The parts below the contract: scores, endpoints, folders that outlive a process."""

import shutil

import pytest
from support import blobs

from troth_client.transport.blob_cache import BlobCache, MemoryBlobs
from troth_client.transport.endpoint import check_endpoint
from troth_client.transport.errors import (
    EndpointError,
    EndpointInUseError,
    FetchError,
    HolderLacksError,
    HolderLiedError,
    HolderSilentError,
)
from troth_client.transport.files import FolderBlobs
from troth_client.transport.http import http_transport
from troth_client.transport.memory import MemoryNetwork, memory_transport
from troth_client.transport.scores import MOST_HOLDERS, HolderScores
from troth_client.transport.wire import Partial


def test_scores_put_liars_last_and_forgive_slowly():
    scores = HolderScores()
    scores.failed("liar", HolderLiedError("", "", ""))
    scores.failed("slow", HolderSilentError("", "", ""))
    scores.failed("new", HolderLacksError("", "", ""))
    assert scores.ranked(["liar", "slow", "new", "liar", "other"]) == [
        "new",
        "other",
        "slow",
        "liar",
    ]
    before = scores.faults("liar")
    scores.delivered("liar")
    assert 0 < scores.faults("liar") < before
    for _ in range(100):
        scores.failed("liar", HolderLiedError("", "", ""))
    assert scores.faults("liar") == 64  # a handful of deliveries is enough to come back


def test_scores_of_endpoints_that_came_and_went_are_forgotten():
    scores = HolderScores()
    for number in range(MOST_HOLDERS + 1):
        scores.failed(str(number), HolderSilentError("", "", ""))
    assert scores.faults("0") == 0
    assert scores.faults("1") > 0
    for _ in range(4):
        scores.delivered("1")
    scores.failed("another", HolderSilentError("", "", ""))
    assert scores.faults("2") > 0, "one that delivers again needs no place"


def test_a_partial_never_holds_more_than_its_size():
    part = Partial(10)
    part.append("a", b"12345")
    with pytest.raises(HolderLiedError, match="10 bytes"):
        part.append("b", b"123456")
    assert bytes(part.data) == b"12345"
    assert part.sources == ("a",)


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "example.org:80",
        "ftp://example.org",
        "file:///etc/passwd",
        "http://",
        "http://user:pw@host:1",
        "http://host:1/path",
        "http://host:1/?q=1",
        "http://host:1/#f",
        "http://host:99999",
        "http://[::1",
        f"http://{'a' * 100}:80",
        "http://xn--:1",
        "http://xn--a\u0308:1",
        "http://\u00e4.example:80",
        "http://\uff41:1",
        "http://host:\u0663",
        "http://host:1\n",
        "http://ho st:1",
        "http://host\x00:1",
    ],
)
def test_endpoints_that_are_not_plain_are_refused(bad):
    with pytest.raises(EndpointError):
        check_endpoint(bad)


def test_plain_endpoints_are_taken():
    assert str(check_endpoint("http://127.0.0.1:8000/")) == "http://127.0.0.1:8000"
    assert str(check_endpoint("https://peer.example.org")) == "https://peer.example.org"


async def test_a_bad_endpoint_among_the_holders_is_one_failure():
    blob, data = blobs.payload()
    async with http_transport("127.0.0.1", 0) as taker:
        with pytest.raises(FetchError) as found:
            await taker.fetch(blob, ["file:///etc/passwd", "nonsense"], len(data), bytes)
    assert list(blobs.reasons(found.value).values()) == ["HolderUnreachableError"] * 2


async def test_an_advertised_endpoint_is_announced_and_checked():
    async with http_transport("127.0.0.1", 0, advertised="https://peer.example.org") as one:
        assert one.endpoint == "https://peer.example.org"
    with pytest.raises(EndpointError):
        async with http_transport("127.0.0.1", 0, advertised="peer"):
            pass


async def test_a_transport_that_was_not_started_says_so():
    blob, data = blobs.payload()
    with pytest.raises(FetchError, match="not"):
        await http_transport("127.0.0.1", 0).fetch(blob, ["http://127.0.0.1:9"], len(data), bytes)


async def test_names_of_a_memory_network_are_taken_once_and_given_back():
    network = MemoryNetwork()
    async with memory_transport(network, "a"):
        with pytest.raises(EndpointInUseError):
            await memory_transport(network, "a").__aenter__()
    async with memory_transport(network, "a"):
        pass


async def test_a_participant_that_is_cut_off_neither_gives_nor_takes():
    network = MemoryNetwork()
    blob, data = blobs.payload()
    async with memory_transport(network, "a") as a, memory_transport(network, "b") as b:
        a.hold(blob, data)
        a.release(5)
        for away in "ab":
            network.cut(away)
            with pytest.raises(FetchError, match="nobody there"):
                await b.fetch(blob, ["a"], len(data), bytes)
            network.mend(away)
        assert await b.fetch(blob, ["a"], len(data), bytes) == data


async def test_pushes_that_nobody_expects_are_refused():
    network = MemoryNetwork()
    blob, data = blobs.payload()
    async with memory_transport(network, "a") as a, memory_transport(network, "b") as b:
        a.hold(blob, data)
        a.release(5)
        (result,) = await a.push(5, ["b"])
        assert result.num_accepted == 0
        assert type(result.error).__name__ == "HolderRefusedError"
        b.expect(blob, len(data), bytes)
        b.drop_before(6)
        (result,) = await a.push(5, ["b"])
        assert result.num_accepted == 0


def stored(network, folder):
    """A participant of the network with its blobs in a folder."""
    return memory_transport(network, folder.name, blobs=FolderBlobs(folder))


async def test_a_folder_survives_a_restart_with_its_gate(tmp_path):
    old, data = blobs.payload(5)
    new, new_data = blobs.payload(6, seed=6)
    network = MemoryNetwork()
    first = stored(network, tmp_path / "a")
    first.hold(old, data)
    first.hold(new, new_data)
    first.release(5)
    async with stored(network, tmp_path / "a") as again, stored(network, tmp_path / "b") as b:
        assert await b.fetch(old, [again.endpoint], len(data), bytes) == data
        with pytest.raises(FetchError, match="nothing"):
            await b.fetch(new, [again.endpoint], len(new_data), bytes)
        again.release(6)
        assert await b.fetch(new, [again.endpoint], len(new_data), bytes) == new_data


def test_a_damaged_file_is_fetched_again(tmp_path):
    store = FolderBlobs(tmp_path)
    blob, data = blobs.payload()
    store.put(blob, data)
    (file,) = (tmp_path / "held" / "5").iterdir()
    file.write_bytes(data[:-1])
    assert store.get(blob.address) == data[:-1]  # the store does not judge; fetch does


def test_a_blob_is_found_by_a_restart_until_its_round_is_dropped(tmp_path):
    first, (one, data), (other, _) = FolderBlobs(tmp_path), blobs.payload(5), blobs.payload(seed=1)
    first.put(one, data)
    first.serve_through(5)
    again = FolderBlobs(tmp_path)
    assert again.served(one.address) == data
    assert again.get(other.address) is None
    again.drop_before(6)
    assert again.get(one.address) is None


def test_no_folder_is_searched_for_a_blob_that_was_never_there(tmp_path):
    """A run keeps hundreds of rounds, and each pushed blob is asked for several times."""
    store, (blob, _) = FolderBlobs(tmp_path / "blobs"), blobs.payload()
    shutil.rmtree(tmp_path / "blobs")
    assert store.get(blob.address) is None


async def test_a_damaged_store_does_not_hide_good_holders(tmp_path):
    blob, data = blobs.payload()
    network = MemoryNetwork()
    async with stored(network, tmp_path / "a") as a, stored(network, tmp_path / "b") as b:
        for one in (a, b):
            one.hold(blob, data)
            one.release(5)
        (tmp_path / "b" / "served" / "5" / blob.address.replace("/", "-")).write_bytes(b"spoilt")
        assert await b.fetch(blob, [a.endpoint], len(data), bytes) == data


async def test_a_file_that_is_too_long_is_a_lie(tmp_path):
    blob, data = blobs.payload()
    network = MemoryNetwork()
    async with stored(network, tmp_path / "a") as a, stored(network, tmp_path / "b") as b:
        a.hold(blob, data)
        a.release(5)
        file = tmp_path / "a" / "served" / "5" / blob.address.replace("/", "-")
        file.write_bytes(data + b"x")
        with pytest.raises(FetchError) as found:
            await b.fetch(blob, [a.endpoint], len(data), bytes)
        assert blobs.reasons(found.value) == {a.endpoint: "HolderLiedError"}


def test_a_blob_cache_forgets_what_it_expected_once_it_has_it():
    cache = BlobCache(MemoryBlobs())
    blob, data = blobs.payload()
    cache.expect(blob, len(data), bytes)
    assert cache.welcome(blob.address) == (len(data),)
    cache.accept(cache.judge(blob.address, data), data)
    assert cache.welcome(blob.address) == ()
    cache.expect(blob, len(data), bytes)
    assert cache.welcome(blob.address) == ()


def test_bytes_that_were_fetched_expect_what_their_push_would_have():
    """A header that came from another holder names its payload as well."""
    cache = BlobCache(MemoryBlobs())
    header, named = blobs.header()
    payload, data = blobs.payload()
    cache.expect(header, len(named), lambda _: cache.expect(payload, len(data), bytes))
    cache.keep(header, named)
    assert cache.welcome(payload.address) == (len(data),)


def test_kept_bytes_that_fail_a_later_check_end_nothing():
    cache = BlobCache(MemoryBlobs())
    header, named = blobs.header()
    spoilt = named[:-1] + b"x"
    cache.keep(header, spoilt)
    cache.expect(header, len(named), blobs.signed)
    assert cache.find(header) == spoilt
