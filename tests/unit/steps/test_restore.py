"""Restoring from others: while the weights arrive, the rounds that the ring will drop are kept."""

import asyncio
import mmap
import sys
from pathlib import Path

import pytest
from support.audit_driver import ROUND, AuditDriver, Holders, closed_round, settle, view_at

from troth_client.steps.restore import Restore

CHECKPOINT = ROUND - 1
VIEW = view_at(round_=ROUND + 1, root_round=CHECKPOINT, root=b"r" * 32)
LATER = view_at(slot=VIEW.slot + 1, round_=ROUND + 1, root_round=CHECKPOINT, root=b"r" * 32)


@pytest.fixture
async def driver(tmp_path):
    """A member that fetches a checkpoint which nobody serves yet."""
    one = AuditDriver(tmp_path)
    one.holders = Holders()
    one.node.rounds = {ROUND: closed_round()}
    await one.look(VIEW)
    yield one
    await one.close()


def begin(driver):
    return driver.start(Restore(driver.chain, driver.submissions).newest(VIEW))


def refuse_reads(driver, refusal):
    """Let the node's answer meet this when the accounts of rounds are read."""

    async def read_rounds(_run, _numbers):
        refusal()

    driver.node.read_rounds = read_rounds


async def test_closed_rounds_are_kept_while_a_checkpoint_is_fetched(driver):
    task = begin(driver)
    await settle()
    assert list(driver.chain.log.rounds) == [ROUND]
    assert not task.done()


@pytest.mark.skipif(sys.platform != "linux", reason="how Linux refuses a mapping")
async def test_rounds_are_kept_again_once_memory_suffices(driver):
    """The log ended without a word; the rounds that the ring dropped were missing at the end."""
    refuse_reads(driver, lambda: mmap.mmap(-1, 1 << 46))
    task = begin(driver)
    await settle()
    assert len(driver.named("out_of_memory")) == 1
    del driver.node.read_rounds
    await driver.look(LATER)
    assert list(driver.chain.log.rounds) == [ROUND]
    assert not task.done()


async def test_another_error_of_the_log_ends_the_fetch_at_once(driver):
    refuse_reads(driver, Path("/").read_bytes)
    with pytest.raises(IsADirectoryError):
        async with asyncio.timeout(20):
            await begin(driver)
