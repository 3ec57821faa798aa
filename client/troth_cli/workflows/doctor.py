"""`troth doctor`: what is wrong with this machine, its keys, its node, its run.

Owns: the order of the checks, and which of them can be made with what was named.
Never: changes anything but a file that it writes and removes to time the disk.
Next: `doctor_rpc.py`, `doctor_run.py`, `doctor_machine.py` for the checks.
"""

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Final

from solders.pubkey import Pubkey

from troth_cli.errors import KeyFileError
from troth_cli.keyfiles import read_key
from troth_cli.slot_time import STATED, SlotTime
from troth_cli.state_folders import STATES, state_folder
from troth_cli.view.output import Output
from troth_cli.workflows.checks import CheckResult, Level, Row, refusal, run_checks, untested
from troth_cli.workflows.doctor_rpc import (
    LINK_CHECKS,
    Link,
    ask_each,
    check_owner_balance,
    latency,
    latency_result,
)
from troth_cli.workflows.doctor_run import RUN_CHECKS, Membership, Question
from troth_cli.workflows.probes import measure_round, measure_slots
from troth_cli.workflows.prospects import Tempo
from troth_client.runtime.files import existing_part
from troth_client.runtime.installed import install_command
from troth_client.runtime.memory import first_line
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import ChainError, RpcAddressError
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.chain.rpc import Rpc
from troth_coordinator.chain.rpc_health import names_of
from troth_coordinator.chain.unhurried import UnhurriedRpc

PROBE_BYTES: Final = 8 << 20
SLOW_DISK_BYTES_PER_SECOND: Final = 10_000_000
PATIENCE_SECONDS: Final = 30.0
"""So long in all does the doctor wait where every node limits requests."""
_NO_ROUND: Final = Fraction(1)
NO_NODE: Final = "no node answers; see rpc"


@dataclass(frozen=True, slots=True)
class Seen:
    """The rows so far, and the run where it could be read."""

    rows: list[Row]
    member: Membership | None


def examine(question: Question, output: Output) -> list[Row]:
    """Make every check that can be made and return the rows; problems are rows, not errors."""
    owner, key_row = _key(question)
    state = _state(question, owner)
    disk_row = Row("disk", _disk(state))
    seen = asyncio.run(_network(question, owner))
    rows = [*seen.rows, key_row, disk_row, *_machine(question, state, seen.member, output)]
    return [_as_problem(row) for row in rows]


def has_problem(rows: list[Row]) -> bool:
    """Tell whether something needs to be done before this machine can take part."""
    return any(row.result.level is Level.PROBLEM for row in rows)


def _as_problem(row: Row) -> Row:
    if row.result.level is not Level.REFUSED:
        return row
    return Row(row.name, replace(row.result, level=Level.PROBLEM))


def _state(question: Question, owner: Pubkey | None) -> Path:
    """Return the folder that `troth join` would take, as far as it is known."""
    if question.state is not None:
        return question.state
    return STATES if question.run is None or owner is None else state_folder(question.run, owner)


def _machine(
    question: Question, state: Path, member: Membership | None, output: Output
) -> list[Row]:
    try:
        with output.loading():
            from troth_cli.workflows.doctor_machine import examine_machine
    except (ImportError, OSError) as error:  # OSError: a library of PyTorch's that is not there
        advice = f"Install them with: {install_command('train')}"
        found = CheckResult(Level.PROBLEM, _unloaded(error), "the packages to train", advice)
        return [Row("device", found)]
    return examine_machine(question, state, member)


def _unloaded(error: ImportError | OSError) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"the package `{error.name}` is not installed"
    return f"an installation that cannot be loaded: {first_line(error)}"


def _key(question: Question) -> tuple[Pubkey | None, Row]:
    """Return the owner's address, and what is to be said about its file."""
    if question.key is None:
        return None, Row("key", untested("no --key"))
    open_to_others: list[str] = []
    try:
        owner = read_key(question.key, open_to_others.append).pubkey()
    except KeyFileError as error:
        return None, Row("key", refusal(error))
    if open_to_others:
        found = CheckResult(
            Level.PROBLEM,
            f"{question.key} can be read or changed by other users",
            "mode 0600",
            f"chmod 600 {question.key}",
        )
        return owner, Row("key", found)
    return owner, Row("key", CheckResult(Level.OK, str(owner)))


def _disk(state: Path) -> CheckResult:
    """Write some megabytes beside the state folder, time it, and remove them."""
    folder = state
    try:
        folder = existing_part(state)
        rate = PROBE_BYTES / max(_seconds_to_write(folder), 1e-6)
    except OSError as error:
        return CheckResult(
            Level.PROBLEM,
            f"{folder}: {(error.strerror or str(error)).lower()}",
            "a folder that can be written",
            "Name another folder with --state, or free some space.",
        )
    values = {"bytes_per_second": rate}
    found = f"{rate / 1e6:.0f} MB/s in {folder}"
    if rate >= SLOW_DISK_BYTES_PER_SECOND:
        return CheckResult(Level.OK, found, values=values)
    advice = "Weights are written every round: use a faster disk."
    return CheckResult(Level.WARNING, found, "10 MB/s", advice, values=values)


def _seconds_to_write(folder: Path) -> float:
    probe = folder / f".troth-doctor-{secrets.token_hex(8)}.tmp"
    data = os.urandom(PROBE_BYTES)  # before the clock runs: it is slower than many disks
    try:
        began = time.perf_counter()
        with probe.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        return time.perf_counter() - began
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


async def _network(question: Question, owner: Pubkey | None) -> Seen:
    async with contextlib.AsyncExitStack() as stack:
        try:
            asked = await ask_each(await _nodes(question.rpc_urls, stack), latency)
        except RpcAddressError as error:
            return _without_node(refusal(error))
        first, nodes = asked.result(latency_result), list(asked.answers)
        if not nodes:
            return _without_node(first)
        rpc = UnhurriedRpc({one.name: one for one in nodes})
        rpc.patience_seconds = PATIENCE_SECONDS
        await stack.enter_async_context(rpc)
        client = CoordinatorClient(rpc, question.program)
        tempo = Tempo(await _slot(rpc), _NO_ROUND)
        link = Link(nodes, client, tempo)
        rows = [Row("rpc", first), *await run_checks(LINK_CHECKS, link)]
        rows.append(Row("balance", await _balance(link, owner)))
        member, found = await _membership(question, link, tempo, owner)
        return Seen([*rows, *found], member)


async def _nodes(urls: Sequence[str], stack: contextlib.AsyncExitStack) -> list[HttpRpc]:
    """Open every node by a name that holds no key. Raises RpcAddressError."""
    opened = [HttpRpc(url, name=name) for name, url in names_of(urls).items()]
    return [await stack.enter_async_context(one) for one in opened]


def _without_node(why: CheckResult) -> Seen:
    names = [*(name for name, _check in LINK_CHECKS), "balance"]
    names += [name for name, _check in RUN_CHECKS]
    return Seen([Row("rpc", why), *(Row(name, untested(NO_NODE)) for name in names)], None)


async def _slot(rpc: Rpc) -> SlotTime:
    """Return the length of a slot; the stated one, as not measured, where the nodes say nothing."""
    try:
        return await measure_slots(rpc)
    except ChainError:
        return STATED


async def _balance(link: Link, owner: Pubkey | None) -> CheckResult:
    if owner is None:
        return untested("no key that can be read")
    try:
        return await check_owner_balance(link.client, owner)
    except ChainError as error:
        return refusal(error)


async def _membership(
    question: Question, link: Link, tempo: Tempo, owner: Pubkey | None
) -> tuple[Membership | None, list[Row]]:
    if question.run is None:
        return None, [Row(name, untested("no RUN")) for name, _check in RUN_CHECKS]
    client = link.client
    try:
        view = await client.snapshot(question.run)
        tempo = Tempo(tempo.slot, await measure_round(client, view))
    except ChainError as error:
        return None, [Row("run", refusal(error))]
    member = Membership(client, view, tempo, question.config, owner, question.hubs)
    return member, await run_checks(RUN_CHECKS, member)
