"""The folder in which a data set is prepared, beside the one that it becomes.

Owns: its name, which files a preparation leaves in it, and whether a shard in it is whole.
Never: takes a folder in which no preparation has been for one: a user may have one of that name.
Next: `prepare.py`, which works in it.
"""

import re
from pathlib import Path
from typing import Final

from troth_attestation.pieces import piece_hash
from troth_client.data.errors import PrepareError
from troth_client.data.manifest import FILE_NAME, PIECE_BYTES, TOKENIZER_FILE, ShardEntry

LOCK_FILE: Final = "lock"
RESUME_FILE: Final = "resume.record"
ORIGIN_FILE: Final = "origin.json"
_SUFFIX: Final = ".partial"
_WHOLE: Final = (RESUME_FILE, FILE_NAME, ORIGIN_FILE, TOKENIZER_FILE)
_OURS: Final = re.compile(
    rf"{LOCK_FILE}|({'|'.join(map(re.escape, _WHOLE))}|(train|validation)-\d{{5,}}\.bin)(\.tmp)?"
)


def partial_folder(folder: Path) -> Path:
    """Return the folder in which `folder`, an absolute path, is prepared.

    Raises PrepareError where something else lies there: all of it would be removed.
    """
    if not folder.name:
        raise _in_the_way(folder, "a folder with a name", "the root of all folders")
    partial = folder.with_name(folder.name + _SUFFIX)
    if partial.is_symlink():
        raise _in_the_way(partial, "no link", "a link")
    if not partial.exists():
        return partial
    if not partial.is_dir():
        raise _in_the_way(partial, "a folder, or nothing", "a file")
    names = sorted(path.name for path in partial.iterdir())
    # A preparation locks the folder before it writes anything, and takes the lock out last.
    strange = [name for name in names if LOCK_FILE not in names or not _is_ours(partial / name)]
    if strange:
        raise _in_the_way(
            partial, "only what an interrupted preparation leaves", f"{strange[0]} in it"
        )
    return partial


def _is_ours(path: Path) -> bool:
    return _OURS.fullmatch(path.name) is not None and (path.is_symlink() or not path.is_dir())


def _in_the_way(partial: Path, expected: str, found: str) -> PrepareError:
    return PrepareError(
        f"{expected} at {partial}, where the data set is made",
        found,
        "Choose another folder with --out, or move this one away; it is left as it is.",
    )


def is_whole(folder: Path, entry: ShardEntry) -> bool:
    """Return whether the file of a shard is there, with every byte that was written."""
    try:
        with (folder / entry.file).open("rb") as stream:
            pieces = iter(lambda: stream.read(PIECE_BYTES), b"")
            return tuple(piece_hash(piece).hex() for piece in pieces) == entry.pieces
    except OSError:
        return False
