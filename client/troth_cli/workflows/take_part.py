"""`troth join` once the chain is needed: the last checks, the participant, the terminal lines.

Owns: the checks that need the chain or a device, the event log, and the choice of printed events.
Never: a step of the protocol.
Next: `troth_client.participant.process`.
"""

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from solders.keypair import Keypair

from troth_cli.connection import connect
from troth_cli.errors import FundsError, InputError
from troth_cli.view.amounts import sol
from troth_cli.view.output import Output
from troth_cli.workflows.disk import check_disk
from troth_cli.workflows.join import ROLES, JoinRequest
from troth_client.model.device import choose_device
from troth_client.participant.assembly import check_config
from troth_client.participant.process import ParticipantEnd, participate
from troth_client.participant.settings import ParticipantSettings
from troth_client.runtime.files import atomic_write
from troth_client.telemetry.duties import Duties
from troth_client.telemetry.event_log import EventLog, EventTail, Rotation
from troth_client.telemetry.events import JsonValue
from troth_client.telemetry.printable import one_line
from troth_coordinator.rules.membership import index_of_owner
from troth_coordinator.rules.oversight import oversight, warnings_of
from troth_coordinator.rules.view import NetworkView

EVENTS_FILE: Final = "events.jsonl"
DUTIES_FILE: Final = "duties.json"
FEE_RESERVE_LAMPORTS: Final = 10_000_000
"""The cost of joining beside stake and session: rent of the Participant account and fees."""
PRINTED: Final = frozenset(
    {
        "joined",
        "rpc_trouble",
        "rpc_recovered",
        "rpc_disagreement",
        "send_waiting",
        "send_late",
        "send_failed",
        "endpoint_differs",
        "endpoint_set",
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
        "stake_topped_up",
        "stake_top_up_failed",
        "stop_requested",
        "owed",
        "lagging",
        "recovering",
        "restoring",
        "fetching",
        "fetched",
        "replaying",
        "arrived",
        "root_differs",
        "healing",
        "healed",
        "checkpoint_made",
        "checkpoint_failed",
        "file_damaged",
        "disk_full",
        "events_lost",
        "ended",
    }
)


class EventPrinter:
    """An event sink: every event goes to the log file, a few also to the terminal."""

    def __init__(self, log: EventLog, output: Output) -> None:
        self._log = log
        self._output = output
        self._last = ""

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Log an event and perhaps print it; an event that repeats the last one is not printed."""
        self._log.emit(event, **fields)
        line = " ".join([event, *(f"{k}={v}" for k, v in fields.items())])
        if event in PRINTED and line != self._last:
            self._last = line
            self._output.note(one_line(line))


def take_part(
    request: JoinRequest, session: Keypair, listen: tuple[str, int], output: Output
) -> ParticipantEnd:
    """Make the checks that need chain and device, then take part; raises as `join` does."""
    choose_device(request.device)
    view = asyncio.run(check_run(request))
    full = check_disk(request.state, request.config, view.run.params)
    for warning in [*warnings_of(oversight(view)), *_unused(request, view), full]:
        if warning:
            output.warn(warning)
    settings = _settings(request, session, listen)
    rotation = Rotation(removing=partial(keep_duties, request.state))
    log = EventLog.open(request.state / EVENTS_FILE, rotation, owner=str(request.owner.pubkey()))
    try:
        return asyncio.run(participate(settings, EventPrinter(log, output)))
    except asyncio.CancelledError:
        # The second signal cancels what is under way.
        raise KeyboardInterrupt from None
    finally:
        log.close()


async def check_run(request: JoinRequest) -> NetworkView:
    """Return the run; raises unless the config describes it and the owner can pay to join."""
    async with connect(request.rpc_urls) as client:
        view = await client.snapshot(request.run)
        check_config(view.run, request.config)
        owner = request.owner.pubkey()
        if index_of_owner(view.entries, bytes(owner)) is not None:
            return view
        least = view.run.params.min_stake_lamports
        stake = least if request.stake_lamports is None else request.stake_lamports
        if stake < least:
            raise InputError(
                f"at least {sol(least)}, the stake to join this run",
                sol(stake),
                "Name more, or leave out the option for exactly that much.",
                "--stake-sol",
            )
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
        return view


def _unused(request: JoinRequest, view: NetworkView) -> Iterator[str]:
    """Yield a warning where an option for joining comes after it."""
    is_joined = index_of_owner(view.entries, bytes(request.owner.pubkey())) is not None
    if is_joined and request.stake_lamports is not None:
        yield "--stake-sol is for joining, and this key has joined: troth stake top-up adds more."


def duties_of(state: Path) -> Duties:
    """Return a witness's duties from the logs in its state folder, removed ones included."""
    last, duties = _kept_duties(state)
    for event in EventTail(state / EVENTS_FILE, after=last).read():
        duties.take(event)
    return duties


def keep_duties(state: Path, number: int, log: Path) -> None:
    """Add the duties in an older log, which is about to be removed, to those kept.

    The number of the last log that was added is written with the sums: a process that is killed in
    between adds none twice.
    """
    last, duties = _kept_duties(state)
    if number <= last:
        return
    for event in EventTail(log).read():
        duties.take(event)
    record = {"last_log": number, "duties": duties.to_record()}
    atomic_write(state / DUTIES_FILE, [json.dumps(record).encode()])


def _kept_duties(state: Path) -> tuple[int, Duties]:
    """Return the number of the last removed log, and the sums up to it."""
    try:
        record = json.loads((state / DUTIES_FILE).read_bytes())
        return int(record["last_log"]), Duties.from_record(record["duties"])
    except FileNotFoundError:
        return 0, Duties()
    except (ValueError, TypeError, KeyError):
        # Only a report at the end of `troth witness`: a damaged file costs what it held.
        return 0, Duties()


def _settings(
    request: JoinRequest, session: Keypair, listen: tuple[str, int]
) -> ParticipantSettings:
    host, port = listen
    return ParticipantSettings(
        rpc_urls=request.rpc_urls,
        run=str(request.run),
        config=request.config,
        data=request.data,
        state=request.state,
        owner=bytes(request.owner),
        session=bytes(session),
        role=ROLES[request.role],
        host=host,
        port=port,
        endpoint=request.endpoint,
        device=request.device,
        session_lamports=request.session_lamports,
        refill_lamports=request.refill_lamports,
        stake_lamports=request.stake_lamports or 0,
        top_up_lamports=request.top_up_lamports,
        num_threads=request.num_threads,
    )
