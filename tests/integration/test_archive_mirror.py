"""The copy of an archive in a store: what is put there, how often, and who else may write.

The store is another program, or a folder. There is no run: a ledger is any file that grows.
"""

import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from support.stores import BUCKET, FIXTURES, aim_at
from support.waiting import ANSWER_SECONDS

from troth_client.archive.errors import StoreInUseError
from troth_client.archive.folder import ArchiveFolder
from troth_client.archive.mirror import LOOKS_A_LIST, SHARE, Mirror
from troth_client.telemetry.events import EventList
from troth_client.transport import store as stores
from troth_client.transport.errors import HolderChangedError, HolderSilentError
from troth_client.transport.store import StoreWire

(s3,) = FIXTURES
LEDGER = "ledger.jsonl"


@pytest.fixture(params=["s3", "file"])
def place(request, s3, monkeypatch, tmp_path):
    aim_at(monkeypatch, s3)
    name = request.node.name.replace("[", "/").replace("]", "")
    return f"{BUCKET}/{name[-60:]}" if request.param == "s3" else f"file://{tmp_path / 'objects'}"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / LEDGER).write_bytes(b"head\n")
    return ArchiveFolder(tmp_path / "work", durable=False)


class Counted(StoreWire):
    """A wire that counts what is put; one put gets no answer where `is_deaf`."""

    def __init__(self):
        super().__init__(ANSWER_SECONDS, signs=True)
        self.puts, self.is_deaf = {LEDGER: [], "missing.json": [], "chain.json": []}, False

    async def put_file(self, holder, name, path):
        if name != LEDGER:  # a part of `replace_file`
            self.puts[name].append(path.stat().st_size)
        return await super().put_file(holder, name, path)

    async def replace_file(self, holder, name, path, known):
        self.puts[name].append(path.stat().st_size)
        found = await super().replace_file(holder, name, path, known)
        if self.is_deaf:
            self.is_deaf = False
            raise HolderSilentError("an answer", "nothing", "Asking again.")
        return found


def mirror(place, folder, wire, stored=None):
    return Mirror(place, wire, folder, EventList(), stored)


async def look_on(made, looks=LOOKS_A_LIST):
    for _ in range(looks):
        await made.look()


def grow(folder, num_bytes):
    with folder.ledger.open("ab") as stream:
        stream.write(b"x" * num_bytes)


async def bytes_at(place):
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / LEDGER
        await StoreWire(ANSWER_SECONDS, signs=True).get_file(place, LEDGER, path, 10**9)
        return path.read_bytes()


async def test_what_has_not_changed_is_not_put_again(place, folder):
    wire = Counted()
    made = mirror(place, folder, wire)
    folder.write_missing(0, [])
    await look_on(made, 3 * LOOKS_A_LIST)
    await made.finish(30.0)
    assert wire.puts[LEDGER] == [5]
    assert len(wire.puts["missing.json"]) == 1
    folder.write_missing(1, [])
    await look_on(made)
    assert wire.puts[LEDGER] == [5]
    assert len(wire.puts["missing.json"]) == 2


async def test_all_copies_of_a_ledger_together_are_a_small_multiple_of_it(tmp_path, folder):
    place, wire = f"file://{tmp_path / 'objects'}", Counted()
    made = mirror(place, folder, wire)
    for _ in range(300):
        grow(folder, 1_000)
        await look_on(made)
    await made.finish(30.0)
    sizes = wire.puts[LEDGER]
    final = folder.ledger.stat().st_size
    assert sizes[-1] == final
    assert sum(sizes) <= (SHARE + 2) * final
    assert all((SHARE + 1) * one <= SHARE * other for one, other in pairwise(sizes[:-1]))
    assert await bytes_at(place) == folder.ledger.read_bytes()


async def test_a_second_writer_ends_the_first_and_nothing_is_lost(place, folder):
    """Two machines begin with the same ledger in one store."""
    grow(folder, 10_000)
    first = mirror(place, folder, Counted())
    await first.copy_lists()
    known = await StoreWire(ANSWER_SECONDS, signs=True).version(place, LEDGER)
    second = mirror(place, folder, Counted(), known)
    await second.copy_lists()
    await look_on(first)
    grow(folder, 100)  # far from an eighth, but its first entries
    await second.copy_lists()
    theirs = await bytes_at(place)
    assert theirs == folder.ledger.read_bytes()
    grow(folder, 100)
    with pytest.raises(StoreInUseError, match="one of another process"):
        await look_on(first)
    with pytest.raises(StoreInUseError, match="one process at a time") as refused:
        await first.finish(30.0)
    assert refused.value.subject == place
    assert await bytes_at(place) == theirs
    await second.finish(30.0)
    assert await bytes_at(place) == folder.ledger.read_bytes()


@pytest.mark.parametrize("is_long", [False, True])
async def test_a_stale_writer_replaces_nothing(place, folder, monkeypatch, is_long):
    """It has looked before the other one put its ledger there."""
    if is_long:
        monkeypatch.setattr(stores, "ONE_REQUEST_BYTES", 1)
    wire = StoreWire(ANSWER_SECONDS, signs=True)
    stale = await wire.replace_file(place, LEDGER, folder.ledger, None)
    with pytest.raises(HolderChangedError):
        await wire.replace_file(place, LEDGER, folder.ledger, None)
    grow(folder, 10)
    newer = await wire.replace_file(place, LEDGER, folder.ledger, stale)
    assert newer != stale
    assert newer == await wire.version(place, LEDGER)
    grow(folder, 10)
    with pytest.raises(HolderChangedError):
        await wire.replace_file(place, LEDGER, folder.ledger, stale)
    assert len(await bytes_at(place)) == 15


async def test_a_store_without_conditions_is_looked_at_before(s3, folder, monkeypatch):
    aim_at(monkeypatch, s3)
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")
    wire, place = StoreWire(ANSWER_SECONDS, signs=True), f"{BUCKET}/plain"
    stale = await wire.replace_file(place, LEDGER, folder.ledger, None)
    grow(folder, 10)
    await wire.replace_file(place, LEDGER, folder.ledger, stale)
    with pytest.raises(HolderChangedError):
        await wire.replace_file(place, LEDGER, folder.ledger, stale)


async def test_a_put_whose_answer_got_lost_is_not_taken_for_another_writer(place, folder):
    wire = Counted()
    made = mirror(place, folder, wire)
    await made.copy_lists()
    grow(folder, 100)
    wire.is_deaf = True
    await look_on(made)
    assert not wire.is_deaf
    grow(folder, 100)
    await look_on(made)
    await made.finish(30.0)
    assert await bytes_at(place) == folder.ledger.read_bytes()
