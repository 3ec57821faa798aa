"""The watcher of the chain: one look serves all who wait; patience has no end."""

import asyncio

import pytest
from support.audit_driver import settle, view_at

from troth_client.network.watch import GONE_LOOKS
from troth_client.runtime.base import end
from troth_coordinator.chain.errors import (
    AccountMissingError,
    AccountOwnerError,
    ProgramMissingError,
    RpcDisagreementError,
    RpcTimeoutError,
    Said,
)
from troth_coordinator.rules.phase import Phase

AWAY = RpcTimeoutError("http://node", "nothing")
GONE = AccountMissingError("Run", "its address")
FOREIGN = AccountOwnerError("account", "the program as its owner", "the system program", "ask")
NO_PROGRAM = ProgramMissingError("its address")
LONG = 100


class _Remembering:
    """A reader whose view is still good enough."""

    def __init__(self, view):
        self._view = view

    async def newest(self):
        return self._view


@pytest.fixture
def watch(driver):
    return driver.chain.watch


async def test_one_look_is_handed_to_everybody_who_waits(driver, watch):
    waiting = [driver.start(watch.next()) for _ in range(3)]
    await settle()
    found = await watch.look()
    for task in waiting:
        assert await task is found
    assert driver.node.num_looks == 1
    assert watch.latest is found


async def test_a_waiter_that_is_cancelled_takes_nothing_from_the_others(driver, watch):
    first, second = (driver.start(watch.next()) for _ in range(2))
    await settle()
    await end(first)
    found = await watch.look()
    assert await second is found


async def test_what_was_seen_before_is_not_handed_out_again(driver, watch):
    await watch.look()
    waiting = driver.start(watch.next())
    await settle()
    assert not waiting.done()
    driver.node.view = view_at(2_000)
    await watch.look()
    assert (await waiting).slot == 2_000


async def test_the_latest_view_again_wakes_nobody(driver, watch):
    """A reader that needed no look says so by the same record, many times in a slot."""
    latest = await watch.look()
    waiting = driver.start(watch.next())
    await settle()
    reader = watch._reader
    watch._reader = _Remembering(latest)
    assert await watch.recent() is latest
    await settle()
    assert not waiting.done()
    watch._reader = reader
    found = await watch.recent()
    assert await waiting is found


async def test_a_condition_is_asked_of_a_fresh_look_first(driver, watch):
    found = await watch.until(lambda view: True)
    assert driver.node.num_looks == 1
    assert found == driver.node.view


async def test_a_condition_is_asked_again_of_every_look(driver, watch):
    waiting = driver.start(watch.until(lambda view: view.slot >= 2_002))
    await settle()
    for slot in (2_001, 2_002):
        assert not waiting.done()
        await driver.look(view_at(slot))
    assert (await waiting).slot == 2_002


async def test_a_look_that_fails_is_the_callers_and_wakes_nobody(driver, watch):
    waiting = driver.start(watch.next())
    await settle()
    driver.node.read_failure = AWAY
    with pytest.raises(RpcTimeoutError):
        await watch.look()
    await settle()
    assert not waiting.done()
    driver.node.read_failure = None
    assert await watch.look() is await waiting


async def fail(driver, times):
    """Let so many looks of the follower fail."""
    driver.node.read_failure = AWAY
    for _ in range(times):
        await driver.pass_slot()


async def test_the_chain_is_read_once_a_slot(driver, watch):
    driver.start(watch.follow())
    await settle()
    for num_looks in (1, 2, 3):
        await driver.pass_slot()
        assert driver.node.num_looks == num_looks


@pytest.mark.parametrize("error", [AWAY, GONE, FOREIGN, NO_PROGRAM])
async def test_patience_has_no_end(driver, watch, error):
    """Away for long, or an account that was there: the node is at fault, nobody ends for it."""
    following = driver.start(watch.follow())
    waiting = driver.start(watch.next())
    await settle()
    driver.node.read_failure = error
    for _ in range(LONG):
        await driver.pass_slot()
    assert not following.done()
    assert not waiting.done()
    driver.node.read_failure = None
    await driver.pass_slot()
    assert await waiting is watch.latest


async def test_a_long_outage_is_reported_ever_more_rarely(driver, watch):
    driver.start(watch.follow())
    await settle()
    await fail(driver, LONG)
    counts = [event["count"] for event in driver.named("chain_unreachable")]
    assert counts == [1, 2, 4, 8, 16, 32, 64]


async def test_a_failure_is_reported_with_its_reason_and_count(driver, watch):
    watch.report(AWAY)
    watch.report(AWAY, 7)
    reported = driver.named("chain_unreachable")
    assert [one["count"] for one in reported] == [1, 7]
    assert {one["reason"] for one in reported} == {str(AWAY)}


async def test_a_look_that_succeeds_ends_the_outage(driver, watch):
    """Anybody's look shows that the node is there."""
    driver.start(watch.follow())
    await settle()
    for _ in range(2):
        await fail(driver, 3)
        driver.node.read_failure = None
        await watch.look()
    counts = [event["count"] for event in driver.named("chain_unreachable")]
    assert counts == [1, 2, 1, 2]


async def test_a_finished_run_whose_account_is_gone_has_been_closed(driver, watch):
    following = driver.start(watch.follow())
    await driver.look(view_at(phase=Phase.FINISHED))
    driver.node.read_failure = GONE
    for _ in range(GONE_LOOKS - 1):
        await driver.pass_slot()
    assert not following.done()
    await driver.pass_slot()
    with pytest.raises(AccountMissingError):
        await following


async def test_two_nodes_that_disagree_are_a_loud_event(driver, watch):
    watch.report(RpcDisagreementError("the root of round 3", Said("a", "1"), Said("b", "2")))
    (reported,) = driver.named("rpc_disagreement")
    assert "1, as a says" in reported["reason"]
    assert "2, as b says" in reported["reason"]


async def test_an_error_that_is_none_of_the_nodes_is_raised_at_once(driver, watch):
    following = driver.start(watch.follow())
    await settle()
    driver.node.read_failure = OSError("disk full")
    await driver.pass_slot()
    with pytest.raises(OSError, match="disk full"):
        await following


async def test_two_looks_at_once_do_not_disturb_each_other(driver, watch):
    waiting = driver.start(watch.next())
    await settle()
    first, second = await asyncio.gather(watch.look(), watch.look())
    assert await waiting is first
    assert watch.latest is second


def test_the_latest_view_is_asked_for_before_any_look(watch):
    with pytest.raises(RuntimeError, match="look"):
        _ = watch.latest
