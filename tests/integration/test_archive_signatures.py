"""The address of a header says nothing of its signature, and one member answers first with a lie.

An archive must not keep that lie for ever, and an audit of it must not blame the run.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from support.archives import NAMES, Archivist, RecordedRun, recorded
from support.recordings import audit_of
from support.stores import BUCKET, FIXTURES, aim_at

from troth_attestation.header import HEADER_BYTES, SIGNATURE_BYTES
from troth_audit.replay.findings import Grade, Rule
from troth_audit.replay.report import Conclusion
from troth_client.archive.book import Book
from troth_client.archive.errors import FalseSignatureError
from troth_client.archive.fetching import Fetching, has_false_signature
from troth_client.archive.folder import ArchiveFolder
from troth_client.archive.items import Item
from troth_client.archive.keeper import Keeper
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.blob_cache import BlobCache
from troth_client.transport.errors import FetchError
from troth_client.transport.memory import MemoryNetwork, memory_transport
from troth_client.transport.remote import RemoteStore
from troth_coordinator.chain.event_types_rounds import PayloadCommitted
from troth_coordinator.ledger.file import Ledger

(s3,) = FIXTURES
ROUND, INDEX = 1, 1
SIGNED_BYTES = HEADER_BYTES + SIGNATURE_BYTES
LOOKS = 80
"""Enough for every attempt at what members need not have any more."""
FALSE = "a header with a false signature, and no true one"
"""The reason on the list of what is missing."""
LIAR = NAMES.split()[-1]


@pytest.fixture(scope="module")
def past(data, tmp_path_factory) -> Iterator[RecordedRun]:
    """A short run and its whole archive, kept while it was played."""
    with recorded(data, tmp_path_factory.mktemp("past"), 3) as found:
        yield found


@pytest.fixture(scope="module")
def victim(past: RecordedRun) -> str:
    """The address of an honest trainer's header of an included payload."""
    ledger = Ledger.of(past.path / "ledger.jsonl")
    reader = ledger.head.reader()
    committed = [
        event
        for entry in ledger.entries()
        for event in reader.events(entry)
        if isinstance(event, PayloadCommitted)
    ]
    hashes = [one.header_hash for one in committed if (one.round, one.index) == (ROUND, INDEX)]
    return f"header/{hashes[0].hex()}"


@dataclass
class Members:
    """All members of the run. The liar spoils one signature; the others get it `late`, or never."""

    folder: Path
    victim: str
    is_late: bool = True

    def network(self) -> MemoryNetwork:
        made = MemoryNetwork()
        for name in NAMES.split():
            holder = _Liar(self) if name == LIAR else _Late(self)
            made.join(name, cast(BlobCache, holder))  # a reader asks only for `served`
        return made

    def kept(self, address: str) -> bytes | None:
        path = self.folder / address
        return path.read_bytes() if path.is_file() else None


@dataclass
class _Late:
    members: Members

    def served(self, address: str) -> bytes | None:
        is_away = self.members.is_late and address == self.members.victim
        return None if is_away else self.members.kept(address)


@dataclass
class _Liar:
    members: Members

    def served(self, address: str) -> bytes | None:
        data = self.members.kept(address)
        return spoilt(data) if data and address == self.members.victim else data


def spoilt(data: bytes) -> bytes:
    """The same header with a signature of nobody."""
    return data[:HEADER_BYTES] + bytes(SIGNATURE_BYTES)


def _name(victim: str) -> BlobId:
    return BlobId(0, BlobKind.HEADER, bytes.fromhex(victim.removeprefix("header/")))


def is_false(archivist: Archivist, victim: str) -> bool:
    return has_false_signature((archivist.path / victim).read_bytes())


@pytest.fixture
def members(past: RecordedRun, victim: str) -> Members:
    return Members(past.path, victim)


@contextlib.asynccontextmanager
async def deceived(archivist: Archivist, victim: str) -> AsyncIterator[Keeper]:
    """An archive that has got the lie, and is at work."""
    async with archivist.opened() as keeper:
        for _ in range(LOOKS):
            await keeper.look()
            if (archivist.path / victim).exists():
                break
        assert is_false(archivist, victim)
        yield keeper


async def look_on(keeper: Keeper, looks: int = LOOKS) -> None:
    for _ in range(looks):
        await keeper.look()


async def test_a_true_signature_replaces_a_false_one(past, tmp_path, members, victim):
    archivist = past.archivist(tmp_path, network=members.network())
    async with deceived(archivist, victim) as keeper:
        assert [one["why"] for one in archivist.missing()].count(FALSE) == 1
        members.is_late = False
        await look_on(keeper)
        assert keeper.is_done
    assert (archivist.path / victim).read_bytes() == (past.path / victim).read_bytes()
    assert archivist.missing() == []
    assert len(archivist.events.named("signature_false")) == 1
    assert audit_of(archivist.path).conclusion is Conclusion.GOOD
    held = sum(one.stat().st_size for one in archivist.path.glob("*/*"))
    assert keeper.num_bytes == held, "nothing is counted twice"


async def test_a_later_start_asks_again(past, tmp_path, members, victim):
    archivist = past.archivist(tmp_path, network=members.network())
    async with deceived(archivist, victim):
        pass
    members.is_late = False
    await archivist.until_done()
    assert not is_false(archivist, victim)
    assert archivist.missing() == []


async def test_without_a_true_one_the_audit_lacks_it_and_blames_nobody(
    past, tmp_path, members, victim
):
    archivist = past.archivist(tmp_path, network=members.network())
    keeper = await archivist.until_done()
    assert keeper.is_done, "it is given up in the end"
    (lacking,) = archivist.missing()
    assert f"{lacking['kind']}/{lacking['key']}" == victim
    assert lacking["why"] == FALSE
    assert archivist.kept("payload") == past.names("payload"), "what the header names is here"
    report = audit_of(archivist.path)
    (found,) = report.findings
    assert found.grade is Grade.MISSING
    assert found.rule is Rule.SIGNATURE
    assert found.round == ROUND
    assert found.participant == INDEX
    assert report.conclusion is Conclusion.INCOMPLETE
    assert audit_of(archivist.path, past.path).conclusion is Conclusion.GOOD, (
        "another archive has it"
    )


@pytest.fixture
def url(s3, monkeypatch, request) -> str:
    """A place of its own in the bucket, to write to."""
    aim_at(monkeypatch, s3)
    return f"{BUCKET}/{request.node.name.replace('[', '/').rstrip(']')}"


@pytest.mark.parametrize("way", ["store", "copy_to"])
async def test_a_store_gets_the_true_one_in_its_place(past, tmp_path, members, victim, url, way):
    archivist = past.archivist(tmp_path, network=members.network())
    setattr(archivist, way, url)
    true = (past.path / victim).read_bytes()
    async with deceived(archivist, victim) as keeper:
        with RemoteStore(url) as store:
            assert store.read(_name(victim), SIGNED_BYTES) == spoilt(true)
        members.is_late = False
        await look_on(keeper)
    with RemoteStore(url) as store:
        assert store.read(_name(victim), SIGNED_BYTES) == true


async def test_the_true_one_in_a_copy_does_not_give_way_to_the_lie(
    past, tmp_path, members, victim, url
):
    archivist = past.archivist(tmp_path, network=members.network())
    archivist.copy_to = url
    true = (past.path / victim).read_bytes()
    with RemoteStore(url) as store:
        store.put(victim, true)
    async with deceived(archivist, victim) as keeper:
        await look_on(keeper)
    with RemoteStore(url) as store:
        assert store.read(_name(victim), SIGNED_BYTES) == true
    assert is_false(archivist, victim)


async def test_a_participant_never_serves_the_lie_that_its_archive_got(
    past, tmp_path, members, victim
):
    """An archive beside a participant fetches with the participant's transport."""
    item = Item(BlobKind.HEADER, _name(victim).key, ROUND, INDEX)
    network, book = members.network(), Book()
    book.endpoints[INDEX] = LIAR
    async with memory_transport(network, "participant") as transport:
        transport.release(ROUND)
        fetching = Fetching(transport, ArchiveFolder(tmp_path), owns_transport=False)
        with pytest.raises(FalseSignatureError) as caught:
            await fetching.fetch(item, book)
        assert has_false_signature(caught.value.data)
        reader_book = Book()
        reader_book.endpoints[INDEX] = transport.endpoint
        async with memory_transport(network, "reader", listens=False) as reader:
            with pytest.raises(FetchError):
                await Fetching(reader, ArchiveFolder(tmp_path)).fetch(item, reader_book)
