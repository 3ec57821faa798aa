"""`troth checkpoint fetch`: a checkpoint from the members of a run into a folder of ours.

Owns: whom to ask, which folders may be filled, and when to give up.
Never: trusts a member, listens, or serves anything. Next: `troth_client/checkpoint/fetch.py`.

    DIR.part/   the draft: a second start goes on with it
    DIR/        the whole checkpoint, by a rename
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from solders.pubkey import Pubkey

from troth_attestation.committed import CommittedState
from troth_attestation.manifest import CheckpointManifest
from troth_attestation.pieces import PieceList, Shape
from troth_attestation.shards import shards_of
from troth_cli.errors import OutputFileError
from troth_cli.view.output import Report
from troth_cli.workflows.checkpoint import GONE
from troth_client.checkpoint.errors import CheckpointFileError
from troth_client.checkpoint.fetch import fetch_draft, fetch_list
from troth_client.checkpoint.folder import (
    DRAFT_SUFFIX,
    MANIFEST_FILE,
    CheckpointFolder,
    Draft,
)
from troth_client.model.shapes import trainable_shapes
from troth_client.runtime.base import ProcessRuntime
from troth_client.runtime.files import TEMPORARY_SUFFIX
from troth_client.telemetry.events import JsonValue
from troth_client.transport.base import Transport
from troth_client.transport.endpoint import is_store
from troth_client.transport.exchange import Exchange
from troth_client.transport.http import http_reader
from troth_client.transport.parallel import Source
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.clusters import public_name
from troth_coordinator.chain.errors import RpcError
from troth_coordinator.rules.config import RunConfig

POLL_SECONDS: Final = 0.5
REREAD_SECONDS: Final = 10.0
"""How long the endpoints of members are taken as known."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A checkpoint on disk, and the bytes that came from others for it."""

    folder: CheckpointFolder
    num_bytes: int


class Members:
    """The members of a run to fetch from, and `others`, like hubs and object stores.

    After `seconds` without progress it is vain to go on.
    """

    def __init__(
        self,
        client: CoordinatorClient,
        run: Pubkey,
        seconds: float,
        others: Sequence[str] = (),
        *,
        allow_private: bool = False,
    ) -> None:
        self.program = str(client.program_id)
        self._client = client
        self.run = run
        self._seconds = seconds
        self._others = tuple(others)
        self._allow_private = allow_private
        self._known: list[str] = []
        self._read_at: float | None = None
        self._last = time.monotonic()

    def ask_also(self, others: Sequence[str]) -> None:
        """Ask these too, from the next transport on: the config may name more holders."""
        self._others = (*self._others, *others)

    async def holders(self) -> list[str]:
        """Return the others, and the endpoints of all who have not left.

        The chain is asked from time to time.
        """
        await self._look()
        return list(dict.fromkeys([*self._others, *self._known]))

    async def _look(self) -> None:
        now = time.monotonic()
        if self._read_at is not None and now - self._read_at <= REREAD_SECONDS:
            return
        try:
            self._known = await self._read()
        except RpcError:
            if not self._known:
                raise
            # Those from before may do, and the next try asks again.
        else:
            self._read_at = now

    async def transport(self) -> Exchange:
        """Return a transport, not started.

        On public clusters it connects to public addresses only, unless the user allows others.
        """
        genesis_hash = await self._client.rpc.genesis_hash()
        is_public = public_name(genesis_hash) is not None
        transport = http_reader(is_guarded=is_public and not self._allow_private)
        transport.use_stores(filter(is_store, self._others))
        return transport

    def source(self, transport: Transport, report: Report) -> Source:
        """Return these members as the source of a fetch."""
        runtime, bar = ProcessRuntime(POLL_SECONDS), _Bar(report)
        return Source(transport, runtime, bar, self.holders, self.is_vain, self.note_progress)

    def note_progress(self) -> None:
        """Begin to count the seconds anew."""
        self._last = time.monotonic()

    def is_vain(self) -> bool:
        """Tell whether there was no progress for so long."""
        return time.monotonic() - self._last >= self._seconds

    async def _read(self) -> list[str]:
        view = await self._client.snapshot(self.run)
        owners = [Pubkey(one.owner) for one in view.entries if one.status not in GONE]
        found = await self._client.read_participants(self.run, owners) if owners else []
        return [one.endpoint for one in found if one and one.endpoint]


class _Bar:
    """Turns the events of a fetch into a progress bar."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Move the bar as weights or data arrive; nothing else is shown."""
        done, total, left = (fields.get(k) for k in ("done_bytes", "total_bytes", "seconds_left"))
        if (
            event in ("fetching", "fetching_data")
            and isinstance(done, int)
            and isinstance(total, int)
        ):
            note = f"{left} s left" if isinstance(left, int) and done < total else ""
            self._report(done, total, note)


async def fetch_checkpoint(
    members: Members, wanted: CommittedState, config: RunConfig, out: Path, report: Report
) -> Fetched:
    """Fetch a state into a folder, or go on where an earlier start stopped.

    `config` is the run's. Raises OutputFileError if something else is in the way,
    FolderInUseError, CheckpointGoneError, DiskFullError.
    """
    shapes = trainable_shapes(config.model)
    whole = _whole_folder(out, wanted)
    if whole is not None:
        return Fetched(whole, 0)
    _check_draft(out, shapes)
    async with await members.transport() as transport:
        source = members.source(transport, report)
        pieces = await fetch_list(source, wanted, shapes)
        run = str(Pubkey(wanted.run))
        manifest = CheckpointManifest.of(members.program, run, config, pieces)
        with Draft(out, pieces) as draft:
            num_bytes = await fetch_draft(source, draft)
            folder = await source.runtime.compute(draft.finish, manifest)
    return Fetched(folder, num_bytes)


async def fetch_piece_list(
    members: Members, wanted: CommittedState, shapes: dict[str, Shape]
) -> PieceList:
    """Return the piece list of a state from any member. Raises CheckpointGoneError."""
    async with await members.transport() as transport:
        source = members.source(transport, lambda _done, _total, _note: None)
        return await fetch_list(source, wanted, shapes)


def _whole_folder(out: Path, wanted: CommittedState) -> CheckpointFolder | None:
    """Return the checkpoint if it is at this path already; None if nothing is there.

    Raises OutputFileError for anything else: a fetch replaces nothing.
    """
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    try:
        found = CheckpointFolder.open(out)
    except CheckpointFileError as error:
        raise _in_the_way(out, error.found) from error
    if found.pieces.root != wanted.root:
        raise _in_the_way(out, f"the checkpoint of round {found.manifest.round} in it")
    return found


def _check_draft(out: Path, shapes: dict[str, Shape]) -> None:
    """Raise OutputFileError unless the draft of a folder is new, or one of these shapes.

    A draft removes what does not belong to it, and here the user chose its name.
    """
    part = out.with_name(out.name + DRAFT_SUFFIX)
    if not part.exists():
        return
    if not part.is_dir():
        raise _in_the_way(part, "a file")
    known = {shard.file for shard in shards_of(shapes)}
    known |= {MANIFEST_FILE, MANIFEST_FILE + TEMPORARY_SUFFIX}
    strange = sorted(one.name for one in part.iterdir() if one.name not in known)
    if strange:
        raise _in_the_way(part, f"{strange[0]} in it")


def _in_the_way(path: Path, found: str) -> OutputFileError:
    return OutputFileError(
        "a new or empty folder, or this checkpoint",
        found,
        "Name another folder with --out; nothing was changed.",
        str(path),
    )
