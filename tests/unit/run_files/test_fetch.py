"""Fetching the files of a run: whole, under the run's hashes, from holders of whom some lie."""

import contextlib
import json
import os
from types import SimpleNamespace

import pytest
from support import disks
from support.run_files import Holders

from troth_cli.workflows.run_files import _bring_data
from troth_client.data.errors import ManifestError
from troth_client.data.shards import TokenData
from troth_client.run_files.errors import OtherFilesError, RunFileError, RunFilesGoneError
from troth_client.run_files.fetch import (
    fetch_config,
    fetch_manifest,
    fetch_shards,
    fetch_tokenizer,
)
from troth_client.run_files.files import LIMITS, MAX_CONFIG_BYTES
from troth_client.run_files.folder import DRAFT_SUFFIX, DataFolder
from troth_client.runtime.files import DiskFullError
from troth_client.transport.base import BlobKind
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.hashing import H, var


@pytest.fixture
async def holders():
    async with contextlib.AsyncExitStack() as stack:
        yield Holders(stack)


class Raw:
    """Shows exactly these bytes."""

    def __init__(self, blobs):
        self.blobs = blobs

    def shown(self, kind, key):
        return self.blobs.get((kind, key))


def train(run):
    return run.manifest.train


async def test_data_that_the_model_cannot_take_is_refused_before_gigabytes_are_fetched(
    run, holders, tmp_path
):
    await holders.add("a", run.kept())
    source, view = await holders.source(), SimpleNamespace(manifest_hash=run.manifest.hash)
    with pytest.raises(ManifestError, match=r"data\.sequence_tokens"):
        await _bring_data(source, tmp_path / "out", view, run.config)
    assert set(holders.counts["a"].kinds) == {BlobKind.MANIFEST}


async def test_a_newcomer_with_two_hashes_gets_everything_from_several_holders(
    run, holders, tmp_path
):
    for name in "abc":
        await holders.add(name, run.kept())
    source = await holders.source()
    assert await fetch_config(source, tmp_path, run.config.config_hash()) == run.config
    manifest = await fetch_manifest(source, tmp_path, run.manifest.hash)
    assert manifest == run.manifest
    await fetch_tokenizer(source, tmp_path, manifest)
    data = DataFolder(tmp_path, manifest)
    shards = (*manifest.train, *manifest.validation)
    total = sum(map(manifest.num_bytes, shards))
    assert await fetch_shards(source, data, shards) == total
    assert [len(shard.pieces) for shard in manifest.train] == [2, 2, 1]
    for shard in shards:
        assert (tmp_path / shard.file).read_bytes() == (run.folder / shard.file).read_bytes()
    assert TokenData(tmp_path, manifest).faults(lambda *_: None) == []
    assert not list(tmp_path.glob("*" + DRAFT_SUFFIX))
    served = [count.kinds[BlobKind.PIECE] for count in holders.counts.values()]
    assert sum(served) == sum(len(shard.pieces) for shard in shards)
    assert max(served) < sum(served), "not one holder gave all of it"
    progress = holders.events.named("fetching_data")
    assert [progress[0]["done_bytes"], progress[-1]["done_bytes"]] == [0, total]


async def test_a_second_start_asks_nobody(run, holders, tmp_path):
    await holders.add("a", run.kept())
    source = await holders.source()
    await fetch_config(source, tmp_path, run.config.config_hash())
    manifest = await fetch_manifest(source, tmp_path, run.manifest.hash)
    await fetch_shards(source, DataFolder(tmp_path, manifest), train(run))
    holders.counts["a"].served.clear()
    await fetch_config(source, tmp_path, run.config.config_hash())
    manifest = await fetch_manifest(source, tmp_path, run.manifest.hash)
    assert await fetch_shards(source, DataFolder(tmp_path, manifest), train(run)) == 0
    assert holders.counts["a"].served == []


async def test_a_liar_costs_a_retry_only_and_his_bytes_are_not_kept(run, holders, tmp_path):
    """One of two holders changes a byte of everything."""
    await holders.add("liar", run.kept(), config=5, manifest=70, piece=2**18)
    await holders.add("honest", run.kept())
    source = await holders.source()
    assert await fetch_config(source, tmp_path, run.config.config_hash()) == run.config
    manifest = await fetch_manifest(source, tmp_path, run.manifest.hash)
    assert holders.counts["liar"].kinds == {BlobKind.CONFIG: 1}, "after a lie it is asked last"
    # One who does not know the holders yet asks all of them for pieces.
    await fetch_shards(await holders.source(), DataFolder(tmp_path, manifest), train(run))
    assert holders.counts["liar"].kinds[BlobKind.PIECE] > 0, "it was asked"
    for shard in train(run):
        assert (tmp_path / shard.file).read_bytes() == (run.folder / shard.file).read_bytes()


@pytest.mark.parametrize("kind", ["config", "manifest"])
@pytest.mark.parametrize("what", ["another run's", "another form", "empty", "endless"])
async def test_other_bytes_are_refused_whoever_sends_them(kind, what, run, holders, tmp_path):
    kind = BlobKind(kind)
    right = {
        BlobKind.CONFIG: run.config.canonical_json(),
        BlobKind.MANIFEST: run.manifest.canonical,
    }[kind]
    answer = {
        "another run's": RunConfig().with_manifest(bytes(32)).canonical_json(),
        "another form": json.dumps(json.loads(right)).encode(),
        "empty": b"",
        "endless": right + b" " * LIMITS[kind],
    }[what]
    await holders.add("liar", run.kept(), **{kind: answer})
    source = await holders.source()
    with pytest.raises(RunFilesGoneError, match="the run's") as caught:
        if kind is BlobKind.CONFIG:
            await fetch_config(source, tmp_path, run.config.config_hash())
        else:
            await fetch_manifest(source, tmp_path, run.manifest.hash)
    assert "liar" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def named(kind, data):
    """Bytes that a hostile creator of a run has put on chain by their hash."""
    key = H(f"troth:{kind}", var(data))
    return key, Raw({(BlobKind(kind), key): data})


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (b"{", RunFileError, "config of this version"),
        (b'{"version":9}', RunFileError, "config of this version"),
        (b'{"invented":1}', RunFileError, "config of this version"),
        (b'{"model":{"num_hidden_layers":2000000000}}', RunFileError, "config of this version"),
        (b"[" * 9_000, RunFileError, "config of this version"),
        (b"{}", RunFileError, "canonical form of this version"),
        (b" " * (MAX_CONFIG_BYTES + 1), RunFilesGoneError, "more, from creator"),
    ],
)
async def test_a_config_that_no_version_wrote_is_refused(data, error, words, holders, tmp_path):
    key, raw = named("config", data)
    await holders.add("creator", raw)
    with pytest.raises(error, match=words):
        await fetch_config(await holders.source(), tmp_path, key)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "file", ["../../.ssh/keys.bin", "/etc/x.bin", "manifest.json", "..", "a/b.bin", "x.bin.part"]
)
async def test_a_manifest_cannot_name_files_outside_its_folder(file, run, holders, tmp_path):
    fields = json.loads(run.manifest.canonical)
    fields["train"][0]["file"] = file
    data = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
    key, raw = named("manifest", data)
    await holders.add("creator", raw)
    folder = tmp_path / "data"
    with pytest.raises(ManifestError, match=r"train\.0\.file|ends with \.bin"):
        await fetch_manifest(await holders.source(), folder, key)
    assert list(tmp_path.rglob("*")) == []


async def test_a_manifest_in_another_form_than_the_canonical_one_is_refused(run, holders, tmp_path):
    key, raw = named("manifest", json.dumps(json.loads(run.manifest.canonical)).encode())
    await holders.add("creator", raw)
    with pytest.raises(RunFileError, match="canonical form"):
        await fetch_manifest(await holders.source(), tmp_path, key)


async def test_another_data_set_in_the_folder_is_left_as_it_is(run, holders, tmp_path):
    await holders.add("a", run.kept())
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(OtherFilesError, match=run.manifest.hash.hex()):
        await fetch_manifest(await holders.source(), tmp_path, run.manifest.hash)
    assert (tmp_path / "manifest.json").read_text() == "{}"
    assert holders.counts["a"].served == []


@pytest.mark.parametrize("answer", [b"", b"short", 7, 2**20 - 1])
async def test_pieces_of_liars_alone_are_never_kept(answer, run, holders, tmp_path):
    await holders.add("liar", run.kept(), piece=answer)
    data = DataFolder(tmp_path, run.manifest)
    with pytest.raises(RunFilesGoneError, match="the run's data"):
        await fetch_shards(await holders.source(), data, train(run))
    assert list(tmp_path.iterdir()) == []
    assert data.missing(train(run)) == DataFolder(tmp_path, run.manifest).missing(train(run))


async def test_holders_that_are_all_gone_are_waited_for_and_then_named(run, holders, tmp_path):
    holders.patience = 3
    await holders.add("a", Raw({}))
    holders.network.cut("a")
    with pytest.raises(RunFilesGoneError, match="nobody there"):
        await fetch_shards(await holders.source(), DataFolder(tmp_path, run.manifest), train(run))


async def test_two_holders_with_different_shards_make_one_data_set(run, holders, tmp_path):
    """None of them has everything, as while a data set spreads."""
    for name, shard in zip("abc", train(run), strict=True):
        folder = tmp_path / name
        folder.mkdir()
        for file in ("manifest.json", shard.file):
            os.link(run.folder / file, folder / file)
        await holders.add(name, run.kept(folder))
    data = DataFolder(tmp_path / "out", run.manifest)
    (tmp_path / "out").mkdir()
    await fetch_shards(await holders.source(), data, train(run))
    assert data.missing(train(run)) == []
    assert all(count.kinds[BlobKind.PIECE] for count in holders.counts.values())


async def test_a_fetch_that_is_stopped_goes_on_with_the_pieces_that_are_here(
    run, holders, tmp_path
):
    """All but one piece of the first start are there, and nobody has the last."""
    await holders.add("a", run.kept())
    lacking = list(DataFolder(tmp_path, run.manifest).pieces(train(run)[0]))[1]

    class AllButOne:
        def shown(self, kind, key):
            return None if key == lacking.hash else run.kept().shown(kind, key)

    holders.counts["a"].inner = AllButOne()
    data = DataFolder(tmp_path, run.manifest)
    holders.is_vain = lambda: data.missing(train(run)) == [lacking]
    with pytest.raises(RunFilesGoneError):
        await fetch_shards(await holders.source(), data, train(run))
    draft = tmp_path / (train(run)[0].file + DRAFT_SUFFIX)
    assert draft.is_file()
    holders.counts["a"].inner = run.kept()
    holders.counts["a"].served.clear()
    again = DataFolder(tmp_path, run.manifest)
    assert await fetch_shards(await holders.source(), again, train(run)) == lacking.num_bytes
    assert holders.counts["a"].served == [(BlobKind.PIECE, lacking.hash)]
    TokenData(tmp_path, run.manifest).sequences(range(0, run.manifest.num_sequences, 100))


async def test_a_full_disk_is_named_and_what_was_written_stays(run, holders, tmp_path):
    await holders.add("a", run.kept())
    data = DataFolder(tmp_path, run.manifest)
    with disks.no_file_beyond(2**20), pytest.raises(DiskFullError) as caught:
        await fetch_shards(await holders.source(), data, train(run))
    assert str(tmp_path) in str(caught.value)
    num_missing = len(DataFolder(tmp_path, run.manifest).missing(train(run)))
    assert num_missing < sum(len(shard.pieces) for shard in train(run))
    await fetch_shards(await holders.source(), data, train(run))
    TokenData(tmp_path, run.manifest).sequences([0, run.manifest.num_sequences - 1])
