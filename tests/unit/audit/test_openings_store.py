"""The openings store: whole files found again, damage never shown, only drawn tiles."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support import opened

import troth_client.state.openings_store as store_module
from troth_attestation import openings
from troth_attestation.errors import OpeningFieldError, OpeningPathError
from troth_client.runtime.files import DiskFullError
from troth_client.state.openings_store import OpeningsStore, Wanted
from troth_client.transport.errors import BlobRefusedError, FetchError
from troth_client.transport.memory import MemoryNetwork, memory_transport

AUDIT = opened.opened()


def made(store, audit=AUDIT):
    return store.make(audit.sampled, audit.after, audit.before)


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_set_holds_the_drawn_tiles_and_nothing_else(tmp_path):
    store = OpeningsStore(tmp_path)
    data = store.shown(made(store))
    assert len(data) == openings.size(AUDIT.sampled)
    inside = {tile for tile in range(opened.NUM_TILES) if AUDIT.after.u[tile].tobytes() in data}
    assert inside == set(AUDIT.sampled.tiles)
    assert len(inside) < opened.NUM_TILES


def test_a_new_process_finds_what_an_older_one_made(tmp_path):
    root = made(OpeningsStore(tmp_path))
    (tmp_path / f"9-6-{'0' * 64}.tmp").write_bytes(b"half")
    (tmp_path / "notes").write_bytes(b"not a set")
    again = OpeningsStore(tmp_path)
    assert again.find(9, 5) == root
    assert again.shown(root) == AUDIT.data
    assert again.find(9, 6) is None
    assert files(tmp_path) == [f"9-5-{root.hex()}", "notes"]


@pytest.mark.parametrize("damage", ["a bit", "cut", "longer", "empty", "gone"])
def test_a_damaged_set_is_not_shown_and_is_made_again(tmp_path, damage):
    store = OpeningsStore(tmp_path)
    root = made(store)
    path = tmp_path / f"9-5-{root.hex()}"
    data = bytearray(path.read_bytes())
    data[40_000] ^= 1
    changed = {"a bit": data, "cut": data[:-1], "longer": AUDIT.data + b"x", "empty": b""}
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(changed[damage])
    for one in (store, OpeningsStore(tmp_path)):
        assert one.shown(root) is None
        assert one.find(9, 5) is None
    assert made(store) == root
    assert store.find(9, 5) == root


def test_a_u_that_was_not_signed_is_not_opened(tmp_path):
    store = OpeningsStore(tmp_path)
    with pytest.raises(OpeningPathError):
        store.make(AUDIT.sampled, opened.residual(8), AUDIT.before)
    with pytest.raises(OpeningFieldError):
        store.make(AUDIT.sampled, AUDIT.after, None)
    assert files(tmp_path) == []


def test_settled_audits_are_forgotten_and_no_others(tmp_path):
    store = OpeningsStore(tmp_path)
    every = [opened.opened(round_, index) for round_, index in ((8, 1), (9, 1), (9, 2), (10, 1))]
    for one in every:
        made(store, one)
    store.settle(9, 2)
    store.settle(9, 2)
    assert store.find(9, 1) == every[1].root
    assert store.find(9, 2) is None
    assert len(files(tmp_path)) == 3


async def test_a_full_disk_costs_a_trainer_its_set_but_a_seat_nothing(tmp_path, monkeypatch):
    network = MemoryNetwork()
    trainer, seat = OpeningsStore(tmp_path / "a"), OpeningsStore(tmp_path / "b")
    async with memory_transport(network, "a") as a, memory_transport(network, "b") as b:
        a.show(trainer)
        b.show(seat)
        root = made(trainer)

        def full(*_):
            raise DiskFullError("room", "none", "")

        monkeypatch.setattr(store_module, "atomic_write", full)
        assert await seat.fetch(b, AUDIT.sampled, root, ["a"]) == AUDIT.data
        assert seat.find(9, 5) is None
        with pytest.raises(DiskFullError):
            made(seat)


def wanted(audit=AUDIT, *, is_ours=False, root=None):
    return Wanted(root or audit.root, audit.sampled, is_ours)


def test_a_pushed_set_is_kept_and_shown_once_an_open_audit_names_it(tmp_path):
    store = OpeningsStore(tmp_path)
    assert store.welcome(AUDIT.root) == set()
    store.want([wanted()])
    assert store.welcome(AUDIT.root) == {len(AUDIT.data)}
    store.judge(AUDIT.root, AUDIT.data)
    store.accept(AUDIT.root, AUDIT.data)
    assert OpeningsStore(tmp_path).shown(AUDIT.root) == AUDIT.data


def test_a_set_is_read_once_until_its_file_changes(tmp_path, monkeypatch):
    store, data = OpeningsStore(tmp_path), AUDIT.data
    root = openings.openings_root(data)
    hashed = []
    check = openings.openings_root
    monkeypatch.setattr(openings, "openings_root", lambda one: (hashed.append(one), check(one))[1])
    (tmp_path / f"9-5-{root.hex()}").write_bytes(data)
    again = OpeningsStore(tmp_path)
    assert [again.shown(root), again.shown(root), again.find(9, 5)] == [data, data, root]
    assert len(hashed) == 1
    (tmp_path / f"9-5-{root.hex()}").write_bytes(data[:-1] + b"x")
    assert again.shown(root) is None
    assert store.shown(root) is None, "another process knows nothing of it"


def test_memory_holds_few_sets(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "NUM_VERIFIED", 2)
    store = OpeningsStore(tmp_path)
    roots = [made(store, opened.opened(round_=one)) for one in (8, 9, 10, 11)]
    assert list(store._verified) == roots[-2:]


@pytest.mark.parametrize("durable", [True, False])
def test_a_set_of_our_own_is_flushed_where_the_store_is_durable(tmp_path, monkeypatch, durable):
    flushed = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    made(OpeningsStore(tmp_path, durable=durable))
    assert bool(flushed) == durable


OTHER = opened.opened(round_=8)
DATA = AUDIT.data


@pytest.fixture
def read(monkeypatch):
    """Return a list that grows by one with each set that is decoded."""
    found = []
    decode = openings.decode
    monkeypatch.setattr(openings, "decode", lambda *args: (found.append(args), decode(*args))[1])
    return found


def test_what_was_judged_is_not_read_again_when_it_is_accepted(tmp_path, read):
    store = OpeningsStore(tmp_path)
    store.want([wanted()])
    data = AUDIT.data
    store.judge(AUDIT.root, data)
    store.accept(AUDIT.root, data)
    assert len(read) == 1
    assert store.shown(AUDIT.root) == data


def pushed(folder):
    store = OpeningsStore(folder)
    store.want([wanted()])
    store.judge(AUDIT.root, DATA)
    store.accept(AUDIT.root, DATA)
    return store


@pytest.mark.parametrize("damage", [None, "a bit", "gone"])
async def test_a_pushed_set_is_fetched_without_reading_it_again_whatever_became_of_its_file(
    tmp_path, read, damage
):
    """A damaged file shows in its root; then another holder gives the bytes that have it."""
    holder, network = OpeningsStore(tmp_path / "a"), MemoryNetwork()
    made(holder)
    read.clear()
    seat = pushed(tmp_path / "b")
    path = tmp_path / "b" / f"9-5-{AUDIT.root.hex()}"
    if damage == "a bit":
        data = bytearray(DATA)
        data[40_000] ^= 1
        path.write_bytes(data)
    elif damage == "gone":
        path.unlink()
    async with memory_transport(network, "a") as a, memory_transport(network, "b") as b:
        b.show(seat)
        if damage is not None:
            assert seat.shown(AUDIT.root) is None
            with pytest.raises(FetchError):
                await seat.fetch(b, AUDIT.sampled, AUDIT.root, ["a"])
            a.show(holder)
        assert await seat.fetch(b, AUDIT.sampled, AUDIT.root, ["a"]) == DATA
    assert len(read) == 1


@pytest.mark.parametrize("change", ["another draw", "a restart", "forgotten"])
async def test_a_set_that_was_not_read_for_this_draw_is_read_when_it_is_fetched(
    tmp_path, read, change
):
    holder, sampled = OpeningsStore(tmp_path / "other"), AUDIT.sampled
    made(holder)
    read.clear()
    store = pushed(tmp_path / "own")
    if change == "another draw":
        sampled = replace(sampled, tiles=tuple(tile ^ 1 for tile in sampled.tiles))
    elif change == "a restart":
        store = OpeningsStore(tmp_path / "own")
    else:
        store.settle(9, 5)
    network = MemoryNetwork()
    async with memory_transport(network, "a") as a, memory_transport(network, "b") as b:
        a.show(holder)
        b.show(store)
        for _ in range(2):
            assert await store.fetch(b, sampled, AUDIT.root, ["a"]) == DATA
    assert len(read) == (3 if change == "another draw" else 2)
    assert (store.find_set(sampled) is None) == (change == "another draw")


@pytest.mark.parametrize("change", ["other bytes", "another root", "the audit has ended"])
def test_a_judgement_covers_the_bytes_and_the_audit_that_were_judged(tmp_path, change):
    store = OpeningsStore(tmp_path)
    store.want([wanted()])
    judged = AUDIT.data
    store.judge(AUDIT.root, judged)
    if change == "the audit has ended":
        store.want([])
    root = OTHER.root if change == "another root" else AUDIT.root
    data = bytes(len(judged)) if change == "other bytes" else judged
    with pytest.raises(BlobRefusedError):
        store.accept(root, data)
    assert files(tmp_path) == []


JUNK = bytes(len(AUDIT.data))


@pytest.mark.parametrize(
    ("root", "data"),
    [
        (AUDIT.root, JUNK),
        (AUDIT.root, AUDIT.data[:-1]),
        (AUDIT.root, AUDIT.data + b"x"),
        (AUDIT.root, b""),
        (AUDIT.root, OTHER.data),
        (OTHER.root, OTHER.data),
    ],
    ids=["zeros", "short", "long", "empty", "another set", "an audit that is not open"],
)
def test_pushed_junk_is_refused_and_leaves_nothing(tmp_path, root, data):
    store = OpeningsStore(tmp_path)
    store.want([wanted()])
    for take in (store.judge, store.accept):
        with pytest.raises(BlobRefusedError):
            take(root, data)
    assert files(tmp_path) == []


def test_bytes_under_a_junk_root_on_chain_are_refused_too(tmp_path):
    """A cheat posts the root of zeros and pushes the zeros: right root, nothing opened."""
    store, root = OpeningsStore(tmp_path), openings.openings_root(JUNK)
    store.want([wanted(root=root)])
    assert store.welcome(root) == {len(JUNK)}
    with pytest.raises(BlobRefusedError, match="the opened tiles of an open audit"):
        store.judge(root, JUNK)


def test_a_root_that_a_cheat_copied_keeps_the_true_set_from_nobody(tmp_path):
    """It posts the root of an honest target's set as its own."""
    store, cheat = OpeningsStore(tmp_path), opened.opened(index=6, previous=opened.NONE)
    store.want([wanted(cheat, root=AUDIT.root), wanted()])
    assert store.welcome(AUDIT.root) == {len(AUDIT.data), len(cheat.data)}
    store.judge(AUDIT.root, AUDIT.data)
    store.accept(AUDIT.root, AUDIT.data)
    assert store.held == [(9, 5)]


def test_a_full_store_takes_only_what_it_must_judge(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "MAX_SPARE_SETS", 1)
    store = OpeningsStore(tmp_path)
    made(store, OTHER)
    store.want([wanted()])
    assert store.welcome(AUDIT.root) == set()
    with pytest.raises(BlobRefusedError):
        store.accept(AUDIT.root, AUDIT.data)
    store.want([wanted(is_ours=True)])
    store.accept(AUDIT.root, AUDIT.data)
    assert store.holds(9, 5, AUDIT.root)


MAKER = """
import sys
from pathlib import Path
from support import opened
from troth_client.state.openings_store import OpeningsStore
store = OpeningsStore(Path(sys.argv[1]))
print("ready", flush=True)
for number in range(100_000):
    audit = opened.opened(round_=9 + number % 3, previous=7)
    print(9 + number % 3, store.make(audit.sampled, audit.after, audit.before).hex(), flush=True)
"""


@pytest.mark.parametrize("sets", [1, 2, 4])
def test_kill_9_leaves_whole_sets_only(tmp_path, sets):
    paths = os.pathsep.join([str(Path(opened.__file__).parent), *sys.path])
    command = [sys.executable, "-c", MAKER, str(tmp_path / "store")]
    environment = {**os.environ, "PYTHONPATH": paths}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as maker:
        lines = [maker.stdout.readline() for _ in range(1 + sets)]
        maker.send_signal(signal.SIGKILL)
    store = OpeningsStore(tmp_path / "store")
    for line in lines[1:]:
        round_, root = line.split()
        assert store.find(int(round_), 5).hex() == root
    assert all(store.shown(bytes.fromhex(n.rsplit("-", 1)[1])) for n in files(tmp_path / "store"))
