"""Folders that a user names: whatever lies there and has no name of ours stays.

`troth hub --dir`, `troth join --state` and `troth audit --state` may get a folder that is in use.
"""

import pytest
from support import showing, states

from troth_client.checkpoint.errors import CheckpointFileError
from troth_client.checkpoint.state_store import StateStore
from troth_client.hub.keeping import KeptSets
from troth_client.hub.states import KeptStates
from troth_client.run_files.files import KeptFiles
from troth_client.state.audited import AuditedWeights
from troth_client.storage.entries import StoreIdentity
from troth_client.storage.store import Store
from troth_client.transport.bounded import BoundedBlobs

ROOT = "ab" * 32


def put(folder, *names):
    """Write files, and return their names."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    return set(names)


def left(folder):
    """Return the names of all files that lie in a folder now."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_hub_in_a_project_folder_removes_nothing_of_it(tmp_path):
    """A secret three folders deep went, for its folder has no number for a name."""
    mine = put(
        tmp_path,
        "troth-state/RUN-OWNER/salt.key",
        "src/7/code.py",
        "held/7/notes.txt",
        "served/x/draft.tmp",
        "served/7/letter.tmp",
    )
    put(tmp_path, f"served/7/payload-{ROOT}", f"served/7/header-{ROOT}.tmp")
    blobs = BoundedBlobs(tmp_path, 10**9)
    assert left(tmp_path) == mine | {f"served/7/payload-{ROOT}"}
    assert blobs.num_bytes == len("mine")
    assert blobs.served(f"payload/{ROOT}") == b"mine"


def test_a_hub_removes_only_sets_and_weights_from_its_other_folders(tmp_path):
    mine = put(tmp_path, "states/mine.txt", "states/sub/file", "states/a.tmp", "sets/b.tmp")
    put(tmp_path, f"states/{ROOT}", f"states/{ROOT}.tmp", "states/7-9", f"sets/{ROOT}.tmp")
    (tmp_path / "states" / ("cd" * 32)).mkdir()
    config = states.CONFIG
    files = KeptFiles(tmp_path / "files", config.config_hash(), bytes(32))
    KeptStates(tmp_path / "states", files, config.config_hash(), 10**9)
    KeptSets(tmp_path / "sets", 10**9)
    assert left(tmp_path) == mine


def test_a_member_in_a_folder_with_checkpoints_of_somebodys_own_removes_none(tmp_path):
    """Trainers of all kinds name the folder of a checkpoint by its step."""
    mine = put(
        tmp_path,
        "checkpoints/1000/model.safetensors",
        "checkpoints/2000/manifest.json",
        "checkpoints/2000/optimizer.pt",
        "checkpoints/3000",
        "checkpoints/4.part/draft.txt",
        "checkpoints/best/model.safetensors",
        "draft.tmp",
    )
    put(tmp_path, "checkpoints/5000/manifest.json", "salt.key.tmp")
    identity = StoreIdentity(b"r" * 32, b"o" * 32, b"c" * 32)
    found = []
    with Store(tmp_path, identity, pytest.fail, durable=False) as store:
        shown = StateStore(store, found.append)
        for round_ in (10, 20, 30):
            showing.show_checkpoint(shown, states.state(round_, seed=round_))
        with pytest.raises(CheckpointFileError, match=r"model\.safetensors"):
            showing.show_checkpoint(shown, states.state(1000))
        assert shown.checkpoints == [20, 30]
    names = left(tmp_path)
    assert mine <= names
    assert not names & {"checkpoints/5000/manifest.json", "salt.key.tmp"}
    assert len(found) == 4


def test_an_audit_removes_only_states_by_their_roots(tmp_path):
    """Darknet's weights have the ending of ours."""
    mine = put(tmp_path, "yolov3.weights", "tiny.weights", f"{ROOT}.weights.bak")
    put(tmp_path, f"{ROOT}.weights")
    weights = AuditedWeights(bytes(32), states.CONFIG, None, folder=tmp_path)
    weights.save()
    weights.forget_others(None)
    assert left(tmp_path) == mine | {f"{weights.root().hex()}.weights"}
