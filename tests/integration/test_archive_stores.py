"""An archive in an object store, or with a copy there: a real S3 server that goes away and returns.

One run is played once; members then hold all of its bytes.
"""

import asyncio

import pytest
from moto.server import ThreadedMotoServer
from support.archives import recorded
from support.cli import Cli
from support.runs import AUDITED
from support.stores import BUCKET, FIXTURES, aim_at

from troth_client.archive.check import check_archive
from troth_client.archive.folder import ArchiveFolder
from troth_client.archive.room import Keeping
from troth_client.archive.stored import StoredBytes
from troth_client.transport.errors import HolderError, HolderLiedError
from troth_client.transport.remote import RemoteStore
from troth_coordinator.chain.client import CoordinatorClient

(s3,) = FIXTURES
ROUNDS = 4
KINDS = ("header", "payload", "openings", "config", "manifest")


@pytest.fixture(scope="module")
def past(data, tmp_path_factory):
    """A run of some rounds with audits, and its whole archive, kept while it was played."""
    with recorded(data, tmp_path_factory.mktemp("past"), ROUNDS, **AUDITED) as found:
        yield found


@pytest.fixture
def url(s3, monkeypatch, request):
    """A place of its own in the bucket, to write to."""
    aim_at(monkeypatch, s3)
    return f"{BUCKET}/{request.node.name.partition('[')[0]}"


def stored(url):
    """The names of the objects of each kind."""
    with RemoteStore(url) as store:
        return {kind: {one.split("/")[1] for one in store.sizes(kind)} for kind in KINDS}


def all_of(past):
    return {kind: past.names(kind) for kind in KINDS}


@pytest.fixture
def cli(capsys, monkeypatch) -> Cli:
    """The command line, with no RPC node in the environment."""
    monkeypatch.delenv("TROTH_RPC", raising=False)
    return Cli(capsys)


async def kept_in_a_store(past, folder, url, keeping=None):
    archivist = past.archivist(folder, *([keeping] if keeping else []))
    archivist.store = url
    await archivist.until_done()
    return archivist


async def test_an_archive_lies_in_a_store_and_a_new_machine_goes_on(past, tmp_path, url):
    archivist = await kept_in_a_store(past, tmp_path / "work", url)
    assert archivist.missing() == []
    assert stored(url) == all_of(past)
    assert not archivist.kept("payload"), "large bytes lie in the store alone"

    class Forgetful(CoordinatorClient):
        async def landed(self, signature):
            raise AssertionError("the ledger in the store has this transaction")

    nobody = past.network(lambda _at, _data: None, "ada", "bob", "cyd", "dan")
    other = past.archivist(tmp_path / "elsewhere", network=nobody)
    other.store, other.client = url, Forgetful(past.run.rpc)
    keeper = await other.until_done()
    assert keeper.is_done
    assert other.missing() == []
    assert keeper.num_bytes == sum(
        one.stat().st_size for kind in KINDS for one in (past.path / kind).iterdir()
    )


def test_an_audit_finds_ledger_and_account_in_a_store(past, tmp_path, s3, monkeypatch, cli):
    aim_at(monkeypatch, s3)
    url = f"{BUCKET}/audited"
    asyncio.run(kept_in_a_store(past, tmp_path / "work", url))
    done = cli.ok("audit", "--archive", url)
    assert "its own word, no proof: give --rpc" in done.out
    assert done.out.splitlines()[-1].startswith("PASS")
    checked = cli.json("archive", "check", url)
    assert checked["problems"] == []
    assert checked["whole"] == {kind: len(past.names(kind)) for kind in KINDS}
    with RemoteStore(url) as store:
        name = f"payload/{sorted(past.names('payload'))[0]}"
        store.put(name, b"other bytes")
        other = cli("archive", "check", url, "--json")
        store.put(name, (past.path / name).read_bytes())
    assert other.code == 1
    (problem,) = other.json["problems"]
    assert f"payload/{problem['key']}" == name
    assert "damaged: 11 bytes" in problem["what"]
    nothing = cli.refused("archive", "check", f"{BUCKET}/nothing")
    assert nothing["kind"] == "ArchiveFolderError"
    empty = cli.refused("audit", "--archive", f"{BUCKET}/nothing", code=2)
    assert empty["kind"] == "LedgerMissingError"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    away = cli.refused("audit", "--archive", url, code=2)
    assert away["kind"] == "LedgerMissingError"
    assert "to answer" in away["found"]
    assert cli.ok("audit", "--archive", url, "--archive", past.path), "another one has it"


async def test_a_store_forgets_what_the_rule_does_not_keep(past, tmp_path, url):
    archivist = await kept_in_a_store(past, tmp_path / "work", url, Keeping(rounds=2))
    found = stored(url)
    assert found["header"] == past.names("header")
    assert set() < found["payload"] < past.names("payload")
    assert archivist.missing() == []


@pytest.mark.parametrize("way", ["store", "copy_to"])
async def test_a_store_that_goes_away_in_the_middle_is_filled_when_it_returns(
    past, tmp_path, s3, monkeypatch, way
):
    del s3  # keeps the bucket's server; this one has the same buckets on a port of its own
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    aim_at(monkeypatch, f"http://{host}:{port}")
    url = f"{BUCKET}/away-{way}"
    held_back = set(sorted(past.names("payload"))[::2])

    def late(at, data):
        return None if at.partition("/")[2] in held_back else data

    archivist = past.archivist(
        tmp_path / "work", network=past.network(late, "ada", "bob", "cyd", "dan")
    )
    setattr(archivist, way, url)
    async with archivist.opened() as keeper:
        for _ in range(3):
            await keeper.look()
        assert stored(url)["payload"] == past.names("payload") - held_back
        server.stop()
        held_back.clear()
        for _ in range(40):
            await keeper.look()
        assert stored_is_away(url)
        assert bool(keeper.num_missing) == (way == "store")
    trouble = archivist.events.named("store_trouble")
    assert trouble, "its end says what is not copied"
    assert all("writer" not in one["reason"] for one in trouble), "no credentials in a log"
    server = ThreadedMotoServer("127.0.0.1", port, verbose=False)
    server.start()
    try:
        again = past.archivist(tmp_path / "work")
        setattr(again, way, url)
        await again.until_done()
        assert again.missing() == []
        assert stored(url) == all_of(past)
        with RemoteStore(url) as store:
            assert store.download("ledger.jsonl", tmp_path / "copied", 10**9)
        assert (tmp_path / "copied").read_bytes() == (again.path / "ledger.jsonl").read_bytes()
        if way == "copy_to":
            assert check_archive(again.path).is_whole
    finally:
        server.stop()


def stored_is_away(url):
    try:
        stored(url)
    except HolderError:
        return True
    return False


def test_a_named_object_is_bounded_and_an_old_file_outlives_a_lie(tmp_path, url):
    with RemoteStore(url) as store:
        store.put("ledger.jsonl", b"x" * 200_000)
        path = tmp_path / "ledger.jsonl"
        path.write_bytes(b"mine")
        with pytest.raises(HolderLiedError, match="more than 1000 bytes"):
            store.download("ledger.jsonl", path, 1_000)
        assert path.read_bytes() == b"mine"
        assert not store.download("chain.json", path, 1_000)
        assert store.download("ledger.jsonl", path, 200_000)
        assert path.stat().st_size == 200_000


def test_a_store_whose_ledger_is_none_is_refused_and_nothing_is_lost(past, tmp_path, url, cli):
    with RemoteStore(url) as store:
        store.put("ledger.jsonl", b"not a ledger\n")
    (tmp_path / "work").mkdir()
    with StoredBytes(url, ArchiveFolder(tmp_path / "work")):
        assert (tmp_path / "work" / "ledger.jsonl").read_bytes() == b"not a ledger\n"
    refused = cli.refused("audit", "--archive", url, code=2)
    assert refused["kind"] == "LedgerFileError"
