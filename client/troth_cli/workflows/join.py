"""`troth join` before the participant starts: what is checked without PyTorch.

Owns: the checks of flags and files, and the order: flags, chain and members, the data where it is
fetched, then the machine.
Never: imports torch; `take_part.py` does, after it prints a line.
Next: `join_checks.py` for what is asked of chain and members; `take_part.py`.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from solders.keypair import Keypair

from troth_cli.errors import InputError, JoinRefusedError
from troth_cli.keyfiles import read_key, write_key
from troth_cli.view.checks import checks_lines
from troth_cli.view.output import Output
from troth_cli.workflows.checks import Row, refusals, rows_json
from troth_cli.workflows.join_request import JoinRequest
from troth_client.data.manifest import load_manifest
from troth_client.model.device_kind import device_kind
from troth_client.runtime.files import PRIVATE_FOLDER_MODE, FolderLock
from troth_client.transport.endpoint import (
    HUB,
    NOWHERE,
    OWN,
    check_endpoint,
    check_holder,
    check_store,
)

if TYPE_CHECKING:
    from troth_client.participant.ending import ParticipantEnd

SESSION_FILE: Final = "session.json"


@dataclass(frozen=True, slots=True)
class Joined:
    """How `join` ended. `end` is None where it was only asked to check."""

    rows: Sequence[Row]
    end: "ParticipantEnd | None"


def join(request: JoinRequest, output: Output) -> Joined:
    """Check, then take part until the run ends or a signal asks to stop.

    Raises before anything is sent if role, address, data, device, config or balance are not right,
    and JoinRefusedError with the table of checks. Raises KeyboardInterrupt after a second signal.
    """
    host, port = check(request)
    from troth_cli.workflows.approach import Looked, approach, with_data
    from troth_cli.workflows.patience import patiently
    from troth_cli.workflows.run_files import bring_config, bring_data

    request = patiently(request, output, partial(bring_config, request, output))
    session = session_key(request.settings.state, output)
    request = request.changed(session=bytes(session), host=host, port=port)
    is_asked = request.is_agreed or asks(output)

    def look() -> Looked:
        with output.progress("data", in_bytes=False) as report:
            return asyncio.run(approach(request, session, report, is_asked=is_asked))

    looked = patiently(request, output, look)
    stop_if_refused(looked.rows, request, output)
    if request.fetches_data:
        bring_data(request, output)
        with output.progress("data", in_bytes=False) as report:
            looked = asyncio.run(with_data(looked, request, report))
        stop_if_refused(looked.rows, request, output)
    with output.loading():
        from troth_cli.workflows.take_part import take_part
    return take_part(request, output, looked)


def asks(output: Output) -> bool:
    """Tell whether somebody at a terminal is asked before a deposit."""
    return not output.is_json and sys.stdin.isatty()


def stop_if_refused(rows: Sequence[Row], request: JoinRequest, output: Output) -> None:
    """Print the checks and raise JoinRefusedError if one refuses; --anyway overrides some."""
    refused = refusals(rows, anyway=request.goes_on_anyway)
    if not refused:
        return
    for line in checks_lines(rows):
        output.note(line)
    first = refused[0]
    result, more = first.result, len(refused) - 1
    also = f" ({more} more: {', '.join(row.name for row in refused[1:])})" if more else ""
    anyway = all(row.result.can_go_on for row in refused)
    raise JoinRefusedError(
        result.needed or "no reason against joining",
        result.found + also,
        f"{result.advice} Nothing was paid.{' --anyway joins all the same.' if anyway else ''}",
        first.name,
        rows_json(rows),
    )


def check(request: JoinRequest) -> tuple[str, int]:
    """Make the checks without torch and network; return the host and port to listen on.

    Host "" is to listen nowhere.
    """
    settings = request.settings
    host, port = ("", 0) if request.listen == NOWHERE else split_listen(request.listen)
    if not host and settings.endpoint:
        raise InputError(
            f"--listen HOST:PORT beside --endpoint, or --listen {NOWHERE} alone",
            f"--listen {NOWHERE} --endpoint {settings.endpoint}",
            "Name --listen, or leave --endpoint out: nobody is served where nothing listens.",
            "--endpoint",
        )
    if settings.endpoint:
        check_endpoint(settings.endpoint, OWN)
    elif host in ("0.0.0.0", "::"):
        raise InputError(
            "--endpoint URL beside an address that listens on all interfaces",
            f"--listen {request.listen} alone",
            "Others cannot reach that address: name the one under which this machine is reached.",
            "--endpoint",
        )
    for hub in settings.hubs:
        check_endpoint(hub, HUB)
    for store in settings.stores:
        check_store(store)
    device_kind(settings.device)
    bound = settings.config.data.manifest_hash
    if settings.start is not None and bound and not settings.config.has_given_start:
        raise InputError(
            "--start only for a run that was created from given weights",
            str(settings.start),
            "Leave the option out: this machine computes the first weights of this run.",
            "--start",
        )
    if not request.fetches_data:
        load_manifest(settings.data, bytes.fromhex(bound) if bound else None)
    for holder in request.data_from:
        check_holder(holder)
    # Only a test: the store takes the lock later, but no stake should move without it.
    settings.state.mkdir(PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
    FolderLock(settings.state).close()
    return host, port


def split_listen(text: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT or [IPV6]:PORT; InputError otherwise."""
    host, separator, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not separator or not host or not port.isdecimal() or int(port) > 65_535:
        raise InputError(
            "HOST:PORT, like 0.0.0.0:7000",
            repr(text),
            "Write a host and a port; port 0 lets the system pick one.",
            "--listen",
        )
    return host, int(port)


def session_key(state: Path, output: Output) -> Keypair:
    """Return the session key of a state folder, made at its first use."""
    path = state / SESSION_FILE
    if not path.exists():
        write_key(path, Keypair())
    return read_key(path, output.warn)
