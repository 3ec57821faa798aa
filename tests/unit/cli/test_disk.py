"""The disk is looked at before anything is paid."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import blobs
from support.views import PARAMS

from troth_cli.errors import DiskSpaceError
from troth_cli.workflows.disk import check_disk, held_bytes
from troth_client.checkpoint.state_store import StateStore
from troth_client.state.retention import Retention
from troth_client.storage import Store
from troth_client.storage.entries import StoreIdentity, Submission
from troth_client.transport.files import BLOBS_FOLDER, FolderBlobs
from troth_coordinator.rules.config import ModelSection, RunConfig

GB = 10**9
HIDDEN = 1_024
RING = 16


def config_of(num_parameters: float) -> RunConfig:
    """A config whose model has at least so many parameters, nearly all in the embedding."""
    model = ModelSection(
        vocab_size=int(num_parameters) // HIDDEN + 1,
        hidden_size=HIDDEN,
        intermediate_size=HIDDEN,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        tie_word_embeddings=True,
    )
    return RunConfig(model=model)


def test_a_model_that_can_never_fit_is_refused(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    with pytest.raises(DiskSpaceError, match="Nothing was paid"):
        check_disk(tmp_path, config_of(free / 4), PARAMS)


def test_a_disk_that_may_become_full_is_a_warning(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    warning = check_disk(tmp_path, config_of(free / 40), replace(PARAMS, ring=RING))
    assert "a full disk ends this participant" in warning


def test_a_small_model_is_no_matter(tmp_path):
    assert check_disk(tmp_path, RunConfig(), PARAMS) == ""


def test_data_and_an_archive_in_the_state_folder_are_no_room(tmp_path, monkeypatch):
    for name in ("data/train-00000.bin", "archive/payload/0a", "events.jsonl"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as stream:
            stream.truncate(400 * GB)  # without a block on the disk
    usage = shutil.disk_usage(tmp_path)._replace(free=20 * GB)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: usage)
    assert held_bytes(tmp_path) == 0
    warning = check_disk(tmp_path, config_of(10**9), PARAMS)
    assert "20.00 GB are free" in warning
    with pytest.raises(DiskSpaceError, match=r"found 20\.00 GB"):
        check_disk(tmp_path, config_of(2 * 10**9), PARAMS)


def test_what_a_run_has_written_already_counts_as_room_for_it(tmp_path):
    """So a member that comes back is not asked for the same bytes again."""
    with Store(tmp_path, StoreIdentity(b"r" * 32, b"o" * 32, b"c" * 32), raised) as store:
        before = held_bytes(tmp_path)
        store.save_peer(Submission(1, 2, b"header", b"signature", bytes(1_000)))
        checkpoint = StateStore(store, raised).path(3) / "piece"
        checkpoint.parent.mkdir()
        checkpoint.write_bytes(bytes(10_000))
        blob, data = blobs.payload()
        FolderBlobs(tmp_path / BLOBS_FOLDER).put(blob, data)
    assert before == 0
    (record,) = tmp_path.glob("peer-*")
    assert held_bytes(tmp_path) == record.stat().st_size + 10_000 + len(data)


@pytest.mark.parametrize("target", ["removed", "weights-link.record", "data"])
def test_a_link_counts_nothing_wherever_it_leads(tmp_path, target):
    (tmp_path / "data").write_bytes(bytes(10))
    (tmp_path / "weights-link.record").symlink_to(tmp_path / target)
    assert held_bytes(tmp_path) == 0


def test_a_folder_that_is_linked_to_another_disk_is_no_room_on_this_one(tmp_path, monkeypatch):
    blobs_folder = tmp_path / "other"
    blobs_folder.mkdir()
    (blobs_folder / "blob").write_bytes(bytes(10))
    (tmp_path / BLOBS_FOLDER).symlink_to(blobs_folder)
    assert held_bytes(tmp_path) == 10
    look = Path.lstat
    monkeypatch.setattr(Path, "lstat", lambda path: on_another_disk(look(path)))
    assert held_bytes(tmp_path) == 0


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError])
def test_a_file_that_is_removed_meanwhile_or_closed_to_this_user_counts_nothing(
    tmp_path, monkeypatch, error
):
    (tmp_path / "weights-gone.record").write_bytes(bytes(10))

    def refuse(_path):
        raise error

    monkeypatch.setattr(Path, "lstat", refuse)
    assert held_bytes(tmp_path) == 0


def on_another_disk(found):
    """The status of a file, with another device."""
    return SimpleNamespace(st_mode=found.st_mode, st_size=found.st_size, st_dev=found.st_dev + 1)


def raised(error):
    raise error


def test_a_folder_that_is_not_there_yet_is_not_made(tmp_path):
    assert check_disk(tmp_path / "state" / "mine", RunConfig(), PARAMS) == ""
    assert list(tmp_path.iterdir()) == []


def test_retention_grows_with_the_ring_and_with_the_distance_of_checkpoints():
    near = Retention.of(replace(PARAMS, ring=16, checkpoint_every=2))
    assert near.weights == near.payloads == 15
    far = Retention.of(replace(PARAMS, ring=16, checkpoint_every=20))
    assert far.weights == 15
    assert far.payloads > 2 * 20
