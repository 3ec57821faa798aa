"""Audits of runs whose account is gone, or that nobody has an account of: reports, no crashes."""

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from solders.pubkey import Pubkey
from support.cli import Cli
from support.forgeries import lines, rewrite
from support.program.closing import leave_and_close
from support.program.ledger_files import client_of, head_of
from support.program.rounds import RoundDriver
from support.recordings import play

from troth_audit.replay.findings import Finding, Grade, Rule
from troth_cli.errors import OtherRunError
from troth_cli.workflows.audit import Plan, audit
from troth_cli.workflows.audit_inputs import Asked, gather
from troth_coordinator.ledger.file import LedgerFile
from troth_coordinator.ledger.history import entries_after
from troth_localnet.rpc import RpcServer, ServerConfig


class Another(RoundDriver):
    """A run with another address."""

    run_id = b"s" * 32


def finished() -> RoundDriver:
    driver = RoundDriver(3, max_rounds=2, join_until_round=2, checkpoint_every=1)
    driver.start()
    driver.play(2)
    driver.cool_down()
    return driver


def keep_account(driver: RoundDriver, folder: Path) -> None:
    """Write the Run account as an archive does."""
    account = driver._account(driver.at.run)
    assert account is not None
    told = {
        "slot": driver.slot,
        "owner": str(account.owner),
        "lamports": account.lamports,
        "data": base64.b64encode(account.data).decode(),
    }
    (folder / "chain.json").write_text(json.dumps(told))


async def keep_ledger(driver: RoundDriver, folder: Path) -> None:
    with LedgerFile(folder / "ledger.jsonl", head_of(driver)) as ledger:
        ledger.append([entry async for entry in entries_after(client_of(driver), driver.at.run)])


@asynccontextmanager
async def node(driver: RoundDriver) -> AsyncIterator[str]:
    server = RpcServer(driver.chain, ServerConfig(slot_milliseconds=None))
    await server.start()
    try:
        yield server.rpc_url
    finally:
        await server.stop()


async def about_the_account(folder: Path, run: Pubkey, *urls: str) -> list[Finding]:
    """The findings of an audit about the account and the end of the ledger."""
    asked = Asked(run, None, urls, [str(folder)], None, folder)
    inputs = await asyncio.to_thread(gather, asked)
    report = audit(inputs, Plan(num_threads=1), lambda _: None).report
    return [one for one in report.findings if one.rule in (Rule.RUN_ACCOUNT, Rule.CHAIN_HASH)]


async def test_a_closed_run_is_as_good_as_its_ledger_and_the_archives_account(tmp_path):
    driver = finished()
    keep_account(driver, tmp_path)
    leave_and_close(driver)
    await keep_ledger(driver, tmp_path)
    async with node(driver) as url:
        at_node, at_archive = await about_the_account(tmp_path, driver.at.run, url)
    assert {at_node.grade, at_archive.grade} == {Grade.NOTE}
    assert "the transactions there end as the ledger does" in at_node.found
    assert "the last one says that the run is closed" in at_archive.found


async def test_an_account_that_is_gone_before_the_ledger_says_so_is_missing(tmp_path):
    driver = finished()
    keep_account(driver, tmp_path)
    await keep_ledger(driver, tmp_path)
    leave_and_close(driver)
    async with node(driver) as url:
        found = await about_the_account(tmp_path, driver.at.run, url)
    assert [one.grade for one in found] == [Grade.MISSING]


async def test_a_closed_run_is_proven_by_a_node_that_shows_how_it_ended(tmp_path):
    driver = finished()
    leave_and_close(driver)
    await keep_ledger(driver, tmp_path)
    async with node(driver) as url:
        found = await about_the_account(tmp_path, driver.at.run, url)
    assert [one.grade for one in found] == [Grade.NOTE]


async def test_a_closed_run_that_never_was_on_the_chain_is_missing(tmp_path):
    """The whole archive is invented: played on a chain of the liar's own, with the same genesis."""
    driver, real = finished(), Another()
    keep_account(driver, tmp_path)
    leave_and_close(driver)
    await keep_ledger(driver, tmp_path)
    async with node(real) as url:
        at_node, at_archive = await about_the_account(tmp_path, driver.at.run, url)
    assert at_node.grade is Grade.MISSING
    assert "the run never was there" in at_node.found
    assert at_archive.grade is Grade.NOTE


@pytest.mark.parametrize("name", ["RoundClosed", "StakeWithdrawn"])
async def test_a_closed_run_whose_end_was_changed_is_not_proven(tmp_path, name):
    """No later close contradicts the newest one, or an event after it."""
    driver = finished()
    keep_account(driver, tmp_path)
    leave_and_close(driver)
    await keep_ledger(driver, tmp_path)
    found = lines(tmp_path)
    at = max(number for number, line in enumerate(found) if f'"{name}"'.encode() in line)
    told = json.loads(found[at])
    found[at] = json.dumps(told | {"signature": json.loads(found[1])["signature"]}).encode() + b"\n"
    rewrite(tmp_path, found)
    async with node(driver) as url:
        at_node, _ = await about_the_account(tmp_path, driver.at.run, url)
    assert at_node.grade is Grade.MISSING


async def test_a_closed_run_that_nobody_has_an_account_of_is_missing(tmp_path):
    driver = finished()
    leave_and_close(driver)
    await keep_ledger(driver, tmp_path)
    found = await about_the_account(tmp_path, driver.at.run)
    assert [one.grade for one in found] == [Grade.MISSING]


@pytest.fixture(scope="module")
def recorded(data, tmp_path_factory) -> Path:
    """The archive of an honest run of two."""
    return play(data, tmp_path_factory.mktemp("recorded"), 2, ("ada", "bob"))


@pytest.fixture
def archive(recorded, tmp_path) -> Iterator[Path]:
    """A copy to forge."""
    yield Path(shutil.copytree(recorded, tmp_path / "archive"))


@pytest.fixture
def cli(capsys, monkeypatch) -> Cli:
    """The command line, with no RPC node in the environment."""
    monkeypatch.delenv("TROTH_RPC", raising=False)
    return Cli(capsys)


def test_an_archive_without_the_account_hides_the_end_of_its_ledger(cli: Cli, archive):
    """The archive lacks its account and its last events: nobody says how far the run went."""
    (archive / "chain.json").unlink()
    rewrite(archive, lines(archive)[:-3])
    assert cli("audit", "--archive", archive, "--json").code == 2


@pytest.mark.parametrize("value", ["Infinity", "NaN", "-1", "9" * 5_000, "1e400", "null", '"x"'])
def test_an_account_with_impossible_lamports_is_refused(cli: Cli, archive, value):
    path = archive / "chain.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps(told | {"lamports": "HERE"}).replace('"HERE"', value))
    done = cli("audit", "--archive", archive)
    assert done.code in (0, 2)
    assert "unforeseen" not in done.err and "Traceback" not in done.err


def test_a_ledger_of_another_program_is_not_the_runs(archive):
    run = gather(Asked(None, None, [], [str(archive)], None, archive)).ledger.head.run
    asked = Asked(Pubkey.from_string(run), Pubkey.default(), [], [str(archive)], None, archive)
    with pytest.raises(OtherRunError):
        gather(asked)


def test_a_run_at_an_address_that_its_id_does_not_lead_to_is_found(archive):
    """The liar deploys a program of its own and plays the same events there."""
    found = lines(archive)
    head = json.loads(found[0])
    head["program"] = str(Pubkey(bytes(31) + b"\x07"))
    rewrite(archive, [json.dumps(head).encode() + b"\n", *found[1:]])
    (archive / "chain.json").unlink()
    inputs = gather(Asked(None, None, [], [str(archive)], None, archive))
    report = audit(inputs, Plan(num_threads=1), lambda _: None).report
    rules = {one.rule for one in report.findings if one.grade is Grade.DISCREPANCY}
    assert Rule.RUN_ACCOUNT in rules


def test_events_of_another_slot_than_their_transactions_are_found(archive):
    found = lines(archive)
    told = json.loads(found[5])
    found[5] = json.dumps(told | {"slot": told["slot"] + 1}).encode() + b"\n"
    rewrite(archive, found)
    inputs = gather(Asked(None, None, [], [str(archive)], None, archive))
    report = audit(inputs, Plan(num_threads=1), lambda _: None).report
    assert [one.rule for one in report.findings] == [Rule.CHAIN_HASH]
