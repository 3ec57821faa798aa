"""A full disk where the stake hangs on a file: what can be spared goes first, and no more of it."""

import shutil

import numpy as np
import pytest
from support import opened
from support.disks import small_disk

from troth_attestation.cases import Vote
from troth_attestation.sketch import sketch_hash
from troth_attestation.verdict import Statement, VerdictKind
from troth_client.runtime.files import DiskFullError
from troth_client.state.openings_store import OpeningsStore
from troth_client.state.verdict_store import VerdictStore
from troth_client.storage import Store, StoreIdentity, Submission, WeightState
from troth_client.storage.room import Room
from troth_client.telemetry.event_log import EventLog, Rotation, older_files

IDENTITY = StoreIdentity(bytes(32), b"o" * 32, b"c" * 32)
SKETCH = tuple(range(-32, 32))
ABOUT = (5, VerdictKind.OK, b"e" * 32, sketch_hash(SKETCH))
AUDIT = opened.opened()


@pytest.fixture
def full(tmp_path):
    """A store on a disk without a free byte, some of which copies of payloads take."""
    reported = []
    with (
        small_disk(tmp_path / "disk", "6m") as disk,
        Store(disk / "state", IDENTITY, reported.append) as store,
    ):
        VerdictStore(disk / "state" / "verdicts", store.salt_key, reported.append)
        OpeningsStore(disk / "state" / "openings")
        for index in range(5):
            store.save_peer(Submission(1, index, b"header", b"signature", bytes(600_000)))
        assert len(store.peer_indices(1)) == 5
        fill(disk)
        yield store, reported


def fill(disk):
    with (disk / "ballast").open("ab") as stream:
        stream.write(bytes(shutil.disk_usage(disk).free))
    assert shutil.disk_usage(disk).free == 0


def seal_verdict(store):
    verdicts = VerdictStore(store.folder / "verdicts", bytes(32), print, room=store.room)
    made = verdicts.seal_verdict(Statement(bytes(32), 12, 3, *ABOUT), SKETCH)
    assert verdicts.find(made.duty) == made


def seal_vote(store):
    verdicts = VerdictStore(store.folder / "verdicts", bytes(32), print, room=store.room)
    made = verdicts.seal_vote(Vote(bytes(32), 12, 3, 0, *ABOUT), SKETCH)
    assert verdicts.find(made.duty) == made


def make_openings(store):
    sets = OpeningsStore(store.folder / "openings", store.room)
    root = sets.make(AUDIT.sampled, AUDIT.after, AUDIT.before)
    assert sets.shown(root) == AUDIT.data


@pytest.mark.parametrize("write", [seal_verdict, seal_vote, make_openings])
def test_copies_of_payloads_give_way_to_what_an_audit_asks_for(write, full):
    store, reported = full
    write(store)
    assert store.peer_indices(1) == []
    (found,) = reported
    assert "no space left" in found.found


def test_where_nothing_can_be_spared_any_more_nothing_that_was_stored_is_lost(full):
    store, _ = full
    seal_verdict(store)
    fill(store.folder.parent)
    with pytest.raises(DiskFullError, match="Nothing that was stored is lost"):
        seal_vote(store)
    seal_verdict(store)
    assert [path.name[:4] for path in (store.folder / "verdicts").iterdir()] == ["seat"]


def test_no_more_is_dropped_than_needed_and_the_least_missed_first():
    dropped, room = [], Room()
    for name in ("copies", "log", "weights"):
        room.add(lambda name=name: dropped.append(name))

    def save():
        if dropped != ["copies", "log"]:
            raise DiskFullError("room", "none", "")

    room.write(save)
    assert dropped == ["copies", "log"]


def weights(at, num_values=4):
    return WeightState(at, at, bytes(32), {"w": np.ones(num_values, np.float32)})


def test_old_weights_go_one_by_one_those_that_are_needed_last_and_the_newest_never(tmp_path):
    with Store(tmp_path, IDENTITY, print) as store:
        for at in range(6):
            store.save_weights(weights(at))
        store.needs_weights(lambda: [2, 9, 0, 5])
        left = []
        while store.drop_old_weights():
            left.append(store.weight_rounds())
        assert left == [[0, 2, 3, 4, 5], [0, 2, 4, 5], [0, 4, 5]]
        assert store.weight_rounds() == [4, 5]
        assert not store.drop_old_weights()
        assert store.weight_rounds() == [4, 5]


def test_older_weights_give_way_to_new_ones_those_that_are_needed_last(tmp_path):
    """A disk with room for four of them, and for no copies of payloads beside these."""
    reported = []
    with (
        small_disk(tmp_path / "disk", "1m") as disk,
        Store(disk / "state", IDENTITY, reported.append) as store,
    ):
        store.needs_weights(lambda: [3, 1])
        store.save_peer(Submission(1, 0, b"header", b"signature", bytes(100_000)))
        for at in range(9):
            store.save_weights(weights(at, 60_000))
        assert store.weight_rounds() == [1, 3, 7, 8]
        assert store.peer_indices(1) == []
        assert len(reported) == 6
        fill(disk)
        store.save_weights(weights(9, 120_000))
        assert store.weight_rounds() == [1, 8, 9]
        store.save_weights(weights(10, 400_000))
        assert store.weight_rounds() == [9]
        assert store.load_weights(9) is not None


def test_the_part_of_a_spare_that_makes_room_is_the_last_to_go():
    parts, room = [1, 2, 3], Room()

    def drop():
        parts.pop(0)
        return bool(parts)

    def save():
        if len(parts) > 1:
            raise DiskFullError("room", "none", "")

    room.add(drop)
    room.write(save)
    assert parts == [3]


def test_older_events_go_as_rotation_would_remove_them(tmp_path):
    path, seen = tmp_path / "events.jsonl", []
    rotation = Rotation(max_file_bytes=100, removing=lambda number, _path: seen.append(number))
    with EventLog.open(path, rotation) as log:
        for _ in range(6):
            log.emit("something", reason="x" * 40)
        numbers = [number for number, _ in older_files(path)]
        before = len(seen)
        log.drop_older()
        assert seen[before:] == numbers
        assert numbers
        assert older_files(path) == []
        log.emit("after")
    assert path.exists()
