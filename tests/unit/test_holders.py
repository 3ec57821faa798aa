"""The order in which a participant asks holders, and how often it reads their addresses."""

import asyncio
from dataclasses import replace
from random import Random

from support.audit_driver import ENDPOINTS, view_at
from support.views import entry, roster

from troth_client.network.submissions import REREAD_SLOTS, Submissions
from troth_coordinator.chain.errors import RpcTimeoutError

FIRST = 4
RELAYS = ("hub-a", "hub-b")
OTHERS = [f"peer-{index}" for index in range(4)]  # without the trainer, and without us
SLOT = 1_000
NUM_ORDERS = 40


def submissions(driver, seed=0, **known):
    transport = driver.submissions.transport
    return Submissions(driver.chain, driver.state, transport, Random(seed), RELAYS, **known)


def at(slot=SLOT):
    return replace(view_at(slot), entries=roster(*(entry(index + 1) for index in range(6))))


async def orders(driver, seed):
    one = submissions(driver, seed)
    return [await one.endpoints(at(), FIRST) for _ in range(NUM_ORDERS)]


async def test_the_trainer_is_asked_first_then_relays_then_each_other_member_once(driver):
    found = (await orders(driver, 0))[0]
    assert found[:3] == ["peer-4", *RELAYS]
    assert sorted(found[3:]) == OTHERS


async def test_no_holder_comes_before_another_for_good(driver):
    """Two members hold the payload of a third that nobody can reach: both serve it."""
    first = [found[3] for found in await orders(driver, 0)]
    assert sorted(set(first)) == OTHERS


async def test_equal_seeds_give_equal_orders_and_others_do_not(driver):
    found = await orders(driver, 0)
    assert await orders(driver, 0) == found
    assert await orders(driver, 1) != found


class SlowReads:
    """The chain answers after a while, or fails; counts how often it is asked."""

    def __init__(self, driver):
        self.answer = driver.node.read_participants
        self.failure = None
        self.num_reads = 0
        driver.node.read_participants = self.read

    async def read(self, run, owners):
        self.num_reads += 1
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        return await self.answer(run, owners)


async def ask_for_all(one, view):
    """Ask for the holders of every payload at once, as `gather` does."""
    asking = (one.endpoints(view, index) for index in range(5))
    return await asyncio.gather(*asking, return_exceptions=True)


async def test_calls_at_once_read_unknown_addresses_once(driver):
    reads, one = SlowReads(driver), submissions(driver)
    found = await ask_for_all(one, at())
    assert [sorted(holders) for holders in found] == [sorted([*RELAYS, *OTHERS, "peer-4"])] * 5
    assert reads.num_reads == 1


async def test_calls_at_once_read_old_addresses_once(driver):
    one = submissions(driver, endpoints_of=dict(ENDPOINTS))
    await ask_for_all(one, at())
    reads = SlowReads(driver)
    await ask_for_all(one, at(SLOT + REREAD_SLOTS))
    assert reads.num_reads == 1


async def test_calls_at_once_report_one_failure_and_use_the_addresses_from_before(driver):
    one = submissions(driver, endpoints_of=dict(ENDPOINTS))
    await ask_for_all(one, at())
    reads = SlowReads(driver)
    reads.failure = RpcTimeoutError("http://node", "nothing")
    found = await ask_for_all(one, at(SLOT + REREAD_SLOTS))
    assert [len(holders) for holders in found] == [7] * 5
    assert len(driver.named("chain_unreachable")) == 1


async def test_a_failure_to_read_unknown_addresses_reaches_each_call_and_is_no_answer(driver):
    reads, one = SlowReads(driver), submissions(driver)
    reads.failure = RpcTimeoutError("http://node", "nothing")
    assert await ask_for_all(one, at()) == [reads.failure] * 5
    assert reads.num_reads == 1
    reads.failure = None
    assert len(await one.endpoints(at(), FIRST)) == 7


async def test_a_call_that_ends_early_ends_the_reading_of_no_other(driver):
    reads, one = SlowReads(driver), submissions(driver)
    early, other = (asyncio.create_task(one.endpoints(at(), FIRST)) for _ in range(2))
    await asyncio.sleep(0)
    early.cancel()
    assert len(await other) == 7
    assert early.cancelled()
    assert reads.num_reads == 1
