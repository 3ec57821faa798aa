"""The files of a run from others, and to others: what `join` lacks, `troth data fetch|push|serve`.

Owns: whom to ask, which folders may be filled, and when to give up.
Never: trusts a holder: each file is checked under the hash that the chain or the manifest names.
Next: `troth_client/run_files/`.
"""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from troth_cli.connection import connect
from troth_cli.errors import DiskSpaceError, PushError
from troth_cli.view.output import Output, Report
from troth_cli.workflows.checkpoint import check_config
from troth_cli.workflows.join_request import JoinRequest
from troth_cli.workflows.members import Members
from troth_client.data.fit import check_fit
from troth_client.data.manifest import Manifest, ShardEntry
from troth_client.run_files.fetch import (
    check_free,
    fetch_config,
    fetch_config_bytes,
    fetch_manifest,
    fetch_shards,
    fetch_tokenizer,
    parse_config,
)
from troth_client.run_files.files import KeptFiles
from troth_client.run_files.folder import DataFolder
from troth_client.run_files.order import needed_shards
from troth_client.run_files.push import push_files
from troth_client.runtime.files import FolderLock
from troth_client.runtime.signals import at_stop_signals
from troth_client.transport.endpoint import check_holder, is_store
from troth_client.transport.http import http_reader, http_transport
from troth_client.transport.offering import Pushed
from troth_client.transport.parallel import Source
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.settings import RunSettings
from troth_coordinator.rules.view import RunView

Found = TypeVar("Found")

PATIENCE_SECONDS: Final = 60
"""So long a fetch goes on without a byte from anybody."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The files of a run on disk, and the bytes of shards that came from others."""

    config: RunConfig
    manifest: Manifest
    num_bytes: int


async def fetch_run(members: Members, view: RunView, folder: Path, report: Report) -> Fetched:
    """Bring everything that the run names into a folder, or what it lacks of that.

    Whole shards are hashed again. Raises RunFilesGoneError,
    OtherFilesError, ManifestError, FolderInUseError, DiskSpaceError, DiskFullError.
    """
    with FolderLock(folder):
        check_free(folder, view.config_hash, view.manifest_hash)  # before the first write
        async with _source(members, report) as source:
            config = await fetch_config(source, folder, view.config_hash)
        members.ask_also(config.network.relays)
        async with _source(members, report) as source:
            manifest = await fetch_manifest(source, folder, view.manifest_hash)
            await fetch_tokenizer(source, folder, manifest)
            data = await asyncio.to_thread(_taken_up, folder, manifest, is_checked=True)
            shards = (*manifest.train, *manifest.validation)
            return Fetched(config, manifest, await _fetch_shards(source, data, shards))


def bring_config(request: JoinRequest, output: Output) -> JoinRequest:
    """Return the request with the config of the run, fetched where the user named none.

    It is one small file. Raises as `fetch_run` does.
    """
    if request.settings.config.data.manifest_hash:
        return request

    async def work(source: Source, view: RunView) -> RunConfig:
        return await fetch_config(source, request.settings.state, view.config_hash)

    return request.changed(config=_bring(request, output, work))


async def read_config(members: Members, view: RunView, report: Report) -> RunConfig:
    """Return the run's config from whoever has it. Raises RunFilesGoneError, RunFileError."""
    async with _source(members, report) as source:
        return parse_config(await fetch_config_bytes(source, view.config_hash))


def bring_data(request: JoinRequest, output: Output) -> None:
    """Fetch manifest, tokenizer and shards: gigabytes, so cheap checks come first.

    Only the shards are fetched that may be trained on until the run ends, those of the next rounds
    first. Raises as `fetch_run` does.
    """

    async def work(source: Source, view: RunView) -> None:
        await _bring_data(source, request.settings.data, view, request.settings.config)

    _bring(request, output, work)


def _bring(
    request: JoinRequest, output: Output, work: Callable[[Source, RunView], Awaitable[Found]]
) -> Found:
    """Do a fetch from members, hubs and those that the user named."""
    settings = request.settings

    async def fetch(report: Report) -> Found:
        async with connect(settings.rpc_urls, request.program) as client:
            view = await client.read_run(request.run)
            own = (*request.data_from, *settings.hubs, *settings.stores)
            members = Members(
                client,
                request.run,
                PATIENCE_SECONDS,
                own,
                allow_private=settings.allow_private,
            )
            members.ask_also(settings.config.network.relays)
            async with _source(members, report) as source:
                return await work(source, view)

    with output.progress("fetching the run's files") as report:
        return asyncio.run(fetch(report))


async def _bring_data(source: Source, folder: Path, view: RunView, config: RunConfig) -> None:
    with FolderLock(folder):
        manifest = await fetch_manifest(source, folder, view.manifest_hash)
        check_fit(config, manifest, "the run's data manifest")  # before gigabytes are fetched
        await fetch_tokenizer(source, folder, manifest)
        data = await asyncio.to_thread(_taken_up, folder, manifest)
        shards = await asyncio.to_thread(needed_shards, manifest, view, config)
        await _fetch_shards(source, data, shards)


def _taken_up(folder: Path, manifest: Manifest, *, is_checked: bool = False) -> DataFolder:
    data = DataFolder(folder, manifest)
    data.take_up(is_checked=is_checked)
    return data


async def _fetch_shards(source: Source, data: DataFolder, shards: Sequence[ShardEntry]) -> int:
    needed = sum(piece.num_bytes for piece in data.missing(shards))
    free = shutil.disk_usage(data.folder).free
    if needed > free:
        raise DiskSpaceError(
            f"{needed / 1e9:.2f} GB free in {data.folder}, for the run's data",
            f"{free / 1e9:.2f} GB",
            "Free some space, or name another folder. Nothing was paid.",
        )
    return await fetch_shards(source, data, shards)


@contextlib.asynccontextmanager
async def _source(members: Members, report: Report) -> AsyncIterator[Source]:
    """Yield the members of a run as the source of a fetch, which is vain without any."""
    known: list[str] = []

    async def holders() -> list[str]:
        known[:] = await members.holders()
        return known

    def is_vain() -> bool:
        return not known or members.is_vain()

    async with await members.transport() as transport:
        source = members.source(transport, report)
        yield replace(source, holders=holders, is_vain=is_vain)


def kept_files(view: RunView, folder: Path, config: RunConfig) -> KeptFiles:
    """Return the files in a folder that belong to the run.

    `config` is shown too, where it is bound to a data set. Raises OtherRunError for a config of
    another run, ManifestError for other data.
    """
    kept = KeptFiles(folder, view.config_hash, view.manifest_hash)
    if config.data.manifest_hash:
        check_config(view, config)
        kept.show_config(config)
    return kept


async def push(
    kept: KeptFiles, holders: Sequence[str], report: Report, *, with_shards: bool = True
) -> list[Pushed]:
    """Offer what is here to each of these holders; return what each of them did."""
    size = 0 if kept.data is None else sum(one.num_bytes for one in kept.data.here())
    total, done = size * len(holders), 0
    found = []
    async with http_reader() as transport:
        transport.show_files(kept)
        transport.use_stores(filter(is_store, holders), signs=True)
        for holder in holders:

            def step(num_bytes: int, holder: str = holder) -> None:
                nonlocal done
                done += num_bytes
                report(done, total, holder)

            found.append(await push_files(transport, kept, holder, step, with_shards=with_shards))
    return found


async def publish_files(
    view: RunView, folder: Path, settings: RunSettings, holders: Sequence[str]
) -> list[str]:
    """Offer config, manifest and tokenizer of a new run; return a warning per vain holder."""
    if not holders:
        return []
    kept = kept_files(view, folder, settings.config)
    pushed = await push(kept, holders, lambda _done, _total, _note: None, with_shards=False)
    return [
        f"{one.holder} has not taken the run's files ({one.error or one.refused[0]}):"
        " troth data push offers them again"
        for one in pushed
        if one.error is not None or one.refused
    ]


def check_holders(urls: Sequence[str]) -> None:
    """Raise EndpointError unless these are addresses of holders."""
    for url in urls:
        check_holder(url)


def require_pushed(pushed: Sequence[Pushed]) -> None:
    """Raise PushError for the first holder that could not be reached."""
    for one in pushed:
        if one.error is not None:
            raise PushError(
                f"{one.holder} to answer",
                one.error.found,
                "Repeat the command: what has arrived is not sent again.",
                one.holder,
            )


async def serve(
    kept: KeptFiles, listen: tuple[str, int], output: Output, *, is_guarded: bool
) -> str:
    """Serve the files, and take those that the run names, until SIGINT or SIGTERM.

    Returns the address. Raises EndpointInUseError, EndpointError, FolderInUseError.
    """
    stopped = asyncio.Event()
    transport = http_transport(*listen, is_guarded=is_guarded)
    transport.show_files(kept)
    with FolderLock(kept.folder), at_stop_signals(stopped.set):
        if kept.data is not None:
            await asyncio.to_thread(kept.data.take_up)
        async with transport:
            output.note(f"serving at {transport.endpoint}")
            await stopped.wait()
    return transport.endpoint
