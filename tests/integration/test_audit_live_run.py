"""An audit of a run that goes on: whoever reads a moment later accuses nobody."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.program.ledger_files import client_of, head_of
from support.program.rounds import RoundDriver

from troth_audit.replay.findings import Grade, Rule
from troth_audit.replay.report import Report
from troth_cli.workflows.audit import Plan, audit
from troth_cli.workflows.audit_inputs import Asked, Inputs, gather
from troth_coordinator.ledger.file import LedgerFile
from troth_coordinator.ledger.follow import follow
from troth_localnet.rpc import RpcServer, ServerConfig
from troth_localnet.svm import Chain

ABOUT_THE_CHAIN = (Rule.RUN_ACCOUNT, Rule.CHAIN_HASH, Rule.PHASE, Rule.VAULT)


@pytest.fixture
def driver() -> RoundDriver:
    """Return a run of four with two closed rounds and a third one open."""
    one = RoundDriver(4, max_rounds=9, checkpoint_every=3, keep_rounds=2)
    one.start()
    one.play(2)
    return one


@asynccontextmanager
async def node(chain: Chain) -> AsyncIterator[str]:
    server = RpcServer(chain, ServerConfig(slot_milliseconds=None))
    await server.start()
    try:
        yield server.rpc_url
    finally:
        await server.stop()


async def gathered(driver: RoundDriver, folder: Path, *urls: str) -> Inputs:
    asked = Asked(driver.at.run, None, list(urls), [str(folder)], None, folder)
    return await asyncio.to_thread(gather, asked)


def grades(inputs: Inputs) -> dict[Rule, Grade]:
    """Audit, and return what is said about the chain; nothing else is there to be audited."""
    report: Report = audit(inputs, Plan(num_threads=1), lambda _: None).report
    found = [one for one in report.findings if one.rule in ABOUT_THE_CHAIN]
    return {one.rule: one.grade for one in found if one.grade is not Grade.NOTE}


def commit_the_others(driver: RoundDriver) -> None:
    for index in (1, 2, 3):
        driver.chain.advance()
        driver.commit(index)


async def test_an_archive_that_goes_on_while_it_is_audited_is_not_proven_to_its_end(
    driver, tmp_path
):
    with LedgerFile(tmp_path / "ledger.jsonl", head_of(driver)) as ledger:
        await follow(client_of(driver), ledger)
        async with node(driver.chain) as url:
            inputs = await gathered(driver, tmp_path, url)
        driver.play(1)
        await follow(client_of(driver), ledger)
    assert grades(inputs) == {Rule.CHAIN_HASH: Grade.MISSING}


async def test_commits_between_the_history_and_the_account_accuse_nobody(driver, tmp_path):
    driver.commit(0)
    with LedgerFile(tmp_path / "ledger.jsonl", head_of(driver)) as ledger:
        await follow(client_of(driver), ledger)
    before = driver.run
    commit_the_others(driver)
    assert driver.run.chain_hash == before.chain_hash
    assert driver.run.quorum_slot != before.quorum_slot
    async with node(driver.chain) as url:
        inputs = await gathered(driver, tmp_path, url)
    assert grades(inputs) == {}


async def test_commits_between_the_account_and_the_ledger_of_an_archive_accuse_nobody(
    driver, tmp_path
):
    driver.commit(0)
    account = driver._account(driver.at.run)
    told = {
        "slot": driver.slot,
        "owner": str(account.owner),
        "lamports": account.lamports,
        "data": base64.b64encode(account.data).decode(),
    }
    (tmp_path / "chain.json").write_text(json.dumps(told))
    commit_the_others(driver)
    with LedgerFile(tmp_path / "ledger.jsonl", head_of(driver)) as ledger:
        await follow(client_of(driver), ledger)
    assert grades(await gathered(driver, tmp_path)) == {}
