"""The checks of an owner that the run knows already: its state folder, a membership that it left.

Owns: what another state folder costs; whether one that has left serves, or deposits anew.
Never: decides who is a member; `approach.py` asks the chain.
Next: `join_checks.py` for the checks of a newcomer.
"""

import contextlib
import json
from pathlib import Path
from typing import Final

from troth_cli.errors import LeftError, OtherFolderError
from troth_cli.state_folders import found_folders
from troth_cli.workflows.checks import CheckResult, Level, Registry, kind_of
from troth_cli.workflows.join_checks import Newcomer, check_config, check_program
from troth_cli.workflows.join_request import JoinRequest
from troth_client.storage.store import IDENTITY_FILE

_LOSS: Final = (
    "From another folder it cannot reveal verdicts that it has committed to, nor open payloads or"
    " residuals of rounds before: each costs a fine. The process there ends."
)


async def check_state(member: Newcomer) -> CheckResult:
    """Compare the folder with the place: it has been this owner's, and has its session key."""
    folder, at = member.request.settings.state, member.index
    if at is None:
        return CheckResult(Level.OK, "no place in the run")
    entry, session = member.view.entries[at], bytes(member.session.pubkey())
    is_known = (folder / IDENTITY_FILE).exists()
    if is_known and session in (entry.session, entry.next_session):
        return CheckResult(Level.OK, f"{folder} holds the state of place {at}")
    fault = "holds another session key" if is_known else "holds no state"
    other = next(iter(_folders_of(member.request)), None)
    there = "the folder that it had" if other is None else f"--state {other}"
    return CheckResult(
        Level.REFUSED,
        f"{folder} {fault}; this owner has place {at} in the run",
        "the state folder of that place",
        f"Start it with {there}. {_LOSS}",
        kind=kind_of(OtherFolderError),
        can_go_on=True,
    )


async def check_membership(newcomer: Newcomer) -> CheckResult:
    """Say how one that has left goes on; another deposit needs a yes."""
    if newcomer.index is not None:
        return CheckResult(
            Level.OK,
            "this key has left the run: it serves what audits still ask for, deposits nothing,"
            " and ends",
        )
    found = "this key has left the run, and owes nothing any more"
    if newcomer.is_asked:
        return CheckResult(Level.OK, f"{found}: joining again deposits another stake")
    return CheckResult(
        Level.REFUSED,
        found,
        "--yes, to deposit another stake outside a terminal",
        "Join again with --yes, or take the old stake: troth withdraw.",
        kind=kind_of(LeftError),
    )


def was_here(request: JoinRequest) -> bool:
    """Tell whether the state folder of a request holds a membership of its owner."""
    return _is_of(request.settings.state, bytes(request.owner.pubkey()).hex())


def _folders_of(request: JoinRequest) -> list[Path]:
    """Return other folders with state of this owner in this run, as far as they are here."""
    owner = bytes(request.owner.pubkey()).hex()
    here = request.settings.state.resolve()
    found = found_folders(request.run)
    return [one for one in found if one.resolve() != here and _is_of(one, owner)]


def _is_of(folder: Path, owner: str) -> bool:
    with contextlib.suppress(OSError, ValueError):
        found = json.loads((folder / IDENTITY_FILE).read_bytes())
        return isinstance(found, dict) and found.get("owner") == owner
    return False


MEMBERSHIP: Final = "membership"
"""The check of one that has left; others do not see it."""
RETURN_CHECKS: Final[Registry[Newcomer]] = (
    ("program", check_program),
    ("config", check_config),
    ("state", check_state),
)
"""The checks of a member that comes back: it has paid, and its own state says the rest."""
