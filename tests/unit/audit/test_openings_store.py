"""The openings store: whole files found again, damage never shown, only drawn tiles."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import opened

import troth_client.state.openings_store as store_module
from troth_attestation import openings
from troth_attestation.errors import OpeningFieldError, OpeningPathError
from troth_client.runtime.files import DiskFullError
from troth_client.state.openings_store import OpeningsStore
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


def test_settled_audits_and_undone_rounds_are_forgotten(tmp_path):
    store = OpeningsStore(tmp_path)
    every = [opened.opened(round_, index) for round_, index in ((8, 1), (9, 1), (9, 2), (10, 1))]
    for one in every:
        made(store, one)
    store.settle(9, 2)
    store.settle(9, 2)
    assert store.find(9, 1) == every[1].root
    store.rewind(9)
    for key in ((9, 1), (9, 2), (10, 1)):
        assert store.find(*key) is None, f"round and target {key}"
    assert store.find(8, 1) == every[0].root
    assert len(files(tmp_path)) == 1


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
