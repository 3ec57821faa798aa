"""Key files as Solana's own tools write them: a JSON list of 64 numbers, the secret half first.

Owns: reading, the check that both halves belong together, and creating files of mode 0600.
Never: overwrites a file, prints a secret, keeps a key in memory longer than its caller does.
Next: `commands/keys.py`.
"""

import json
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from troth_cli.errors import (
    KeyFileContentError,
    KeyFileExistsError,
    KeyFileMissingError,
)

if TYPE_CHECKING:
    from solders.keypair import Keypair

KEY_BYTES = 64
SEED_BYTES = 32
MODE = 0o600
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_MAX_FILE_BYTES = 4096


def read_key(path: Path, warn: Callable[[str], None]) -> "Keypair":
    """Return the key in a file; warns where others may read it.

    Raises KeyFileMissingError (absent, a folder, not readable) and KeyFileContentError.
    """
    from solders.keypair import Keypair

    try:
        mode = path.stat().st_mode
        with path.open("rb") as stream:
            text = stream.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise KeyFileMissingError(
            "a key file",
            (error.strerror or str(error)).lower(),
            f"Check the path, or make a key: troth keys new {path}",
            str(path),
        ) from error
    numbers = _numbers(path, text)
    key = Keypair.from_seed(numbers[:SEED_BYTES])
    if bytes(key.pubkey()) != numbers[SEED_BYTES:]:
        raise _wrong(path, "a public half that does not belong to the secret half")
    if mode & _OTHERS:
        warn(
            f"{path} can be read or changed by other users (mode {stat.S_IMODE(mode):04o});"
            f" run: chmod 600 {path}"
        )
    return key


def write_key(path: Path, key: "Keypair") -> None:
    """Write a key to a new file of mode 0600: whole or not at all. Makes missing folders.

    Raises KeyFileExistsError; what is there stays as it is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as stream:
            json.dump(list(bytes(key)), stream)
            stream.flush()
            os.fsync(stream.fileno())
        # A link, unlike a rename, fails where something exists.
        path.hardlink_to(temporary)
    except FileExistsError as error:
        raise KeyFileExistsError(
            "no file by that name yet",
            "one that is there",
            "Choose another name; a key that is lost is lost for ever, so none is overwritten.",
            str(path),
        ) from error
    finally:
        temporary.unlink()


def _numbers(path: Path, text: bytes) -> bytes:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise _wrong(path, "text that is not JSON") from None
    if not isinstance(values, list):
        raise _wrong(path, f"a JSON {type(values).__name__}")
    if len(values) != KEY_BYTES:
        raise _wrong(path, f"a list of {len(values)}")
    if not all(type(value) is int and 0 <= value <= 255 for value in values):
        raise _wrong(path, "entries that are no numbers of 0 to 255")
    return bytes(values)


def _wrong(path: Path, found: str) -> KeyFileContentError:
    # The message never quotes the file: it may be a secret of another kind.
    return KeyFileContentError(
        f"a JSON list of {KEY_BYTES} numbers, as solana-keygen and `troth keys new` write it",
        found,
        "Name a key file; if this one is damaged, restore it from a backup.",
        str(path),
    )
