"""A data folder that two processes use, and a holder whose disk is slow."""

import asyncio
import io
import threading

import aiohttp
import pytest
from support.run_files import Counted

from troth_cli.view.output import Output
from troth_cli.workflows.run_files import serve
from troth_client.run_files.folder import DataFolder
from troth_client.runtime.files import FolderInUseError, FolderLock
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.http import http_transport


def pieces_of(run):
    """The pieces of the first shard, with their bytes."""
    whole = DataFolder(run.folder, run.manifest)
    return [(piece, whole.find(piece.hash)) for piece in whole.pieces(run.manifest.train[0])]


def test_a_late_piece_of_one_process_replaces_no_whole_shard_of_another(run, tmp_path):
    """Two members may have one data folder, and both fetch what it lacks."""
    (first, start), (last, end) = pieces_of(run)
    one, two = DataFolder(tmp_path, run.manifest), DataFolder(tmp_path, run.manifest)
    one.put(first, start)
    two.put(first, start)
    two.put(last, end)
    shard = tmp_path / first.shard.file
    assert shard.read_bytes() == start + end
    one.put(last, end)
    assert shard.read_bytes() == start + end
    assert not list(tmp_path.glob("*.part"))


def test_a_draft_that_lost_a_piece_becomes_no_shard(run, tmp_path):
    (first, start), (last, end) = pieces_of(run)
    data = DataFolder(tmp_path, run.manifest)
    data.put(first, start)
    (tmp_path / f"{first.shard.file}.part").write_bytes(bytes(len(start)))  # somebody else's doing
    data.put(last, end)
    assert not (tmp_path / first.shard.file).exists()
    assert data.missing([first.shard]) == [first]
    data.put(first, start)
    assert (tmp_path / first.shard.file).read_bytes() == start + end


async def test_a_folder_that_another_process_fills_is_not_served(run, tmp_path):
    output = Output(err=io.StringIO())
    with FolderLock(tmp_path), pytest.raises(FolderInUseError):
        await serve(run.kept(tmp_path), ("127.0.0.1", 0), output, is_guarded=False)


class SlowDisk(Counted):
    """Files whose disk takes bytes only when `go` is set."""

    def welcome(self, kind, key):
        return self.inner.welcome(kind, key)

    def accept(self, kind, key, data):
        self.started.set()
        assert self.go.wait(30)
        super().accept(kind, key, data)


async def test_a_slow_disk_holds_up_no_other_caller(run, tmp_path):
    """A shard is flushed when it is whole, which may take seconds."""
    files = SlowDisk(run.kept(tmp_path))
    files.started, files.go = threading.Event(), threading.Event()
    wanted, data = BlobId(0, BlobKind.MANIFEST, run.manifest.hash), run.manifest.canonical
    async with http_transport("127.0.0.1", 0) as holder, aiohttp.ClientSession() as session:
        holder.show_files(files)
        url = f"{holder.endpoint}/v1/"
        pushing = asyncio.create_task(session.post(url + wanted.address, data=data))
        try:
            assert await asyncio.to_thread(files.started.wait, 5)
            async with asyncio.timeout(5), session.get(url + wanted.address) as answer:
                assert answer.status == 404
        finally:
            files.go.set()
        assert (await pushing).status == 201


async def test_the_same_file_from_two_senders_is_kept_once(run, tmp_path):
    kept, data = run.kept(tmp_path), run.manifest.canonical
    push = (kept.accept, BlobKind.MANIFEST, run.manifest.hash, data)
    await asyncio.gather(*(asyncio.to_thread(*push) for _ in range(8)))
    assert kept.shown(BlobKind.MANIFEST, run.manifest.hash) == data
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
