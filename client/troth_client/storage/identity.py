"""The identity of a folder: a file that says whose it is, written once and compared at each start.

Owns: that file, and the error where another run, network or life of the run has the folder.
Never: knows what else lies there. Next: `store.py` for a participant, `hub/process.py` for a hub.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from troth_client.runtime.files import atomic_write
from troth_client.storage.errors import StoreIdentityError
from troth_client.storage.sealed import DamagedFileError

_ADDED = ("genesis_hash", "created_slot")
"""Fields of an identity that folders of earlier versions lack."""
_ANOTHER = "Give each run and each participant a folder of its own."
_ANOTHER_CHAIN = (
    "It is from another network, or from a run that was closed and created again. Remove or rename"
    " this folder, or name another {option}: its work counts nowhere else."
)


def check_identity(path: Path, wanted: Mapping[str, object], option: str, *, durable: bool) -> None:
    """Write the file, or compare it with what is wanted; `option` names the folder to a user.

    Raises StoreIdentityError, DamagedFileError, DiskFullError.
    """
    if not path.exists():
        _write(path, wanted, durable)
        return
    try:
        found = dict(json.loads(path.read_bytes()))
    except (ValueError, TypeError) as error:
        raise DamagedFileError(path, "the identity of a folder", str(error)) from error
    for name, value in wanted.items():
        # Folders of earlier versions do not name the network: they are taken as they are, once.
        if found.get(name, value if name in _ADDED else None) != value:
            raise StoreIdentityError(
                f"{path.parent} to hold the state of {name} {value}",
                f"{name} {found.get(name)}",
                _ANOTHER_CHAIN.format(option=option) if name in _ADDED else _ANOTHER,
            )
    if not wanted.keys() <= found.keys():
        _write(path, {**found, **wanted}, durable)


def _write(path: Path, identity: Mapping[str, object], durable: bool) -> None:
    text = json.dumps(identity, indent=2, sort_keys=True)
    atomic_write(path, [text.encode(), b"\n"], durable)
