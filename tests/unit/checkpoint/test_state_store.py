"""The state store: what others may read, and that it never serves other bytes than were asked."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import states

from troth_attestation.errors import PieceListError
from troth_client.checkpoint.folder import DRAFT_SUFFIX, MANIFEST_FILE, Draft, write_weights
from troth_client.checkpoint.making import make_checkpoint
from troth_client.checkpoint.state_store import StateStore
from troth_client.storage import Store, StoreIdentity, WeightState
from troth_client.transport.base import BlobKind

STATE, OTHER = states.state(), states.state(seed=1)
SHARD = "model-00001-of-00001.safetensors"


@pytest.fixture
def store(tmp_path):
    identity = StoreIdentity(b"r" * 32, b"o" * 32, STATE.config.config_hash())
    with Store(tmp_path / "store", identity, pytest.fail, durable=False) as made:
        yield made


def save(store, state):
    round_, cursor = state.pieces.state.round, state.pieces.state.cursor
    store.save_weights(WeightState(round_, cursor, state.root, state.weights))


def write(store, state):
    path = store.folder / "checkpoints" / str(state.pieces.state.round)
    return write_weights(path, state.manifest, state.pieces, state.views)


def opened(store):
    """A state store, and the damages that it reports."""
    damages = []
    return StateStore(store, damages.append), damages


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def is_served(states_, state):
    """Whether all bytes of a state are served; fails if only some are, or wrong ones."""
    listed = states_.shown(BlobKind.PIECES, state.root)
    assert listed in (None, state.pieces.encode())
    found = {h: states_.shown(BlobKind.PIECE, h) for h in state.piece_bytes()}
    if listed is None:
        assert set(found.values()) == {None}
        return False
    assert found == state.piece_bytes()
    return True


def test_nothing_is_served_before_it_is_shown(store):
    save(store, STATE)
    shown, _ = opened(store)
    assert not is_served(shown, STATE)
    shown.show_round(STATE.pieces, keep=3)
    assert is_served(shown, STATE)
    assert not is_served(shown, OTHER)


def test_checkpoints_on_disk_are_shown_after_a_restart(store):
    write(store, STATE)
    shown, damages = opened(store)
    assert shown.checkpoints == [20]
    assert is_served(shown, STATE)
    assert damages == []


def test_the_newest_rounds_are_shown_and_the_others_forgotten(store):
    shown, _ = opened(store)
    rounds = [states.state(round_, seed=round_) for round_ in range(1, 5)]
    for one in rounds:
        save(store, one)
        shown.show_round(one.pieces, keep=2)
    assert [is_served(shown, one) for one in rounds] == [False, False, True, True]


def test_only_two_checkpoints_and_no_older_draft_stay(store):
    shown, _ = opened(store)
    made = [states.state(round_, seed=round_) for round_ in (10, 20, 30)]
    (shown.folder / ("notes" + DRAFT_SUFFIX)).mkdir()
    for one in made:
        folder = write(store, one)
        for draft in (-1, 0, 1):
            Draft(shown.path(one.pieces.state.round + draft), one.pieces).close()
        shown.show_checkpoint(folder)
    assert shown.checkpoints == [20, 30]
    assert names(shown.folder) == ["20", "30", "31.part", "notes.part"]
    assert [is_served(shown, one) for one in made] == [False, True, True]


def flip(file, at):
    with file.open("r+b") as stream:
        stream.seek(at)
        byte = stream.read(1)[0]
        stream.seek(at)
        stream.write(bytes([byte ^ 1]))


def test_a_damaged_byte_takes_its_piece_out_and_no_other(store):
    shown, _ = opened(store)
    folder = write(store, STATE)
    shown.show_checkpoint(folder)
    flip(folder.path / SHARD, (folder.path / SHARD).stat().st_size - 1)
    last = list(STATE.pieces.pieces())[-1]
    found = {hash_: shown.find(hash_) for hash_ in STATE.piece_bytes()}
    assert found == STATE.piece_bytes() | {last.hash: None}


def test_a_damaged_checkpoint_loads_under_no_root(store):
    folder = write(store, STATE)
    flip(folder.path / SHARD, 5_000)
    found = states.state(tensors=folder.weights())
    with pytest.raises(PieceListError):
        STATE.committed.check(found.pieces)


def test_a_piece_that_is_damaged_in_one_place_is_read_from_another(store):
    shown, _ = opened(store)
    save(store, STATE)
    shown.show_round(STATE.pieces, keep=1)
    folder = write(store, STATE)
    shown.show_checkpoint(folder)
    (folder.path / SHARD).write_bytes(b"")
    assert is_served(shown, STATE)


def test_replaced_weights_of_a_shown_round_are_not_served_as_the_old_ones(store):
    """A correction saves other weights under the same round; the hashes in the list stay."""
    shown, _ = opened(store)
    save(store, STATE)
    shown.show_round(STATE.pieces, keep=1)
    save(store, OTHER)
    assert {shown.find(hash_) for hash_ in STATE.piece_bytes()} == {None}
    store.drop_after(0)
    assert {shown.find(hash_) for hash_ in STATE.piece_bytes()} == {None}
    shown.show_round(OTHER.pieces, keep=1)
    assert shown.shown(BlobKind.PIECES, STATE.root) is None


def test_equal_pieces_of_several_tensors_and_states_are_found(store):
    shown, _ = opened(store)
    ones = {name: np.ones_like(value) for name, value in STATE.weights.items()}
    flat = states.state(tensors=ones)
    save(store, flat)
    shown.show_round(flat.pieces, keep=1)
    assert len(set(flat.piece_bytes())) < len(list(flat.pieces.pieces()))
    assert is_served(shown, flat)


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


DAMAGES = {
    "a cut shard": lambda path: cut(path / SHARD),
    "no manifest": lambda path: (path / MANIFEST_FILE).unlink(),
    "garbage as manifest": lambda path: (path / MANIFEST_FILE).write_bytes(b"{}"),
    "another round's": lambda path: path.rename(path.with_name("30")),
    "a file": lambda path: (path.rename(path.with_name("moved")), path.write_bytes(b"")),
    "a dead link": lambda path: (path.rename(path.with_name("moved")), path.symlink_to("gone")),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_damaged_folder_is_reported_removed_and_made_anew(store, what):
    folder = write(store, STATE)
    DAMAGES[what](folder.path)
    shown, damages = opened(store)
    assert [type(damage).__name__ for damage in damages] == ["CheckpointFileError"]
    assert shown.checkpoints == []
    assert not is_served(shown, STATE)
    assert not (set(names(shown.folder)) & {"20", "30"})
    shown.show_checkpoint(write(store, STATE))
    assert is_served(shown, STATE)


@pytest.mark.parametrize("name", ["020", "²", "٢٠", "20.part", "20 ", "-1", "x", "9" * 40, ".git"])
def test_odd_names_are_left_alone(store, name):
    (store.folder / "checkpoints" / name).mkdir(parents=True)
    shown, damages = opened(store)
    assert damages == []
    assert shown.checkpoints == []
    shown.show_checkpoint(write(store, states.state(30)))
    assert (shown.folder / name).is_dir() == (name != "20.part")


def test_a_link_to_a_damaged_folder_goes_and_the_folder_stays(store, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_bytes(b"")
    (store.folder / "checkpoints").mkdir()
    (store.folder / "checkpoints" / "20").symlink_to(tmp_path / "precious")
    _, damages = opened(store)
    assert len(damages) == 1
    assert names(store.folder / "checkpoints") == []
    assert names(tmp_path / "precious") == ["file"]


def test_reading_goes_on_while_the_states_are_arranged_anew(store):
    """The server reads in threads while the participant shows the next round."""
    shown, _ = opened(store)
    shown.show_checkpoint(write(store, STATE))
    wrong, reads, over = [], [], threading.Event()

    def read():
        while not over.is_set():
            for hash_, data in STATE.piece_bytes().items():
                if shown.find(hash_) != data:
                    wrong.append(hash_)
                reads.append(hash_)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for round_ in range(1, 40):
        shown.show_round(states.state(round_, seed=1, tensors=OTHER.weights).pieces, keep=3)
    while len(reads) < 100:
        shown.show_round(OTHER.pieces, keep=3)
    over.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_checkpoint_is_made_from_the_weights_on_disk_under_the_chains_root(store):
    shown, _ = opened(store)
    arguments = (store, shown, STATE.committed, lambda _: STATE.manifest)
    assert make_checkpoint(*arguments) is None
    save(store, OTHER)
    with pytest.raises(PieceListError):
        make_checkpoint(*arguments)
    assert names(shown.folder) == []
    save(store, STATE)
    folder = make_checkpoint(*arguments)
    shown.show_checkpoint(folder)
    assert folder.path == shown.path(20)
    assert is_served(shown, STATE)


@settings(max_examples=150)
@given(st.data())
def test_spans_of_a_damaged_record_are_wrong_bytes_or_none(tmp_path_factory, data):
    """Nobody checks the seal of the whole file before one piece of it is read."""
    folder = tmp_path_factory.mktemp("store")
    identity = StoreIdentity(b"r" * 32, b"o" * 32, b"c" * 32)
    tensors = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(2, np.float32)}
    with Store(folder, identity, pytest.fail, durable=False) as store:
        store.save_weights(WeightState(3, 96, bytes(32), tensors))
        assert store.read_weights(3, "a", 8, 16) == tensors["a"].tobytes()[8:]
        assert store.read_weights(3, "b", 0, 8) == tensors["b"].tobytes()
        (file,) = folder.glob("weights-*.record")
        whole = bytearray(file.read_bytes())
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] ^= data.draw(st.integers(1, 255))
        end = data.draw(st.sampled_from([len(whole), at]))
        file.write_bytes(whole[:end])
        for name, size in (("a", 24), ("b", 8)):
            found = store.read_weights(3, name, 0, size)
            assert found is None or len(found) == size


HEADS = {
    "a fraction": b'{"fields":{},"arrays":[["a","<f4",[2.3]]]}',
    "a negative size": b'{"fields":{},"arrays":[["a","<f4",[-2,-3]]]}',
    "a nested shape": b'{"fields":{},"arrays":[["a","<f4",[[2]]]]}',
    "a text as shape": b'{"fields":{},"arrays":[["a","<f4","24"]]}',
    "a huge shape": b'{"fields":{},"arrays":[["b","<f4",[1000000000000000000]],["a","<f4",[6]]]}',
    "no type": b'{"fields":{},"arrays":[["a","f4,,(",[6]]]}',
    "no arrays": b'{"fields":{}}',
    "a list": b"[]",
    "a number": b"7",
    "no UTF-8": b"\xff\xfe",
    "a deep nest": b"[" * 200_000,
}


@pytest.mark.parametrize("what", HEADS)
@pytest.mark.parametrize("length", [None, 2**32 - 1])
def test_a_record_with_a_wild_head_has_no_spans(store, what, length):
    head = HEADS[what]
    size = len(head) if length is None else length
    path = store.folder / f"weights-{3:020d}.record"
    path.write_bytes(b"trothrec" + size.to_bytes(4, "little") + head + bytes(200))
    assert store.read_weights(3, "a", 0, 24) is None


@pytest.mark.parametrize(("offset", "num_bytes"), [(-4, 4), (20, 8), (24, 1), (0, 25), (2**70, 4)])
def test_a_span_outside_its_tensor_is_not_read(store, offset, num_bytes):
    tensors = {"a": np.zeros(6, np.float32), "b": np.zeros(6, np.float32)}
    store.save_weights(WeightState(3, 96, bytes(32), tensors))
    assert store.read_weights(3, "a", offset, num_bytes) is None
    assert store.read_weights(3, "c", 0, 4) is None
    assert store.read_weights(4, "a", 0, 4) is None


def test_a_folder_in_place_of_a_record_has_no_spans(store):
    (store.folder / f"weights-{3:020d}.record").mkdir()
    assert store.read_weights(3, "a", 0, 4) is None
