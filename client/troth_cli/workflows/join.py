"""`troth join` before the participant starts: checks of flags and files, without PyTorch.

Owns: the checks of flags and files that come before a stake is deposited.
Never: imports torch or asks the chain; `take_part.py` does, after it prints a line.
Next: `take_part.py`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_cli.errors import InputError
from troth_cli.keyfiles import read_key, write_key
from troth_cli.view.output import Output
from troth_client.data.manifest import load_manifest
from troth_client.model.device_kind import device_kind
from troth_client.runtime.files import PRIVATE_FOLDER_MODE, FolderLock
from troth_client.transport.endpoint import NOWHERE, OWN, check_endpoint
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.view import Role

if TYPE_CHECKING:
    from troth_client.participant.process import ParticipantEnd

ROLES: Final = {
    "trainer": Role.TRAINER,
    "witness": Role.WITNESS,
    "both": Role.TRAINER | Role.WITNESS,
}
SESSION_FILE: Final = "session.json"


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """The options of the command line, read but not yet checked against the run."""

    rpc_urls: tuple[str, ...]
    run: Pubkey
    config: RunConfig
    data: Path
    state: Path
    owner: Keypair
    role: str
    device: str
    listen: str
    endpoint: str
    session_lamports: int
    refill_lamports: int
    stake_lamports: int | None
    top_up_lamports: int
    num_threads: int | None


def join(request: JoinRequest, output: Output) -> "ParticipantEnd":
    """Check, then take part until the run ends or a signal asks to stop.

    Raises before anything is sent if role, address, data, device, config or balance are not right.
    Raises KeyboardInterrupt after a second signal.
    """
    listen = check(request)
    session = session_key(request.state, output)
    with output.loading():
        from troth_cli.workflows.take_part import take_part
    return take_part(request, session, listen, output)


def check(request: JoinRequest) -> tuple[str, int]:
    """Make the checks without torch and network; return the host and port to listen on.

    Host "" is to listen nowhere.
    """
    if request.role not in ROLES:
        raise InputError(", ".join(ROLES), repr(request.role), "Choose one of these.", "--role")
    host, port = ("", 0) if request.listen == NOWHERE else split_listen(request.listen)
    if not host and request.endpoint:
        raise InputError(
            f"--listen HOST:PORT beside --endpoint, or --listen {NOWHERE} alone",
            f"--listen {NOWHERE} --endpoint {request.endpoint}",
            "Nobody is served at an address where nothing listens.",
            "--endpoint",
        )
    if request.endpoint:
        check_endpoint(request.endpoint, OWN)
    elif host in ("0.0.0.0", "::"):
        raise InputError(
            "--endpoint URL beside an address that listens on all interfaces",
            f"--listen {request.listen} alone",
            "Others cannot reach that address: name the one under which this machine is reached.",
            "--endpoint",
        )
    device_kind(request.device)
    load_manifest(request.data, request.config.manifest_digest())
    # Only a test: the store takes the lock later, but no stake should move without it.
    request.state.mkdir(PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
    FolderLock(request.state).close()
    return host, port


def split_listen(text: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT or [IPV6]:PORT; InputError otherwise."""
    host, separator, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not separator or not host or not port.isdecimal() or int(port) > 65_535:
        raise InputError(
            "HOST:PORT, like 0.0.0.0:7000",
            repr(text),
            "Port 0 lets the system pick one.",
            "--listen",
        )
    return host, int(port)


def session_key(state: Path, output: Output) -> Keypair:
    """Return the session key of a state folder, made at its first use."""
    path = state / SESSION_FILE
    if not path.exists():
        write_key(path, Keypair())
    return read_key(path, output.warn)
