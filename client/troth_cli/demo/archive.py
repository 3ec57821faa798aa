"""The archive of the demo's run, kept by one more process of the fork server.

Owns: its settings and its log. Never: takes part, or keeps the demo from its end.
Next: `troth_client/archive/process.py`.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from troth_cli.demo.options import DemoOptions
from troth_cli.demo.participant import write_output_to
from troth_cli.demo.setup import DemoRun
from troth_client.telemetry.event_log import EventLog

if TYPE_CHECKING:
    from troth_client.archive.folder import ArchiveFolder

SLOTS_PER_LOOK = 5
"""Often enough: members keep what they serve for many rounds."""


@dataclass(frozen=True, slots=True)
class ArchiveProcess:
    """The settings of the process; all can be pickled. `log` and `output` lie beside the folder."""

    rpc_url: str
    run: str
    folder: Path
    log: Path
    output: Path
    poll_seconds: float

    @classmethod
    def of(cls, options: DemoOptions, demo: DemoRun, rpc_url: str) -> Self:
        """Return those of a demo."""
        return cls(
            rpc_url,
            str(demo.run),
            options.archive,
            options.folder / "archive.jsonl",
            options.folder / "archive.txt",
            SLOTS_PER_LOOK * options.slot_milliseconds / 1_000,
        )


def run_archive(process: ArchiveProcess) -> None:
    """Keep the archive until the process is asked to end. Raises the error that stopped it."""
    write_output_to(process.output)
    with EventLog.open(process.log) as events:
        asyncio.run(_keep(process, events))


def complete(options: DemoOptions) -> None:
    """Add what members left in their folders: at the end they may be gone before they are asked.

    Call it when the archive's process has ended. Raises DiskFullError.
    """
    from troth_client.archive.folder import ArchiveFolder

    folder = ArchiveFolder(options.archive)
    left = [item for item in folder.missing() if not _harvested(options, folder, item)]
    folder.write_missing(0, left)


def _harvested(options: DemoOptions, folder: "ArchiveFolder", missing: Mapping[str, Any]) -> bool:
    """Copy a header with its payload, or a payload; tell whether somebody had it."""
    from troth_attestation import header as headers
    from troth_client.archive.items import Item
    from troth_client.transport.base import BlobKind
    from troth_client.transport.files import FolderBlobs

    item = Item(
        BlobKind(missing["kind"]),
        bytes.fromhex(missing["key"]),
        missing["round"],
        missing["participant"],
    )
    for plan in options.plans:
        held = options.weights_folder(plan.name).parent / "blobs"
        data = FolderBlobs(held).get(item.address) if held.is_dir() else None
        if data is None or not item.name.matches(data):
            continue
        folder.put(item, data)
        if item.kind is BlobKind.HEADER:
            root = headers.decode(data[: headers.HEADER_BYTES]).payload_root
            return _harvested(options, folder, {**missing, "kind": "payload", "key": root.hex()})
        return True
    return False


async def _keep(process: ArchiveProcess, events: EventLog) -> None:
    # Children of the fork server have these modules; the demo itself needs none of them.
    from solders.pubkey import Pubkey

    from troth_client.archive.process import ArchiveSettings, keep_archive
    from troth_coordinator.chain.client import CoordinatorClient
    from troth_coordinator.chain.http_rpc import HttpRpc

    run = Pubkey.from_string(process.run)
    settings = ArchiveSettings(run, process.folder, poll_seconds=process.poll_seconds)
    async with HttpRpc(process.rpc_url) as rpc:
        await keep_archive(settings, CoordinatorClient(rpc), events)
