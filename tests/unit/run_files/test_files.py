"""The files of a run as a holder shows them, takes them from a push, and orders the shards."""

import contextlib
import json
import os
from dataclasses import replace
from itertools import accumulate
from types import SimpleNamespace

import pytest
from support.holders import Hostile, ok, says
from support.run_files import Holders
from support.views import run_view

from troth_cli.workflows.checks import Level
from troth_cli.workflows.join_checks import data_result
from troth_client.data.errors import ManifestError
from troth_client.run_files.files import CONFIG_FILE, LIMITS
from troth_client.run_files.folder import DRAFT_SUFFIX, DataFolder
from troth_client.run_files.order import needed_shards
from troth_client.run_files.push import push_files
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.errors import HolderRefusedError, HolderUnreachableError
from troth_client.transport.exchange import Patience
from troth_client.transport.http import http_reader, http_transport
from troth_coordinator.rules.assignment import SequenceOrder


@pytest.fixture
async def holder(run, tmp_path):
    """An empty holder of this run, over HTTP."""
    transport = http_transport("127.0.0.1", 0, patience=Patience(2.0))
    transport.show_files(run.kept(tmp_path / "holder"))
    async with transport:
        yield transport


@pytest.fixture
async def sender(run):
    transport = http_reader(Patience(2.0))
    transport.show_files(run.kept())
    async with transport:
        yield transport


def pieces(run):
    return {piece.hash for piece in DataFolder(run.folder, run.manifest).here()}


async def test_a_pushed_run_is_served_whole_and_nothing_is_taken_twice(
    run, holder, sender, tmp_path
):
    steps = []
    done = await push_files(sender, run.kept(), holder.endpoint, steps.append)
    assert done.error is None
    assert done.refused == []
    assert done.num_accepted == 2 + len(pieces(run))
    for shard in (*run.manifest.train, *run.manifest.validation):
        path = tmp_path / "holder" / shard.file
        assert path.read_bytes() == (run.folder / shard.file).read_bytes()
    assert sum(steps) == sum(path.stat().st_size for path in run.folder.glob("*.bin"))
    again = run.kept(tmp_path / "holder")
    assert [one.kind for one in again.files()] == [BlobKind.CONFIG, BlobKind.MANIFEST]
    twice = await push_files(sender, run.kept(), holder.endpoint, steps.append)
    assert twice.error is None
    assert twice.refused == []


async def test_only_the_small_files_are_pushed_where_that_is_asked_for(
    run, holder, sender, tmp_path
):
    await push_files(sender, run.kept(), holder.endpoint, lambda _: None, with_shards=False)
    names = sorted(path.name for path in (tmp_path / "holder").iterdir())
    assert names == ["config.json", "manifest.json"]


async def test_a_holder_that_is_away_is_named(run, sender):
    done = await push_files(sender, run.kept(), "http://127.0.0.1:9", lambda _: None)
    assert isinstance(done.error, HolderUnreachableError)
    assert done.num_accepted == 0


async def test_nobody_goes_on_with_a_config_that_another_holder_cut_short(run):
    """How long it is only its holder knows: the next one starts from the first byte."""
    whole = run.config.canonical_json()
    cut = ok(len(whole)) + whole[: len(whole) // 2]
    wanted = BlobId(0, BlobKind.CONFIG, run.config.config_hash())
    async with (
        Hostile(says(cut)) as bad,
        Hostile(says(ok(len(whole)) + whole)) as good,
        http_reader(Patience(2.0)) as reader,
    ):
        limit = LIMITS[BlobKind.CONFIG]
        found = await reader.fetch(wanted, [bad.endpoint, good.endpoint], limit, bytes)
        assert found == whole
        assert len(bad.heads) == 1
        (head,) = good.heads
        assert "range:" not in head.lower()


class Liar:
    """Pushes these bytes under whatever address it is asked for."""

    def __init__(self, data):
        self.data = data

    def shown(self, _kind, _key):
        return self.data


@pytest.mark.parametrize("kind", ["config", "manifest", "tokenizer", "piece"])
@pytest.mark.parametrize("what", ["wrong", "endless", "unnamed"])
async def test_a_holder_takes_no_byte_that_the_run_does_not_name(
    kind, what, run, holder, sender, tmp_path
):
    kind = BlobKind(kind)
    await push_files(sender, run.kept(), holder.endpoint, lambda _: None, with_shards=False)
    if kind in (BlobKind.CONFIG, BlobKind.MANIFEST):  # a holder that has none yet
        holder.show_files(run.kept(tmp_path / "empty"))
    keys = {BlobKind.CONFIG: run.config.config_hash(), BlobKind.MANIFEST: run.manifest.hash}
    key = keys.get(kind, next(iter(pieces(run))))
    size = {"wrong": 2**20 if kind is BlobKind.PIECE else 100, "unnamed": 100}
    data = bytes(size.get(what, LIMITS.get(kind, 2**20) + 1))
    sender.show_files(Liar(data))
    asked = BlobId(0, kind, bytes(32) if what == "unnamed" else key)
    (result,) = await sender.offer(asked, [holder.endpoint])
    assert isinstance(result.error, HolderRefusedError | HolderUnreachableError)
    assert not (tmp_path / "empty").exists()
    assert not list(tmp_path.rglob("*.bin*"))


async def test_a_member_takes_no_push_of_what_it_has(run, sender, tmp_path):
    async with contextlib.AsyncExitStack() as stack:
        holders = Holders(stack)
        await holders.add("member", run.kept())
        before = {path.name: path.stat().st_mtime_ns for path in run.folder.iterdir()}
        pusher = await holders.source()
        pusher.transport.show_files(Liar(b"x" * 100))
        for kind, key in ((BlobKind.MANIFEST, run.manifest.hash), (BlobKind.PIECE, bytes(32))):
            await pusher.transport.offer(BlobId(0, kind, key), ["member"])
        assert {path.name: path.stat().st_mtime_ns for path in run.folder.iterdir()} == before


def link_all(run, folder):
    folder.mkdir()
    for path in run.folder.iterdir():
        os.link(path, folder / path.name)
    return folder


def test_bytes_that_changed_on_disk_are_not_shown(run, tmp_path):
    folder = link_all(run, tmp_path / "data")
    shard = run.manifest.train[0]
    kept = run.kept(folder)
    first, second = DataFolder(folder, run.manifest).pieces(shard)
    content = bytearray((folder / shard.file).read_bytes())
    content[first.num_bytes + 5] ^= 1
    (folder / shard.file).unlink()
    (folder / shard.file).write_bytes(content)
    assert kept.shown(BlobKind.PIECE, second.hash) is None
    assert kept.shown(BlobKind.PIECE, first.hash) == bytes(content[: first.num_bytes])
    (folder / shard.file).unlink()
    assert kept.shown(BlobKind.PIECE, first.hash) is None


@pytest.mark.parametrize("change", ["one byte", "cut short", "too long"])
def test_a_damaged_shard_keeps_its_good_pieces(change, run, tmp_path):
    folder = link_all(run, tmp_path / "data")
    shard = run.manifest.train[0]
    content = bytearray((folder / shard.file).read_bytes())
    changed = {
        "one byte": content[:9] + bytes([content[9] ^ 1]) + content[10:],
        "cut short": content[:-1],
        "too long": content + b"x",
    }[change]
    (folder / shard.file).unlink()
    (folder / shard.file).write_bytes(changed)
    data = DataFolder(folder, run.manifest)
    assert (folder / shard.file).read_bytes() == changed, "to look changes nothing"
    data.take_up(is_checked=True)
    first, second = data.pieces(shard)
    missing = {"one byte": [first], "cut short": [second], "too long": []}[change]
    assert data.missing(run.manifest.train) == missing
    for piece in missing:
        data.put(piece, bytes(content[piece.offset : piece.offset + piece.num_bytes]))
    assert (folder / shard.file).read_bytes() == content
    assert not (folder / (shard.file + DRAFT_SUFFIX)).exists()


def test_a_draft_that_is_a_link_leads_nowhere(run, tmp_path):
    folder, secret = tmp_path / "data", tmp_path / "secret"
    folder.mkdir()
    secret.write_bytes(b"mine")
    shard = run.manifest.train[0]
    (folder / (shard.file + DRAFT_SUFFIX)).symlink_to(secret)
    data = DataFolder(folder, run.manifest)
    with pytest.raises(OSError, match="symbolic link"):
        data.put(next(data.pieces(shard)), b"x")
    assert secret.read_bytes() == b"mine"


def test_another_runs_files_are_not_shown(run, tmp_path):
    folder = link_all(run, tmp_path / "data")
    (folder / "config.json").write_bytes(run.config.canonical_json() + b" ")
    assert [one.kind for one in run.kept(folder).files()] == [BlobKind.MANIFEST]
    (folder / "manifest.json").unlink()
    (folder / "manifest.json").write_text(json.dumps({"version": 3}))
    with pytest.raises(ManifestError):
        run.kept(folder)


def test_shards_come_in_the_order_of_their_first_use(run):
    view = run_view(round=3, cursor=900)
    needed = needed_shards(run.manifest, view, run.config)
    assert sorted(one.file for one in needed) == [one.file for one in run.manifest.train]
    order = SequenceOrder(run.manifest.num_sequences, run.manifest.hash)
    first = order.sequence(900)
    starts = [0]
    for shard in run.manifest.train:
        starts.append(starts[-1] + shard.tokens // run.manifest.row_tokens)
    at = run.manifest.train.index(needed[0])
    assert starts[at] <= first < starts[at + 1]


def test_a_run_that_ends_soon_does_not_need_every_shard(run):
    view, short, found = check_short(run)
    again = {one.file for one in needed_shards(run.manifest, view, short)}
    assert again == found


def check_short(run):
    """Return the view, the config and the shards of a run that ends soon.

    Two sequences are left, and there was no round before.
    """
    view = run_view(round=5, cursor=0)
    view = replace(view, params=replace(view.params, capacity=2))
    short = run.config.model_copy(
        update={
            "schedule": run.config.schedule.model_copy(update={"rounds": 5}),
            "train": run.config.train.model_copy(update={"sequences_per_payload": 1}),
        }
    )
    order = SequenceOrder(run.manifest.num_sequences, run.manifest.hash)
    ends = list(accumulate(one.tokens // run.manifest.row_tokens for one in run.manifest.train))
    wanted = {
        run.manifest.train[next(at for at, end in enumerate(ends) if sequence < end)].file
        for sequence in order.sequences(0, 2)
    }
    found = {one.file for one in needed_shards(run.manifest, view, short)}
    assert found == wanted
    assert len(found) < len(run.manifest.train)
    return view, short, found


def test_a_newcomer_is_asked_only_for_the_shards_that_it_was_to_fetch(run, tmp_path):
    """The check after the fetch wanted every shard, so nobody could join a run that ends soon."""
    view, short, needed = check_short(run)
    model = short.model.model_copy(update={"max_position_embeddings": 1023})
    data = short.data.model_copy(update={"sequence_tokens": 1023})
    config = short.model_copy(update={"model": model, "data": data})
    for name in ("manifest.json", *needed):
        os.link(run.folder / name, tmp_path / name)
    request = SimpleNamespace(settings=SimpleNamespace(data=tmp_path, config=config))
    steps = []
    found = data_result(request, view, lambda *step: steps.append(step))
    assert found.level is not Level.REFUSED
    assert found.values == {"shards": len(needed), "missing": 0}
    *counts, note = steps[-1]
    assert counts == [len(needed), len(needed)]
    assert note == "shards"
    (tmp_path / min(needed)).unlink()
    found = data_result(request, view, lambda *_: None)
    assert found.level is Level.REFUSED
    assert found.values == {"shards": len(needed), "missing": 1}


def test_a_run_that_would_draw_for_ever_is_looked_at_for_seconds_only(run, monkeypatch):
    """Its creator names a shard that no draw meets, and more rounds than anybody counts."""
    monkeypatch.setattr("troth_client.run_files.order.MOST_DRAWS", 100)
    tiny = run.manifest.train[0].model_copy(update={"file": "tiny.bin", "tokens": 0})
    manifest = run.manifest.model_copy(update={"train": (*run.manifest.train, tiny)})
    schedule = run.config.schedule.model_copy(update={"rounds": 2**31 - 1})
    config = run.config.model_copy(update={"schedule": schedule})
    found = needed_shards(manifest, run_view(round=0, cursor=0), config)
    assert found[-1] == tiny
    assert len(found) == len(manifest.train)


def test_a_fifo_is_no_file_and_never_waited_for_and_a_link_of_the_user_is_followed(run, tmp_path):
    shown = run.kept().shown(BlobKind.CONFIG, run.config.config_hash())
    assert shown is not None
    (tmp_path / "fifo").mkdir()
    os.mkfifo(tmp_path / "fifo" / CONFIG_FILE)
    assert run.kept(tmp_path / "fifo").files() == []
    (tmp_path / "elsewhere").write_bytes(shown)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / CONFIG_FILE).symlink_to(tmp_path / "elsewhere")
    assert [one.kind for one in run.kept(tmp_path / "linked").files()] == [BlobKind.CONFIG]
