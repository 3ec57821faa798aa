"""Where a participant keeps its state unless somebody names another folder.

Owns: those names. Next: `commands/participation.py`, which makes such folders.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from solders.pubkey import Pubkey

STATES: Final = Path("troth-state")
_CHARACTERS: Final = 8


def state_folder(run: "Pubkey", owner: "Pubkey") -> Path:
    """Return the folder of an owner in a run."""
    return STATES / f"{_short(run)}-{_short(owner)}"


def folders_of(run: "Pubkey") -> Path:
    """Return the pattern of the folders of all owners in a run."""
    return STATES / f"{_short(run)}-*"


def found_folders(run: "Pubkey") -> list[Path]:
    """Return the folders of a run that are here."""
    return sorted(STATES.glob(folders_of(run).name))


def _short(address: "Pubkey") -> str:
    return str(address)[:_CHARACTERS]
