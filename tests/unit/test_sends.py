"""Sends outlive their callers: what landed is reported with its fee, however late the node says."""

import asyncio
import gc

import pytest
from support.audit_driver import AuditDriver, complaints, settle, view_at

from troth_client.participant.housekeeping import try_send
from troth_client.runtime.base import end
from troth_coordinator.chain.errors import RpcTimeoutError


@pytest.fixture
async def driver(tmp_path):
    one = AuditDriver(tmp_path)
    one.node.hangs = asyncio.Event()
    yield one
    await one.close()


async def begin(driver):
    """Start a send that the node has taken and not confirmed yet."""
    task = driver.start(try_send(driver.chain, view_at(), ["step"]))
    await settle()
    assert len(driver.node.sent) == 1
    assert len(driver.chain.sends) == 1
    return task


async def test_a_send_hands_its_result_to_the_caller(driver):
    task = await begin(driver)
    driver.node.hangs.set()
    await settle()
    assert await task is True
    assert driver.chain.sends == set()


async def test_what_a_send_raises_is_the_callers(driver):
    task = await begin(driver)
    driver.node.failure = RpcTimeoutError("http://node", "nothing")
    driver.node.hangs.set()
    with pytest.raises(RpcTimeoutError):
        await task
    assert driver.chain.sends == set()


async def test_a_cancelled_caller_ends_at_once_and_the_late_confirmation_is_reported(driver):
    task = await begin(driver)
    await end(task)
    assert task.cancelled()
    assert driver.named("cranked") == []
    driver.node.hangs.set()
    await settle()
    assert [one["fee"] for one in driver.named("cranked")] == [5_000]
    assert driver.chain.sends == set()


async def test_a_caller_that_is_cancelled_before_the_first_step_has_sent_all_the_same(driver):
    """The caller has begun, its send has not: nobody may tell later whether it went out."""
    task = driver.start(try_send(driver.chain, view_at(), ["step"]))
    while not driver.chain.sends:
        await asyncio.sleep(0)
    assert driver.node.sent == []
    await end(task)
    driver.node.hangs.set()
    await settle()
    assert len(driver.named("cranked")) == 1


async def test_a_failure_after_the_caller_has_gone_disturbs_nobody(driver):
    with complaints() as found:
        await end(await begin(driver))
        driver.node.failure = RpcTimeoutError("http://node", "nothing")
        driver.node.hangs.set()
        await settle()
        gc.collect()
        await settle()
    assert found == []
    assert driver.chain.sends == set()


async def test_all_sends_under_way_can_be_waited_for(driver):
    for number in (1, 2):
        sending = driver.start(try_send(driver.chain, view_at(), ["step"]))
        await settle()
        assert len(driver.chain.sends) == number
        await end(sending)
    waiting = driver.start(driver.chain.all_sent())
    await settle()
    assert not waiting.done()
    driver.node.hangs.set()
    await settle()
    assert waiting.done()
    assert len(driver.named("cranked")) == 2


async def test_a_send_that_ended_just_now_is_not_waited_for_in_circles(driver):
    """Its end is not yet noted: a wait that returns at once would never let that happen."""
    driver.node.hangs = None
    driver.start(try_send(driver.chain, view_at(), ["step"]))
    while not any(task.done() for task in driver.chain.sends):
        await asyncio.sleep(0)
    await driver.chain.all_sent()
    await settle()
    assert driver.chain.sends == set()


async def test_a_send_is_left_alone_once_a_view_says_that_it_is_of_no_use(driver):
    """An older view, of an RPC node that lags, says nothing about it."""
    now = view_at(2_000)
    await driver.look(now)
    task = driver.start(try_send(driver.chain, now, ["step"]))
    await settle()
    await driver.look(view_at(1_990, round_=1))
    assert not task.done()
    await driver.look(view_at(2_001, round_=now.run.round + 1))
    assert await task is False
    assert len(driver.chain.sends) == 1, "it may have landed: it is still watched"
    driver.node.failure = RpcTimeoutError("http://node", "nothing")
    driver.node.hangs.set()
    await settle()
    assert driver.chain.sends == set()
    (reported,) = driver.named("send_failed")
    assert "nothing" in reported["reason"]


async def test_waiting_for_sends_lets_slots_pass(driver):
    """A confirmation may take two slots: neither the caller nor the last wait may hold them."""

    async def confirm_later():
        await driver.runtime.wait()
        await driver.runtime.wait()

    sending = driver.start(driver.chain.finish(confirm_later()))
    await settle()
    await end(sending)
    waiting = driver.start(driver.chain.all_sent())
    await settle()
    for _ in range(2):
        assert not waiting.done()
        await driver.pass_slot()
    assert waiting.done()
    assert driver.slots == 2
