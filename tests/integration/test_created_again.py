"""A run that is closed and created again: archives, audits, and what `create` refuses."""

import asyncio
import contextlib
import json
from pathlib import Path

import pytest
from support.program.ledger_files import client_of, open_ledger
from support.program.lives import LIFE, create_again, live
from support.program.rounds import RoundDriver

from troth_audit.replay.account import Word
from troth_audit.replay.findings import Finding, Grade, Rule
from troth_audit.replay.report import Report
from troth_cli.workflows.audit import Plan, audit
from troth_cli.workflows.audit_inputs import Inputs
from troth_client.archive.fetching import Fetching
from troth_client.archive.folder import ArchiveFolder
from troth_client.archive.keeper import Keeper, Ports
from troth_client.archive.room import Keeping
from troth_client.hub.process import HubSettings, serve_hub
from troth_client.runtime.base import ProcessRuntime
from troth_client.storage.errors import StoreIdentityError
from troth_client.telemetry.events import EventList
from troth_client.transport.memory import MemoryNetwork, memory_transport
from troth_client.transport.sources import Sources
from troth_coordinator.ledger.file import Ledger
from troth_coordinator.ledger.follow import follow

MEMBERS = 4
FORGOTTEN = 3
"""The first round that an archive of the last one has not forgotten: the root-only step."""


def ended() -> RoundDriver:
    """A run that was played to its end."""
    driver = RoundDriver(MEMBERS, **LIFE)
    live(driver)
    return driver


def ledger_of(driver: RoundDriver, path: Path) -> Ledger:
    """The ledger of a run in a file, brought up to date."""
    with open_ledger(driver, path) as ledger:
        asyncio.run(follow(client_of(driver), ledger))
    return Ledger.of(path)


def audited(driver: RoundDriver, ledger: Ledger) -> Report:
    """An audit against the account at an RPC node, where nobody has any bytes."""
    inputs = Inputs(ledger, (Word("node", driver.run),), Sources([]), (), ())
    return audit(inputs, Plan(num_threads=1), lambda _: None).report


def about_the_run(report: Report) -> list[Finding]:
    """The findings about account and ledger: without bytes there are others."""
    return [one for one in report.findings if one.rule not in (Rule.CONFIG, Rule.MANIFEST)]


def test_an_audit_goes_through_the_newest_life_and_says_so(tmp_path):
    driver = ended()
    create_again(driver)
    live(driver)
    report = audited(driver, ledger_of(driver, tmp_path / "ledger.jsonl"))
    (found,) = about_the_run(report)
    assert found.grade is Grade.NOTE
    assert f"created again in slot {driver.run.created_slot}" in found.found
    assert report.counts["events"] == driver.run.event_sequence


def test_the_account_of_a_later_life_convicts_no_earlier_one(tmp_path):
    """Somebody kept an archive of the first life, and asks an RPC node about it today."""
    driver = ended()
    kept = ledger_of(driver, tmp_path / "ledger.jsonl")
    create_again(driver)
    (found,) = about_the_run(audited(driver, kept))
    assert found.grade is Grade.MISSING
    assert found.rule is Rule.RUN_ACCOUNT
    assert f"one created in slot {driver.run.created_slot}" in found.found


async def looked(driver: RoundDriver, path: Path, keeping: Keeping) -> Keeper:
    """Somebody's archive of the run, which nobody gives any bytes to."""
    folder, events = ArchiveFolder(path, durable=False), EventList()
    with open_ledger(driver, folder.ledger) as ledger:
        async with memory_transport(MemoryNetwork(), "archivist", listens=False) as wire:
            fetching = Fetching(wire, folder)
            runtime = ProcessRuntime(0)
            ports = Ports(client_of(driver), runtime, events, fetching, folder)
            keeper = Keeper(folder, ledger, ports, keeping)
            await keeper.look()
    assert events.named("ledger_refused") == []
    return keeper


def missing(path: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((path / "missing.json").read_text())["missing"]
    return found


@pytest.mark.parametrize("is_at_once", [False, True], ids=["kept since", "begun later"])
async def test_an_archive_wants_what_the_newest_life_names(tmp_path, is_at_once):
    driver = ended()
    if not is_at_once:
        await looked(driver, tmp_path, Keeping())
        assert {one["kind"] for one in missing(tmp_path)} == {"config", "manifest", "header"}
    create_again(driver)
    keeper = await looked(driver, tmp_path, Keeping())
    assert {one["kind"] for one in missing(tmp_path)} == {"config", "manifest"}
    assert keeper.round == 0


async def test_an_archive_that_forgot_rounds_forgets_none_of_the_next_life(tmp_path):
    driver = ended()
    await looked(driver, tmp_path, Keeping(rounds=1))
    assert ArchiveFolder(tmp_path).forgotten_before == FORGOTTEN
    create_again(driver)
    await looked(driver, tmp_path, Keeping(rounds=1))
    assert ArchiveFolder(tmp_path).forgotten_before == 0


def test_an_address_with_a_history_is_refused_and_another_name_helps(bench):
    run = bench.create(name="again")
    bench.cli.json(*bench.of_run("run", "close", run=run, key="authority"))
    before = bench.balance("authority")
    error = bench.cli.refused(*bench.create_arguments(name="again"))
    assert error["kind"] == "OtherRunError"
    assert run in error["expected"]
    assert error["found"].startswith("a run that was closed: RunClosed in slot ")
    assert "--name" in error["next_step"]
    assert bench.balance("authority") == before
    assert bench.create(name="another") != run


async def serve(driver: RoundDriver, folder: Path) -> None:
    """Serve as a hub until it listens."""
    settings = HubSettings(driver.at.run, folder, "127.0.0.1", 0, 10**9, 10**9, 32)
    events = EventList()
    serving = asyncio.create_task(serve_hub(settings, client_of(driver), events))
    while not serving.done() and not events.named("hub_listening"):
        await asyncio.sleep(0.01)
    serving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await serving


def test_a_hub_refuses_the_folder_of_an_earlier_life(tmp_path):
    """Its rounds are later than the new ones, so they gave way to none: no payload was taken."""
    driver = RoundDriver(MEMBERS, **LIFE)
    asyncio.run(serve(driver, tmp_path / "hub"))
    asyncio.run(serve(driver, tmp_path / "hub"))  # a restart goes on
    live(driver)
    create_again(driver)
    with pytest.raises(StoreIdentityError, match="created_slot") as caught:
        asyncio.run(serve(driver, tmp_path / "hub"))
    assert "another --dir" in caught.value.next_step
