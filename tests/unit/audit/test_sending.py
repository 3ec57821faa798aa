"""Sending for audits: a failure is an event and a pause, never the end of a participant."""

import asyncio

import pytest
from support.audit_driver import FROZEN_AT, INDEX, ROUND, settle, view_at

from troth_client.audit.sending import Purpose, send
from troth_client.runtime.base import end
from troth_client.state.audit_tracker import PATIENCE_SLOTS
from troth_coordinator.chain.errors import (
    BlockhashExpiredError,
    InsufficientFundsError,
    RpcTimeoutError,
)

PURPOSE = Purpose("verdict_committed", (ROUND, INDEX, 0))


async def attempt(driver, view, purpose=PURPOSE):
    await send(driver.chain, driver.tracker, view, "step", purpose)


async def test_what_lands_is_reported_with_its_fee(driver):
    await attempt(driver, view_at())
    (reported,) = driver.named("verdict_committed")
    assert reported["round"] == ROUND
    assert reported["target"] == INDEX
    assert reported["fee"] == 5_000


@pytest.mark.parametrize(
    "failure", [InsufficientFundsError("purse", "1 lamport"), BlockhashExpiredError(3)]
)
async def test_a_failure_is_an_event_and_not_sent_again_at_once(driver, failure):
    driver.node.failure = failure
    await attempt(driver, view_at())
    (reported,) = driver.named("verdict_committed_refused")
    assert reported["name"] == type(failure).__name__
    for later in range(PATIENCE_SLOTS):
        await attempt(driver, view_at(FROZEN_AT + 1 + later))
    assert len(driver.node.sent) == 1
    driver.node.failure = None
    await attempt(driver, view_at(FROZEN_AT + 1 + PATIENCE_SLOTS))
    assert len(driver.node.sent) == 2
    assert len(driver.named("verdict_committed")) == 1


async def test_one_audit_that_fails_holds_up_no_other(driver):
    driver.node.failure = InsufficientFundsError("purse", "1 lamport")
    await attempt(driver, view_at())
    driver.node.failure = None
    await attempt(driver, view_at(), Purpose("verdict_committed", (ROUND, 1, 0)))
    await attempt(driver, view_at(), Purpose("verdict_revealed", PURPOSE.key))
    assert len(driver.node.sent) == 3


async def test_a_node_that_is_silent_is_the_supervisors_matter(driver):
    driver.node.failure = RpcTimeoutError("http://node", "nothing")
    with pytest.raises(RpcTimeoutError):
        await attempt(driver, view_at())
    assert driver.tracker.may_try(PURPOSE.key, PURPOSE.event, view_at())


async def begin_and_cancel(driver):
    """Send, and cancel the sender before the node confirms."""
    driver.node.hangs = asyncio.Event()
    sending = driver.start(attempt(driver, view_at()))
    await settle()
    await end(sending)
    assert len(driver.node.sent) == 1


async def test_what_lands_after_its_sender_was_cancelled_is_reported_and_not_sent_again(driver):
    await begin_and_cancel(driver)
    assert driver.named("verdict_committed") == []
    driver.node.view = view_at(FROZEN_AT + 3)
    driver.node.hangs.set()
    await settle()
    assert [one["fee"] for one in driver.named("verdict_committed")] == [5_000]
    await attempt(driver, view_at(FROZEN_AT + 3))
    assert len(driver.node.sent) == 1, "the view may be older than what landed"


async def test_what_fails_after_its_sender_was_cancelled_rests_too(driver):
    await begin_and_cancel(driver)
    driver.node.failure = InsufficientFundsError("purse", "1 lamport")
    driver.node.hangs.set()
    await settle()
    assert len(driver.named("verdict_committed_refused")) == 1
    await attempt(driver, view_at())
    assert len(driver.node.sent) == 1
