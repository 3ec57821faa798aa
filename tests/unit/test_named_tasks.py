"""Tasks by name: one of each at a time; a node that is away ends none of them for good."""

import asyncio
import gc

import pytest
from support.audit_driver import complaints, settle

from troth_client.network.named_tasks import NamedTasks
from troth_coordinator.chain.errors import (
    BlockhashExpiredError,
    RpcTimeoutError,
    UnconfirmedError,
)

AWAY = RpcTimeoutError("http://node", "nothing")


class Works:
    """Named works that wait until the test ends or fails them, and the tasks that run them."""

    def __init__(self, driver):
        self.driver = driver
        self.tasks = NamedTasks(driver.chain, "named")
        self.begun = []
        self.cancelled = []
        self.results = {}

    def start(self, name):
        self.tasks.start(name, lambda: self.work(name))

    async def work(self, name):
        self.begun.append(name)
        result = self.results[name] = asyncio.get_running_loop().create_future()
        try:
            await result
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise

    def wait(self, *futures):
        """Start the owner's waiting for the futures, or for nothing that ever comes."""
        never = asyncio.get_running_loop().create_future()
        return self.driver.start(self.tasks.until(*futures or (never,)))


@pytest.fixture
async def works(driver):
    one = Works(driver)
    yield one
    await one.tasks.close()


def num_named():
    return sum(task.get_name() == "named" for task in asyncio.all_tasks())


async def test_one_task_of_a_name_is_under_way(works):
    for name in ("a", "a", "b", "a"):
        works.start(name)
    await settle()
    assert works.begun == ["a", "b"]
    assert num_named() == 2


async def test_a_name_whose_task_has_ended_can_be_started_again(works):
    works.start("a")
    works.wait()
    await settle()
    works.results["a"].set_result(None)
    await settle()
    works.start("a")
    await settle()
    assert works.begun == ["a", "a"]


async def test_waiting_ends_with_the_first_of_its_futures_and_with_no_task(works):
    first, second = (asyncio.get_running_loop().create_future() for _ in range(2))
    works.start("a")
    waiting = works.wait(first, second)
    await settle()
    works.results["a"].set_result(None)
    await settle()
    assert not waiting.done()
    second.set_result(None)
    await settle()
    assert waiting.done()


async def test_an_error_surfaces_at_once_and_not_at_the_next_look(works):
    """Nothing looks while a node is away: a full disk would stay unnoticed for as long."""
    works.start("a")
    waiting = works.wait()
    await settle()
    works.results["a"].set_exception(OSError("disk full"))
    await settle()
    assert waiting.done()
    with pytest.raises(OSError, match="disk full"):
        await waiting


async def test_an_error_from_before_the_waiting_surfaces_although_its_future_is_done(works):
    done = asyncio.get_running_loop().create_future()
    done.set_result(None)
    works.start("a")
    await settle()
    works.results["a"].set_exception(OSError("disk full"))
    await settle()
    with pytest.raises(OSError, match="disk full"):
        await works.tasks.until(done)


@pytest.mark.parametrize(
    "failure", [AWAY, BlockhashExpiredError(3), UnconfirmedError("signature", 3)]
)
async def test_a_node_that_is_away_is_reported_and_the_task_can_start_again(driver, works, failure):
    works.start("a")
    waiting = works.wait()
    await settle()
    works.results["a"].set_exception(failure)
    await settle()
    (reported,) = driver.named("chain_unreachable")
    assert reported["reason"] == str(failure)
    assert not waiting.done()
    works.start("a")
    await settle()
    assert works.begun == ["a", "a"]


@pytest.mark.parametrize("failure", [MemoryError("short"), RuntimeError("CUDA out of memory.")])
async def test_a_lack_of_memory_is_reported_once_until_the_work_succeeds(driver, works, failure):
    for result, num_reported in ((failure, 1), (failure, 1), (None, 1), (failure, 2)):
        works.start("a")
        works.wait()
        await settle()
        if result is None:
            works.results["a"].set_result(None)
        else:
            works.results["a"].set_exception(result)
        await settle()
        assert len(driver.named("out_of_memory")) == num_reported
    assert driver.named("out_of_memory")[0]["reason"] == str(failure)


async def test_another_error_of_a_device_surfaces(works):
    works.start("a")
    waiting = works.wait()
    await settle()
    works.results["a"].set_exception(RuntimeError("CUDA error: an illegal memory access"))
    await settle()
    assert waiting.done()
    with pytest.raises(RuntimeError, match="illegal memory access"):
        await waiting


async def test_keeping_ends_the_others_and_waits_until_they_have_ended(works):
    for name in "abc":
        works.start(name)
    await settle()
    await works.tasks.keep(["b", "never started"])
    assert works.cancelled == ["a", "c"]
    assert num_named() == 1
    works.start("b")
    works.start("a")
    await settle()
    assert works.begun == ["a", "b", "c", "a"]


async def test_keeping_raises_what_a_task_came_to_before(works):
    """A duty that is over may have failed for a reason that concerns all."""
    works.start("a")
    await settle()
    works.results["a"].set_exception(OSError("disk full"))
    await settle()
    with pytest.raises(OSError, match="disk full"):
        await works.tasks.keep([])


async def test_closing_ends_all_whatever_they_came_to_and_nobody_complains(works):
    with complaints() as found:
        for name in "abc":
            works.start(name)
        await settle()
        works.results["a"].set_exception(OSError("disk full"))
        await settle()
        await works.tasks.close()
        assert works.cancelled == ["b", "c"]
        assert num_named() == 0
        gc.collect()
        await settle()
    assert found == []


async def test_the_owner_and_its_waiting_tasks_hold_no_slot(driver, works):
    async def listen():
        await driver.runtime.wait_for_others(asyncio.get_running_loop().create_future())

    works.tasks.start("a", listen)
    works.wait()
    await settle()
    async with asyncio.timeout(10):
        await driver.runtime.wait()
    assert driver.slots == 1
