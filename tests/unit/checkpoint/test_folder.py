"""Checkpoints in folders: whole or not there, whatever kills, fills or damages what."""

import os
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from support import states
from support.disks import no_file_beyond

from troth_client.checkpoint.errors import CheckpointFileError
from troth_client.checkpoint.folder import MANIFEST_FILE, CheckpointFolder, Draft, write_weights
from troth_client.runtime.files import DiskFullError, FolderInUseError

STATE = states.state()
BYTES = STATE.piece_bytes()
SHARD = "model-00001-of-00001.safetensors"


def write(path, state=STATE):
    return write_weights(path, state.manifest, state.pieces, state.views)


def fill(draft, pieces, data=BYTES):
    for piece in pieces:
        draft.put(piece, data[piece.hash])


def same_weights(found, wanted=STATE.weights):
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name, strict=True)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_written_checkpoint_opens_and_gives_its_weights_and_pieces(tmp_path):
    write(tmp_path / "20")
    found = CheckpointFolder.open(tmp_path / "20")
    assert found.manifest == STATE.manifest
    assert found.pieces == STATE.pieces
    same_weights(found.weights())
    for piece in STATE.pieces.pieces():
        assert found.read(piece) == BYTES[piece.hash]
    assert names(tmp_path) == ["20"]


def test_weights_in_several_shards_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr("troth_attestation.shards.SHARD_BYTES", 10**6)
    folder = write(tmp_path / "20")
    assert len(names(folder.path)) == 4
    same_weights(CheckpointFolder.open(tmp_path / "20").weights())


def test_a_draft_is_filled_in_any_order_and_by_several_threads(tmp_path):
    with Draft(tmp_path / "20", STATE.pieces) as draft:
        pieces = draft.missing()[::-1]
        assert len(pieces) == len(list(STATE.pieces.pieces()))
        threads = [threading.Thread(target=fill, args=(draft, pieces[at::3])) for at in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert draft.missing() == []
        draft.finish(STATE.manifest)
    same_weights(CheckpointFolder.open(tmp_path / "20").weights())
    assert names(tmp_path) == ["20"]


def test_a_draft_is_no_checkpoint(tmp_path):
    with Draft(tmp_path / "20", STATE.pieces) as draft:
        fill(draft, STATE.pieces.pieces())
    assert names(tmp_path) == ["20.part"]
    for path in (tmp_path / "20", tmp_path / "20.part"):
        with pytest.raises(CheckpointFileError, match="manifest"):
            CheckpointFolder.open(path)


FILLER = """
import os, signal, sys
from pathlib import Path
from support import states
from support.disks import no_file_beyond
from troth_client.checkpoint.folder import Draft

state, end = states.state(), sys.argv[2]
data = state.piece_bytes()
draft = Draft(Path(sys.argv[1]), state.pieces)
for number, piece in enumerate(state.pieces.pieces()):
    if str(number) == end:
        half = piece.num_bytes // 2
        draft.put(piece, data[piece.hash][:half])
        os.kill(os.getpid(), signal.SIGKILL)
    draft.put(piece, data[piece.hash])
if end == "rename":
    Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if end == "removal":
    from troth_client.checkpoint import folder
    folder.remove = lambda _: os.kill(os.getpid(), signal.SIGKILL)
draft.finish(state.manifest)
"""


def killed(path, end):
    command = [sys.executable, "-c", FILLER, str(path), str(end)]
    done = subprocess.run(command, check=False, cwd="tests", capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize(("end", "num_missing"), [(0, 14), (7, 7), ("rename", 0), ("removal", 0)])
def test_a_killed_process_leaves_a_draft_that_goes_on(tmp_path, end, num_missing):
    """It dies in the middle of a piece, before its manifest is in place, or before the rename."""
    killed(tmp_path / "20", end)
    assert names(tmp_path) == ["20.part"]
    with Draft(tmp_path / "20", STATE.pieces) as draft:
        left = draft.missing()
        assert len(left) == num_missing
        assert names(tmp_path / "20.part") == [SHARD]
        fill(draft, left)
        draft.finish(STATE.manifest)
    same_weights(CheckpointFolder.open(tmp_path / "20").weights())
    assert names(tmp_path / "20") == [MANIFEST_FILE, SHARD]


def test_a_draft_of_another_state_of_the_round_goes_on_with_what_is_equal(tmp_path):
    """A fork or another root: the lengths are the same, and some tensors may be."""
    tensors = STATE.weights | {"model.norm.weight": np.ones(64, np.float32)}
    other = states.state(tensors=tensors)
    with Draft(tmp_path / "20", other.pieces) as draft:
        fill(draft, other.pieces.pieces(), other.piece_bytes())
    with Draft(tmp_path / "20", STATE.pieces) as draft:
        (left,) = draft.missing()
        assert left.tensor == "model.norm.weight"
        fill(draft, [left])
        draft.finish(STATE.manifest)
    same_weights(CheckpointFolder.open(tmp_path / "20").weights())


def test_strange_things_in_a_draft_do_not_reach_the_checkpoint(tmp_path):
    """Shards of another model, half a manifest, and a link where a shard should lie."""
    part = tmp_path / "20.part"
    (part / "folder").mkdir(parents=True)
    (tmp_path / "foreign").write_bytes(b"untouched")
    (part / SHARD).symlink_to(tmp_path / "foreign")
    (part / "model-00001-of-00002.safetensors").write_bytes(b"old")
    (part / (MANIFEST_FILE + ".tmp")).write_bytes(b"half")
    write(tmp_path / "20")
    assert names(tmp_path / "20") == [MANIFEST_FILE, SHARD]
    assert (tmp_path / "foreign").read_bytes() == b"untouched"
    same_weights(CheckpointFolder.open(tmp_path / "20").weights())


def test_a_draft_behind_a_link_is_made_anew(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "20.part").symlink_to(tmp_path / "elsewhere")
    write(tmp_path / "20")
    assert names(tmp_path / "elsewhere") == []
    assert not (tmp_path / "20").is_symlink()


def test_a_file_in_the_place_of_a_draft_makes_room(tmp_path):
    (tmp_path / "20.part").write_text("no draft")
    write(tmp_path / "20")
    assert names(tmp_path) == ["20"]


def test_a_checkpoint_with_another_root_is_replaced(tmp_path):
    write(tmp_path / "20", states.state(seed=1))
    write(tmp_path / "20")
    assert CheckpointFolder.open(tmp_path / "20").pieces.root == STATE.root
    assert names(tmp_path) == ["20"]


@pytest.mark.parametrize("what", ["file", "link", "shards of a checkpoint"])
def test_what_lies_in_the_place_of_a_checkpoint_makes_room(tmp_path, what):
    place, elsewhere = tmp_path / "20", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_bytes(b"")
    if what == "file":
        place.write_bytes(b"")
    elif what == "link":
        place.symlink_to(elsewhere)
    else:
        write(place)
        (place / MANIFEST_FILE).unlink()
    write(place)
    same_weights(CheckpointFolder.open(place).weights())
    assert names(elsewhere) == ["kept"]


def test_a_folder_of_somebody_is_refused_before_anything_is_written(tmp_path):
    """A user who names a folder with other things in it must not lose them."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("years")
    with pytest.raises(CheckpointFileError, match=r"thesis\.txt"):
        Draft(tmp_path / "home", STATE.pieces)
    assert names(tmp_path) == ["home"]
    assert (tmp_path / "home" / "thesis.txt").read_text() == "years"


def test_a_draft_is_open_once_at_a_time(tmp_path):
    with Draft(tmp_path / "20", STATE.pieces) as draft:
        fill(draft, list(STATE.pieces.pieces())[:5])
        with pytest.raises(FolderInUseError, match="fills it"):
            Draft(tmp_path / "20", STATE.pieces)
        with pytest.raises(FolderInUseError):
            write(tmp_path / "20")
        assert len(draft.missing()) == 9, "the one that came second has changed nothing"
        fill(draft, draft.missing())
        draft.finish(STATE.manifest)
    same_weights(CheckpointFolder.open(tmp_path / "20").weights())


def test_a_draft_that_somebody_removed_is_no_checkpoint(tmp_path):
    with Draft(tmp_path / "20", STATE.pieces) as draft:
        fill(draft, STATE.pieces.pieces())
        shutil.rmtree(tmp_path / "20.part")
        with pytest.raises(CheckpointFileError, match=r"20\.part"):
            draft.finish(STATE.manifest)


def test_a_closed_draft_writes_into_no_other_file(tmp_path):
    """A cancelled fetch leaves a thread behind; the number of a closed file is used again."""
    draft = Draft(tmp_path / "20", STATE.pieces)
    draft.close()
    draft.close()
    piece = next(STATE.pieces.pieces())
    with (tmp_path / "other").open("w+b") as other:
        with pytest.raises(ValueError, match="closed"):
            draft.put(piece, BYTES[piece.hash])
        with pytest.raises(ValueError, match="closed"):
            draft.has(piece)
        assert other.read() == b""


def test_the_system_may_take_a_write_in_parts(tmp_path, monkeypatch):
    pwrite = os.pwrite
    monkeypatch.setattr("os.pwrite", lambda file, data, at: pwrite(file, data[:100_003], at))
    write(tmp_path / "20")
    same_weights(CheckpointFolder.open(tmp_path / "20").weights())


def test_a_full_disk_leaves_no_folder_and_keeps_the_old_one(tmp_path):
    write(tmp_path / "20", states.state(seed=1))
    with no_file_beyond(10**6):
        with pytest.raises(DiskFullError, match="Nothing that was stored is lost"):
            write(tmp_path / "20")
        with pytest.raises(DiskFullError):
            write(tmp_path / "30")
    assert names(tmp_path) == ["20"]
    same_weights(CheckpointFolder.open(tmp_path / "20").weights(), states.weights(seed=1))


def test_a_disk_that_fills_up_while_writing_leaves_no_folder(tmp_path, monkeypatch):
    """The files are sparse: their length is no promise of room."""
    monkeypatch.setattr("os.ftruncate", lambda *_: None)
    with no_file_beyond(2_000_000), pytest.raises(DiskFullError):
        write(tmp_path / "20")
    assert names(tmp_path) == []


def test_a_full_disk_keeps_the_pieces_of_a_draft(tmp_path, monkeypatch):
    monkeypatch.setattr("os.ftruncate", lambda *_: None)
    with (
        no_file_beyond(2_000_000),
        Draft(tmp_path / "20", STATE.pieces) as draft,
        pytest.raises(DiskFullError),
    ):
        fill(draft, STATE.pieces.pieces())
    with Draft(tmp_path / "20", STATE.pieces) as draft:
        assert 0 < len(draft.missing()) < 14


def cut(path):
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size - 2)


DAMAGES = {
    "a cut shard": lambda folder: cut(folder / SHARD),
    "a shard with a byte more": lambda folder: (folder / SHARD).open("ab").write(b"\0"),
    "no shard": lambda folder: (folder / SHARD).unlink(),
    "a folder as shard": lambda folder: ((folder / SHARD).unlink(), (folder / SHARD).mkdir()),
    "no manifest": lambda folder: (folder / MANIFEST_FILE).unlink(),
    "a cut manifest": lambda folder: cut(folder / MANIFEST_FILE),
    "a pipe as manifest": lambda folder: pipe(folder / MANIFEST_FILE),
    "a link as manifest": lambda folder: linked(folder / MANIFEST_FILE),
    "a link as shard": lambda folder: linked(folder / SHARD),
    "swapped names in the header": lambda folder: swap_names(folder / SHARD),
    "another manifest": lambda folder: (folder / MANIFEST_FILE).write_bytes(
        states.state(config=OTHER_MODEL).manifest.encode()
    ),
}
OTHER_MODEL = states.CONFIG.model_copy(
    update={"model": states.MODEL.model_copy(update={"vocab_size": 4_999})}
)


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def linked(path):
    """The right bytes, but elsewhere."""
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def swap_names(path):
    """The weights are where they should be; a reader of the file alone would mix them up."""
    data = path.read_bytes().replace(b"k_proj", b"x_proj").replace(b"v_proj", b"k_proj")
    path.write_bytes(data.replace(b"x_proj", b"v_proj"))


@pytest.mark.parametrize("what", DAMAGES)
def test_a_folder_that_is_not_whole_is_refused_at_open(tmp_path, what):
    write(tmp_path / "20")
    DAMAGES[what](tmp_path / "20")
    with pytest.raises(CheckpointFileError, match="nothing was loaded"):
        CheckpointFolder.open(tmp_path / "20")


@pytest.mark.parametrize("damage", ["a cut shard", "no shard"])
def test_a_folder_that_is_damaged_after_it_was_opened_says_so(tmp_path, damage):
    folder = write(tmp_path / "20")
    DAMAGES[damage](folder.path)
    with pytest.raises(CheckpointFileError):
        folder.weights()
    last = list(STATE.pieces.pieces())[-1]
    assert folder.read(last) != BYTES[last.hash]
