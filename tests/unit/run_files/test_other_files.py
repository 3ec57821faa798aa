"""A folder with files of somebody's own: a fetch replaces none of them, and says which it found."""

import contextlib
import hashlib
from types import SimpleNamespace

import pytest
from support.run_files import Holders

from troth_cli.workflows.run_files import fetch_run
from troth_client.data.manifest import TokenizerEntry
from troth_client.run_files.errors import OtherFilesError
from troth_client.run_files.fetch import fetch_config, fetch_manifest, fetch_tokenizer
from troth_client.transport.base import BlobKind

TOKENIZER = b'{"a": "tokenizer"}'


def with_tokenizer(run):
    """The manifest of the run's data, as one that has a tokenizer."""
    entry = TokenizerEntry(
        kind="tokenizers", sha256=hashlib.sha256(TOKENIZER).hexdigest(), end_token=0
    )
    return run.manifest.model_copy(update={"tokenizer": entry})


class Shown:
    """A holder of the config, the manifest and the tokenizer."""

    def __init__(self, run):
        manifest = with_tokenizer(run)
        key = bytes.fromhex(manifest.tokenizer.sha256)
        self.blobs = {
            (BlobKind.CONFIG, run.config.config_hash()): run.config.canonical_json(),
            (BlobKind.MANIFEST, manifest.hash): manifest.canonical,
            (BlobKind.TOKENIZER, key): TOKENIZER,
        }

    def shown(self, kind, key):
        return self.blobs.get((kind, key))


@pytest.fixture
async def source(run):
    async with contextlib.AsyncExitStack() as stack:
        holders = Holders(stack)
        await holders.add("a", Shown(run))
        yield await holders.source()


def left(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}


@pytest.mark.parametrize("name", ["config.json", "manifest.json"])
async def test_a_fetch_into_somebodys_folder_begins_not_at_all(name, run, tmp_path):
    """A model's folder has a config.json of its own; nobody was asked for anything yet."""
    (tmp_path / name).write_bytes(b"mine")
    view = SimpleNamespace(config_hash=run.config.config_hash(), manifest_hash=run.manifest.hash)
    with pytest.raises(OtherFilesError, match=name):
        await fetch_run(None, view, tmp_path, None)
    assert left(tmp_path) == {name: b"mine"}


async def test_another_config_is_not_replaced(run, source, tmp_path):
    (tmp_path / "config.json").write_bytes(b"mine")
    with pytest.raises(OtherFilesError, match=run.config.config_hash().hex()):
        await fetch_config(source, tmp_path, run.config.config_hash())
    assert left(tmp_path) == {"config.json": b"mine"}


async def test_another_tokenizer_is_found_before_the_manifest_is_written(run, source, tmp_path):
    manifest = with_tokenizer(run)
    (tmp_path / "tokenizer.json").write_bytes(b"mine")
    with pytest.raises(OtherFilesError, match=manifest.tokenizer.sha256):
        await fetch_manifest(source, tmp_path, manifest.hash)
    with pytest.raises(OtherFilesError, match=manifest.tokenizer.sha256):
        await fetch_tokenizer(source, tmp_path, manifest)
    assert left(tmp_path) == {"tokenizer.json": b"mine"}
    (tmp_path / "tokenizer.json").write_bytes(TOKENIZER)
    assert await fetch_manifest(source, tmp_path, manifest.hash) == manifest
    await fetch_tokenizer(source, tmp_path, manifest)
    assert left(tmp_path)["tokenizer.json"] == TOKENIZER
