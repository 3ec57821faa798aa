"""`troth checkpoint fetch`: a checkpoint from the members of a run into a folder of ours.

Owns: which folders may be filled, and with which state. Never: trusts a member; `members.py` says
whom to ask. Next: `troth_client/checkpoint/fetch.py`.

    DIR.part/   the draft: a second start goes on with it
    DIR/        the whole checkpoint, by a rename
"""

from dataclasses import dataclass
from pathlib import Path

from solders.pubkey import Pubkey

from troth_attestation.committed import CommittedState
from troth_attestation.manifest import CheckpointManifest
from troth_attestation.pieces import PieceList, Shape
from troth_attestation.shards import shards_of
from troth_cli.errors import OutputFileError
from troth_cli.state_folders import folders_of, found_folders
from troth_cli.view.output import Report
from troth_cli.workflows.members import Members
from troth_client.checkpoint.errors import CheckpointFileError, CheckpointGoneError
from troth_client.checkpoint.fetch import fetch_draft, fetch_list
from troth_client.checkpoint.folder import (
    DRAFT_SUFFIX,
    MANIFEST_FILE,
    CheckpointFolder,
    Draft,
)
from troth_client.model.shapes import trainable_shapes
from troth_client.participant.settings import WEIGHTS
from troth_client.runtime.files import TEMPORARY_SUFFIX
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RunView


@dataclass(frozen=True, slots=True)
class Fetched:
    """A checkpoint on disk, and the bytes that came from others for it."""

    folder: CheckpointFolder
    num_bytes: int


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


def at_the_end(error: CheckpointGoneError, run: RunView) -> CheckpointGoneError:
    """Return the error with the way that is left once a run has finished: members serve no more."""
    if run.phase != Phase.FINISHED:
        return error
    address = Pubkey(run.address)
    here = [one / WEIGHTS for one in found_folders(address) if (one / WEIGHTS).exists()]
    everywhere = folders_of(address) / WEIGHTS
    where = f"{here[0]} here" if here else f"{everywhere} of each member that stayed"
    return CheckpointGoneError(
        error.expected,
        f"{error.found}; the run has finished, after which members end",
        f"The final weights lie in the folder {where}: troth checkpoint verify compares them"
        " with the chain, and troth checkpoint export takes that folder.",
        error.subject,
    )


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
