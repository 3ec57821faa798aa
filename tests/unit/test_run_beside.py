"""Work with others beside it: they end with it, begin anew at a look, and their errors are told."""

import asyncio
import mmap
import sys
from pathlib import Path

import pytest
from support.audit_driver import settle, view_at

from troth_client.network.named_tasks import run_beside
from troth_coordinator.chain.errors import RpcTimeoutError

AWAY = RpcTimeoutError("http://node", "nothing")


class Beside:
    """Work that waits for its result, and one other, which does what `act` does and then waits."""

    def __init__(self, driver):
        self.driver = driver
        self.result = asyncio.get_running_loop().create_future()
        self.num_begun = 0
        self.ended = []
        self.act = self.wait

    async def begin(self):
        task = self.driver.start(run_beside(self.driver.chain, self._work(), {"other": self._do}))
        await settle()
        return task

    async def wait(self):
        await self.driver.runtime.wait_for_others(asyncio.get_running_loop().create_future())

    async def _work(self):
        try:
            await self.driver.runtime.wait_for_others(self.result)
        except asyncio.CancelledError:
            self.ended.append("work")
            raise
        return self.result.result()

    async def _do(self):
        self.num_begun += 1
        try:
            await self.act()
        except asyncio.CancelledError:
            self.ended.append("other")
            raise


@pytest.fixture
async def beside(driver):
    return Beside(driver)


async def test_the_result_is_that_of_the_work_and_the_other_ends_with_it(beside):
    task = await beside.begin()
    assert beside.num_begun == 1
    beside.result.set_result(7)
    assert await task == 7
    assert beside.ended == ["other"]


async def test_an_error_of_the_work_is_raised_and_ends_the_other(beside):
    task = await beside.begin()
    beside.result.set_exception(OSError("disk full"))
    with pytest.raises(OSError, match="disk full"):
        await task
    assert beside.ended == ["other"]


async def test_an_error_of_the_other_is_raised_at_once_and_ends_the_work(beside):
    async def read():
        Path("/").read_bytes()

    beside.act = read
    task = await beside.begin()
    with pytest.raises(IsADirectoryError):
        await task
    assert beside.ended == ["work"]


async def test_one_that_has_ended_begins_anew_at_a_look_and_not_before(driver, beside):
    async def nothing():
        pass

    beside.act = nothing
    await beside.begin()
    assert beside.num_begun == 1
    await driver.look(view_at())
    assert beside.num_begun == 2


async def test_one_that_is_under_way_is_not_begun_twice(driver, beside):
    await beside.begin()
    await driver.look(view_at())
    assert beside.num_begun == 1


async def test_a_node_that_is_away_is_reported_and_the_other_begins_anew(driver, beside):
    async def ask():
        raise AWAY

    beside.act = ask
    task = await beside.begin()
    assert len(driver.named("chain_unreachable")) == 1
    await driver.look(view_at())
    assert beside.num_begun == 2
    assert not task.done()


@pytest.mark.skipif(sys.platform != "linux", reason="how Linux refuses a mapping")
async def test_a_lack_of_memory_is_reported_and_the_other_begins_anew(driver, beside):
    async def allocate():
        mmap.mmap(-1, 1 << 46)

    beside.act = allocate
    task = await beside.begin()
    assert len(driver.named("out_of_memory")) == 1
    await driver.look(view_at())
    assert beside.num_begun == 2
    assert not task.done()


async def test_a_cancel_ends_both(beside):
    task = await beside.begin()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert sorted(beside.ended) == ["other", "work"]


async def test_slots_pass_while_both_wait(driver, beside):
    await beside.begin()
    await driver.pass_slot()
    assert driver.slots == 0, "nobody waits for a slot"
    async with asyncio.timeout(10):
        await driver.runtime.wait()
    assert driver.slots == 1
