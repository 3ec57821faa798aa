"""Pieces that a stranger pushes: one of 1 MiB may have as many places as a manifest has lines."""

import shutil

import aiohttp
import pytest
from support.disks import small_disk

from troth_attestation.pieces import piece_hash
from troth_client.data.manifest import (
    PIECE_BYTES,
    Manifest,
    ShardEntry,
    TokenizerEntry,
    piece_hashes,
)
from troth_client.run_files.files import KeptFiles, member_files
from troth_client.run_files.folder import DataFolder
from troth_client.transport.base import BlobKind
from troth_client.transport.http import http_transport
from troth_coordinator.rules.config import RunConfig

PIECE = bytes(PIECE_BYTES)
TRAIN = b"\1\0" * 1024
PLACES = 8
"""So often the validation of the hostile run repeats one piece."""


def manifest_of(places=PLACES):
    """A data set whose creator let one piece stand for a whole split."""
    validation = ShardEntry(
        file="validation.bin",
        pieces=(piece_hash(PIECE).hex(),) * places,
        tokens=places * PIECE_BYTES // 2,
    )
    return Manifest(
        vocab_size=256,
        token_bytes=2,
        sequence_tokens=1023,
        num_sequences=1,
        num_validation_sequences=places * PIECE_BYTES // 2048,
        tokenizer=TokenizerEntry(kind="bytes", sha256="a" * 64, end_token=0),
        train=(ShardEntry(file="train.bin", pieces=piece_hashes(TRAIN), tokens=1024),),
        validation=(validation,),
    )


def fill(folder, manifest):
    """Write what a member has: the manifest and the shards that it trains on."""
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_bytes(manifest.canonical)
    (folder / "train.bin").write_bytes(TRAIN)


async def push(files):
    """Return the status that a stranger gets for one push of the piece."""
    transport = http_transport("127.0.0.1", 0)
    transport.show_files(files)
    async with transport, aiohttp.ClientSession() as stranger:
        url = f"{transport.endpoint}/v1/piece/{piece_hash(PIECE).hex()}"
        async with stranger.post(url, data=PIECE) as answer:
            return answer.status


async def test_a_member_takes_no_piece_of_a_shard_that_it_did_not_ask_for(tmp_path):
    """A creator's stranger pushes 1 MiB; the member's disk would have it at every place."""
    manifest = manifest_of()
    fill(tmp_path, manifest)
    config = RunConfig().with_manifest(manifest.hash)
    assert await push(member_files(tmp_path, config)) == 409
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "train.bin"]
    own = DataFolder(tmp_path, manifest)  # a fetch of our own writes as before
    for piece in own.missing(manifest.validation):
        own.put(piece, PIECE)
    assert (tmp_path / "validation.bin").stat().st_size == PLACES * PIECE_BYTES


@pytest.mark.parametrize(("places", "status"), [(PLACES, 201), (32, 409)])
async def test_a_holder_takes_pieces_only_where_all_that_is_missing_fits(places, status, tmp_path):
    """`troth data serve` compares what would be written with the disk, not what was sent."""
    manifest = manifest_of(places)
    with small_disk(tmp_path / "disk", "16m") as folder:
        fill(folder, manifest)
        free = shutil.disk_usage(folder).free
        assert await push(KeptFiles(folder, bytes(32), manifest.hash)) == status
        written = free - shutil.disk_usage(folder).free
        assert written == (PLACES * PIECE_BYTES if status == 201 else 0)


def test_what_is_missing_in_all_is_counted_with_short_pieces(run, tmp_path):
    """The count follows each piece, so that no caller makes us add up the whole set."""
    whole, data = DataFolder(run.folder, run.manifest), DataFolder(tmp_path, run.manifest)
    shards = (*run.manifest.train, *run.manifest.validation)
    for piece in data.missing(shards):
        assert data.missing_bytes == sum(one.num_bytes for one in data.missing(shards))
        data.put(piece, whole.find(piece.hash))
    assert data.missing_bytes == 0
    (tmp_path / run.manifest.train[0].file).unlink()
    data.take_up()
    assert data.missing_bytes == run.manifest.num_bytes(run.manifest.train[0])


async def test_a_manifest_is_not_written_anew_for_each_caller(tmp_path):
    """It may have 32 MB, and JSON is made under the interpreter's lock: a HEAD costs nothing."""
    manifest = manifest_of()
    fill(tmp_path, manifest)
    files = member_files(tmp_path, RunConfig().with_manifest(manifest.hash))
    transport = http_transport("127.0.0.1", 0)
    transport.show_files(files)
    async with transport, aiohttp.ClientSession() as caller:
        url = f"{transport.endpoint}/v1/manifest/{manifest.hash.hex()}"
        async with caller.get(url) as answer:
            assert await answer.read() == manifest.canonical
    first, again = (files.shown(BlobKind.MANIFEST, manifest.hash) for _ in range(2))
    assert first is again
