"""`troth join` before and around `participant.participate`: checks, session key, live lines.

Owns: everything that must be in order before a stake is deposited, and what the terminal says
while the participant works.
Never: a step of the protocol.
Next: `participant.py`.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_cli.connection import connect
from troth_cli.errors import FundsError, InputError
from troth_cli.keyfiles import read_key, write_key
from troth_cli.view.amounts import sol
from troth_cli.view.output import Output
from troth_client.data.manifest import load_manifest
from troth_client.model.device import choose_device
from troth_client.participant.assembly import check_config
from troth_client.participant.process import ParticipantEnd, ParticipantSettings, participate
from troth_client.runtime.files import FolderLock
from troth_client.telemetry.duties import Duties
from troth_client.telemetry.events import EventLog, EventTail, JsonValue
from troth_client.transport.http import check_endpoint
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.membership import index_of_owner
from troth_coordinator.rules.view import Role

ROLES: Final = {
    "trainer": Role.TRAINER,
    "witness": Role.WITNESS,
    "both": Role.TRAINER | Role.WITNESS,
}
SESSION_FILE: Final = "session.json"
EVENTS_FILE: Final = "events.jsonl"
FEE_RESERVE_LAMPORTS: Final = 10_000_000
"""What joining takes beside stake and session: rent of the Participant account and fees."""
_TOLD: Final = frozenset(
    {
        "joined",
        "endpoint_differs",
        "session_refilled",
        "session_refill_failed",
        "resumed",
        "phase",
        "trained",
        "round_closed",
        "activated",
        "judged",
        "judged_case",
        "audit_changed",
        "openings_lost",
        "stake_too_low",
        "stop_requested",
        "owed",
        "lagging",
        "healed",
        "root_differs",
        "file_damaged",
        "ended",
    }
)


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """What the command line says, read but not yet checked against the run."""

    rpc_url: str
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
    num_threads: int | None


class EventPrinter:
    """An event sink: every event to the log file, those that people wait for to the terminal."""

    def __init__(self, log: EventLog, output: Output) -> None:
        self._log = log
        self._output = output
        self._last = ""

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Log an event and perhaps tell it; what is repeated is told once."""
        self._log.emit(event, **fields)
        line = " ".join([event, *(f"{k}={v}" for k, v in fields.items())])
        if event in _TOLD and line != self._last:
            self._last = line
            self._output.note(line)


def report(state: Path) -> Duties:
    """Return what the log of a state folder tells of a witness's duties, restarts included."""
    duties = Duties()
    for event in EventTail(state / EVENTS_FILE).read():
        duties.take(event)
    return duties


def join(request: JoinRequest, output: Output) -> ParticipantEnd:
    """Check, then take part until the run ends or a signal asks to stop.

    Raises before anything is sent where role, address, data, device, config or balance are not
    right; KeyboardInterrupt after a second signal.
    """
    settings = _settings(request, output)
    asyncio.run(check_run(request))
    log = EventLog.open(request.state / EVENTS_FILE, owner=str(request.owner.pubkey()))
    try:
        return asyncio.run(participate(settings, EventPrinter(log, output)))
    except asyncio.CancelledError:
        # The second signal cancels what is under way.
        raise KeyboardInterrupt from None
    finally:
        log.close()


async def check_run(request: JoinRequest) -> None:
    """Raise unless the run is the one that the config describes and the owner can pay to join."""
    async with connect(request.rpc_url) as client:
        view = await client.snapshot(request.run)
        check_config(view.run, request.config)
        owner = request.owner.pubkey()
        if index_of_owner(view.entries, bytes(owner)) is not None:
            return
        stake = view.run.params.stake_lamports
        needed = stake + request.session_lamports + FEE_RESERVE_LAMPORTS
        balance = await client.balance(owner)
        if balance < needed:
            raise FundsError(
                f"{sol(needed)}: the stake of {sol(stake)}, the session key's"
                f" {sol(request.session_lamports)}, rent and fees",
                sol(balance),
                f"Send SOL to it (on a local network: troth localnet airdrop {owner} 1).",
                f"account {owner}",
            )


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


def _settings(request: JoinRequest, output: Output) -> ParticipantSettings:
    """Return the settings after every check that needs no network."""
    if request.role not in ROLES:
        raise InputError(", ".join(ROLES), repr(request.role), "Choose one of these.", "--role")
    host, port = split_listen(request.listen)
    if request.endpoint:
        check_endpoint(request.endpoint)
    elif host in ("0.0.0.0", "::"):
        raise InputError(
            "--endpoint URL beside an address that listens on all interfaces",
            f"--listen {request.listen} alone",
            "Others cannot reach that address: name the one under which this machine is reached.",
            "--endpoint",
        )
    load_manifest(request.data, request.config.manifest_digest())
    choose_device(request.device)
    # Only a look: the store takes the lock for good, but a stake should not move before.
    FolderLock(request.state).close()
    return ParticipantSettings(
        rpc_url=request.rpc_url,
        run=str(request.run),
        config=request.config,
        data=request.data,
        state=request.state,
        owner=bytes(request.owner),
        session=bytes(session_key(request.state, output)),
        role=ROLES[request.role],
        host=host,
        port=port,
        endpoint=request.endpoint,
        device=request.device,
        session_lamports=request.session_lamports,
        refill_lamports=request.refill_lamports,
        num_threads=request.num_threads,
    )
