"""An archive in an object store, or with a copy there: a real S3 server that goes away and returns.

One run is played once; members then hold all of its bytes.
"""

import asyncio
import json
import tempfile
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer
from solders.signature import Signature
from support.archives import recorded
from support.cli import Cli
from support.ledgers import place_of, with_a_close_of_its_own
from support.runs import AUDITED
from support.stores import BUCKET, FIXTURES, aim_at

from troth_client.archive.check import check_archive
from troth_client.archive.errors import StoreInUseError, StoreLedgerError
from troth_client.archive.mirror import LOOKS_A_LIST
from troth_client.archive.room import Keeping
from troth_client.archive.store_ledger import take_up
from troth_client.transport.errors import HolderError, HolderLiedError
from troth_client.transport.remote import RemoteStore
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.ledger.file import Ledger, LedgerFile

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
        return {kind: {one.split("/")[1] for one, _ in store.sizes(kind)} for kind in KINDS}


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
        async def landed(self, signature, run):
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


@pytest.mark.long(reason="audits of a second archive; make test has audits of a folder")
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


COPIED = pytest.mark.long(reason="the same for a copy")


@pytest.mark.parametrize("way", ["store", pytest.param("copy_to", marks=COPIED)])
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


@pytest.fixture(params=["s3", "file"])
def place(request, tmp_path, url):
    """A store that is another program, or a folder."""
    return url if request.param == "s3" else f"file://{tmp_path / 'objects'}"


def ledger_at(place):
    """The bytes of the ledger in a store."""
    with RemoteStore(place) as store, tempfile.TemporaryDirectory() as folder:
        store.download("ledger.jsonl", Path(folder) / "ledger.jsonl", 10**9)
        return (Path(folder) / "ledger.jsonl").read_bytes()


def put_ledger(place, data):
    with RemoteStore(place) as store:
        store.put("ledger.jsonl", data)


def lines_of(past):
    return (past.path / "ledger.jsonl").read_bytes().splitlines(keepends=True)


def cut(past, rounds, more=0):
    """The ledger of the whole archive, up to the close of a round, and some lines more."""
    closes = [at for at, line in enumerate(lines_of(past)) if b'"RoundClosed"' in line]
    return b"".join(lines_of(past)[: closes[rounds] + 1 + more])


class NoHistory(CoordinatorClient):
    """An RPC node that has pruned the transactions of the run."""

    async def landed(self, signature, run):
        return None


@pytest.mark.parametrize("way", ["store", "copy_to"])
@pytest.mark.parametrize("rounds", [None, 1])
async def test_a_start_with_less_takes_the_ledger_of_the_store_and_never_shortens_it(
    past, tmp_path, place, way, rounds
):
    """An empty folder, or one that stopped earlier, beside a store with everything."""
    whole = (past.path / "ledger.jsonl").read_bytes()
    put_ledger(place, whole)
    folder = tmp_path / "work"
    folder.mkdir()
    if rounds is not None:
        (folder / "ledger.jsonl").write_bytes(cut(past, rounds))
    archivist = past.archivist(folder)
    archivist.client = NoHistory(past.run.rpc)
    setattr(archivist, way, place)
    async with archivist.opened() as keeper:
        assert ledger_at(place) == whole
        await keeper.look()
        assert keeper.round == ROUNDS
    assert ledger_at(place) == whole
    assert (folder / "ledger.jsonl").read_bytes() == whole
    assert {one.name for one in folder.glob("ledger*")} == {"ledger.jsonl"}


async def test_two_folders_take_turns_with_one_store(past, tmp_path, place):
    """A keeps the archive for a while, then B on another machine, then A again."""
    ends = [cut(past, 0), cut(past, 2), (past.path / "ledger.jsonl").read_bytes()]
    before = b"".join(lines_of(past)[:1])
    for name, end in zip("aba", ends, strict=True):
        archivist = past.archivist(tmp_path / name)
        archivist.copy_to, archivist.client = place, NoHistory(past.run.rpc)
        async with archivist.opened() as keeper:
            await keeper.look()
            own = archivist.path / "ledger.jsonl"
            assert ledger_at(place) == own.read_bytes() == before, name
            own.write_bytes(end)  # as if the run had gone on
        assert ledger_at(place) == end
        before = end


async def test_an_archive_ends_when_another_one_has_written_its_store(past, tmp_path, place):
    archivist = past.archivist(tmp_path / "work")
    archivist.copy_to = place
    other = with_another_end((past.path / "ledger.jsonl").read_bytes())
    with pytest.raises(StoreInUseError):
        async with archivist.opened() as keeper:
            await keeper.look()
            put_ledger(place, other)
            for _ in range(LOOKS_A_LIST):
                await keeper.look()
    assert ledger_at(place) == other


def forged(past):
    """A ledger that folds, with a false commit and a close of its own."""
    whole = Ledger.of(past.path / "ledger.jsonl")
    entries = with_a_close_of_its_own(whole.head, list(whole.entries()))
    lines = [one.to_line() for one in entries[: place_of(entries, "RoundClosed") + 1]]
    return b"".join([whole.head.to_line(), *lines])


async def test_another_history_in_the_store_is_refused_and_both_stay(past, tmp_path, place):
    ours, theirs = (past.path / "ledger.jsonl").read_bytes(), forged(past)
    put_ledger(place, theirs)
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "ledger.jsonl").write_bytes(ours)
    archivist = past.archivist(folder)
    archivist.copy_to = place
    with pytest.raises(StoreLedgerError, match="other ones from byte") as refused:
        await archivist.until_done()
    assert "troth ledger verify" in refused.value.next_step
    assert ledger_at(place) == theirs
    assert (folder / "ledger.jsonl").read_bytes() == ours
    assert {one.name for one in folder.glob("ledger*")} == {"ledger.jsonl"}


def with_another_end(data):
    """A ledger whose last transaction has another signature."""
    last = json.loads(data.splitlines()[-1])["signature"].encode()
    return data.replace(last, str(Signature.from_bytes(bytes(64))).encode())


def test_newest_entries_that_no_close_proves_give_way(past, tmp_path, place):
    """A fork took back what one of the two has read last."""
    whole, early = (past.path / "ledger.jsonl").read_bytes(), cut(past, 1, more=1)
    path = tmp_path / "ledger.jsonl"
    for ours, theirs, kept in (
        (whole, with_another_end(whole), whole),
        (whole, with_another_end(early), whole),
        (with_another_end(early), whole, whole),
    ):
        put_ledger(place, theirs)
        path.write_bytes(ours)
        with LedgerFile(path, Ledger.of(path).head) as ledger:
            assert take_up(ledger, place).num_bytes == len(theirs)
        assert path.read_bytes() == kept
        assert ledger_at(place) == theirs


async def test_a_store_whose_ledger_is_none_is_refused_and_nothing_is_lost(
    past, tmp_path, place, cli
):
    put_ledger(place, b"not a ledger\n")
    for way in ("store", "copy_to"):
        archivist = past.archivist(tmp_path / way)
        setattr(archivist, way, place)
        with pytest.raises(StoreLedgerError, match="a ledger of run") as refused:
            await archivist.until_done()
        assert refused.value.subject == place
        assert ledger_at(place) == b"not a ledger\n"
