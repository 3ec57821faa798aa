"""Fetch: the files of a run from any holders, each under the hash that the chain or manifest names.

Owns: what is asked for, and in which order. Never: trusts a holder, asks for what is here, or makes
room for more bytes than a file of its kind may have.
Next: `transport/parallel.py` for the asking; `folder.py` for shards; `order.py` for which first.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError

from troth_client.data.manifest import FILE_NAME, TOKENIZER_FILE, Manifest, ShardEntry
from troth_client.run_files.errors import OtherFilesError, RunFileError, RunFilesGoneError
from troth_client.run_files.files import (
    CONFIG_FILE,
    LIMITS,
    canonical_manifest,
    other_version,
    tokenizer_key,
)
from troth_client.run_files.folder import DataFolder
from troth_client.runtime.files import atomic_write, read_file
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.parallel import Goal, Source, fetch_each, persist
from troth_coordinator.errors import TrothError
from troth_coordinator.rules.config import RunConfig

EVENT = "fetching_data"
_LATER = "Name somebody who has it with --from URL, or try again when members are there."
_ITS_FILE = "Give the run's file instead of its address: its creator has it, run.toml."


async def fetch_config(source: Source, folder: Path, config_hash: bytes) -> RunConfig:
    """Return the config with this hash, which the folder holds afterwards.

    Raises RunFilesGoneError, RunFileError (a config of another version), OtherFilesError if
    another one is there, DiskFullError.
    """
    kept = _kept(folder / CONFIG_FILE, BlobId(0, BlobKind.CONFIG, config_hash))
    if kept is not None:
        return parse_config(kept)
    data = await fetch_config_bytes(source, config_hash)
    config = parse_config(data)
    _write(folder / CONFIG_FILE, data)
    return config


async def fetch_config_bytes(source: Source, config_hash: bytes) -> bytes:
    """Return the bytes with this hash, whatever they say. Raises RunFilesGoneError."""
    wanted = BlobId(0, BlobKind.CONFIG, config_hash)
    return await _whole(source, wanted, "the run's config", f"{_ITS_FILE} {_LATER}")


def parse_config(data: bytes) -> RunConfig:
    """Return the config in bytes that have the hash on chain. Raises RunFileError."""
    try:
        config = RunConfig.model_validate_json(data)
    except (ValidationError, TrothError) as error:
        raise RunFileError(
            "a config of this version of troth",
            str(error).partition("\n")[0],
            "Its creator had another version of troth: install that one.",
        ) from error
    if config.canonical_json() != data:
        raise other_version("config")
    return config


async def fetch_manifest(source: Source, folder: Path, manifest_hash: bytes) -> Manifest:
    """Return the data manifest with this hash, which the folder holds afterwards.

    Raises RunFilesGoneError, ManifestError, OtherFilesError if another one is there, RunFileError,
    DiskFullError.
    """
    wanted = BlobId(0, BlobKind.MANIFEST, manifest_hash)
    path = folder / FILE_NAME
    kept = _kept(path, wanted)
    if kept is not None:
        return canonical_manifest(kept)
    data = await _whole(source, wanted, "the run's data manifest")
    manifest = canonical_manifest(data)
    key = tokenizer_key(manifest)
    if key is not None:  # before the first file is written
        _kept(folder / TOKENIZER_FILE, BlobId(0, BlobKind.TOKENIZER, key))
    _write(path, data)
    return manifest


def check_free(folder: Path, config_hash: bytes, manifest_hash: bytes) -> None:
    """Raise OtherFilesError if a config or a manifest of another hash is in the folder."""
    _kept(folder / CONFIG_FILE, BlobId(0, BlobKind.CONFIG, config_hash))
    _kept(folder / FILE_NAME, BlobId(0, BlobKind.MANIFEST, manifest_hash))


async def fetch_tokenizer(source: Source, folder: Path, manifest: Manifest) -> None:
    """Bring the tokenizer's file, if the data set has one.

    Raises RunFilesGoneError, OtherFilesError if another one is there.
    """
    key = tokenizer_key(manifest)
    if key is None:
        return
    wanted = BlobId(0, BlobKind.TOKENIZER, key)
    if _kept(folder / TOKENIZER_FILE, wanted) is None:
        _write(folder / TOKENIZER_FILE, await _whole(source, wanted, "the run's tokenizer"))


async def fetch_shards(source: Source, data: DataFolder, shards: Iterable[ShardEntry]) -> int:
    """Bring the missing pieces of these shards, in this order; return the bytes fetched.

    `data` was taken up.
    Raises RunFilesGoneError, DiskFullError. Fetched pieces stay, and the next call goes on.
    """
    chosen = list(shards)
    goal = _goal("the run's data", sum(map(data.manifest.num_bytes, chosen)))
    return await fetch_each(source, goal, data.missing(chosen), data.put)


async def _whole(source: Source, wanted: BlobId, what: str, step: str = _LATER) -> bytes:
    """Return a file of unknown size."""
    most = LIMITS[wanted.kind]

    async def attempt(holders: Sequence[str]) -> bytes:
        return await source.transport.fetch(wanted, holders, most, bytes)

    data = await persist(source, _goal(what, most, step), attempt)
    source.on_progress()
    return data


def _kept(path: Path, wanted: BlobId) -> bytes | None:
    """Return a file that is here; None where there is none. Raises OtherFilesError."""
    found = read_file(path, LIMITS[wanted.kind])
    if found is not None and wanted.matches(found):
        return found
    if os.path.lexists(path):
        raise OtherFilesError(
            f"{path.parent} to be free, or to hold the {wanted.kind} {wanted.key.hex()}",
            f"another {path.name}",
            "Name another folder, or move that file away; it was not changed.",
        )
    return None


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, [data])


def _goal(what: str, num_bytes: int, step: str = _LATER) -> Goal:
    gone: Callable[[str, str, str], RunFilesGoneError] = RunFilesGoneError
    return Goal(what=what, total_bytes=num_bytes, gone=gone, next_step=step, event=EVENT)
