"""Runtimes: a stepped slot passes when every task is idle; real processes let time go on."""

import asyncio
import mmap
import sys
from pathlib import Path

import pytest
from support.audit_driver import settle

from troth_client.runtime.base import ProcessRuntime, end
from troth_simulation.stepped import SteppedRuntime


class Slots:
    """A stepped runtime of which the test is one task, and how many slots have passed."""

    def __init__(self):
        self.passed = 0
        self.runtime = SteppedRuntime(self.advance)
        self.runtime.join()

    def advance(self):
        self.passed += 1


@pytest.mark.skipif(sys.platform != "linux", reason="how Linux refuses a mapping")
async def test_a_mapping_without_memory_is_a_memory_error():
    """The first round of a member maps its shards: it ended the process, where others wait."""
    with pytest.raises(MemoryError, match="Cannot allocate memory"):
        await ProcessRuntime(1.0).compute(mmap.mmap, -1, 1 << 46)


async def test_another_error_of_the_system_stays_one(tmp_path):
    with pytest.raises(FileNotFoundError):
        await ProcessRuntime(1.0).compute(Path(tmp_path / "gone").read_bytes)


@pytest.fixture
def slots():
    return Slots()


async def test_the_slot_waits_for_work_beside_the_waiting(slots):
    """A judge that fetched for real seconds missed its window: the slots had gone on without it."""
    done = asyncio.Event()
    judging = slots.runtime.start(done.wait(), "judge")
    waiting = asyncio.create_task(slots.runtime.wait())
    await settle()
    assert slots.passed == 0
    done.set()
    await waiting
    assert await judging is True
    assert slots.passed == 1


async def test_a_task_that_listens_for_others_is_idle(slots):
    news = asyncio.get_running_loop().create_future()
    listening = slots.runtime.start(slots.runtime.wait_for_others(news), "listen")
    await settle()
    await slots.runtime.wait()
    assert slots.passed == 1
    assert not listening.done()
    await end(listening)


async def test_a_listener_whose_news_are_there_is_not_idle_until_it_has_acted(slots):
    """The look was in, but its reader had not run yet: the slot passed and it read too late."""
    news = asyncio.get_running_loop().create_future()
    seen = []

    async def read():
        await slots.runtime.wait_for_others(news)
        seen.append(slots.passed)

    reading = slots.runtime.start(read(), "read")
    await settle()
    news.set_result(None)
    await slots.runtime.wait()
    assert seen == [0]
    assert reading.done()


async def test_news_that_are_there_already_are_not_waited_for(slots):
    news = asyncio.get_running_loop().create_future()
    news.set_result(None)
    await slots.runtime.wait_for_others(news, asyncio.get_running_loop().create_future())
    assert slots.passed == 0


async def test_two_listeners_of_one_future_both_wake(slots):
    news = asyncio.get_running_loop().create_future()
    listening = [slots.runtime.start(slots.runtime.wait_for_others(news), "a") for _ in range(2)]
    await settle()
    await end(listening.pop())
    await slots.runtime.wait()
    assert slots.passed == 1, "the other one is still idle"
    news.set_result(None)
    await asyncio.gather(*listening)


async def test_a_cancelled_sleeper_leaves_and_lets_time_go_on(slots):
    sleeping = slots.runtime.start(slots.runtime.wait(), "sleep")
    await settle()
    await end(sleeping)
    await slots.runtime.wait()
    assert slots.passed == 1


async def test_a_cancelled_listener_leaves_and_lets_time_go_on(slots):
    news = asyncio.get_running_loop().create_future()
    listening = slots.runtime.start(slots.runtime.wait_for_others(news), "listen")
    await settle()
    await end(listening)
    await slots.runtime.wait()
    await slots.runtime.wait()
    assert slots.passed == 2


async def test_a_listener_that_is_gone_stands_in_for_no_busy_task(slots):
    """Counted on, it would let the slot pass before a judge that still works."""
    news = asyncio.get_running_loop().create_future()
    listening = slots.runtime.start(slots.runtime.wait_for_others(news), "listen")
    await settle()
    await end(listening)
    busy = slots.runtime.start(asyncio.Event().wait(), "busy")
    waiting = asyncio.create_task(slots.runtime.wait())
    await settle()
    assert slots.passed == 0
    await end(busy)
    await waiting


async def test_a_task_that_is_cancelled_before_its_first_step_leaves(slots):
    task = slots.runtime.start(asyncio.Event().wait(), "never")
    await end(task)
    await slots.runtime.wait()
    assert slots.passed == 1


async def test_a_task_that_fails_leaves(slots):
    async def broken():
        raise OSError("disk full")

    task = slots.runtime.start(broken(), "broken")
    await slots.runtime.wait()
    assert slots.passed == 1
    with pytest.raises(OSError, match="disk full"):
        await task


async def test_the_last_task_that_goes_lets_the_others_go_on(slots):
    busy = slots.runtime.start(asyncio.Event().wait(), "busy")
    waiting = asyncio.create_task(slots.runtime.wait())
    await settle()
    assert slots.passed == 0
    await end(busy)
    await waiting
    assert slots.passed == 1


async def test_no_slot_passes_while_nobody_waits_for_one(slots):
    news = asyncio.get_running_loop().create_future()
    listening = slots.runtime.start(slots.runtime.wait_for_others(news), "listen")
    slots.runtime.leave()
    await settle()
    assert slots.passed == 0
    await end(listening)


async def test_work_that_is_waited_for_needs_no_slot(slots):
    work = asyncio.create_task(asyncio.sleep(0))
    await slots.runtime.wait([work])
    assert work.done()
    assert slots.passed == 0


async def test_sleepers_wake_in_the_order_in_which_they_lay_down(slots):
    """Equal seeds give equal runs: nothing may depend on chance in the event loop."""
    for _ in range(3):
        order = []

        async def sleeper(number, order):
            await slots.runtime.wait()
            order.append(number)

        tasks = [slots.runtime.start(sleeper(number, order), "s") for number in range(9)]
        await settle()
        await slots.runtime.wait()
        await asyncio.gather(*tasks)
        assert order == list(range(9))


async def test_a_stepped_computation_runs_here_and_has_no_stopwatch(slots):
    assert await slots.runtime.compute(max, 3, 7) == 7
    assert slots.runtime.seconds() is None


async def test_real_processes_work_while_time_goes_on():
    runtime = ProcessRuntime(0.001)
    busy = runtime.start(asyncio.Event().wait(), "busy")
    await runtime.wait()
    await runtime.wait([busy])
    assert not busy.done()
    await end(busy)


async def test_a_real_process_wakes_with_the_first_news():
    runtime = ProcessRuntime(60)
    never, soon = asyncio.Event(), asyncio.Event()
    tasks = [runtime.start(event.wait(), "wait") for event in (never, soon)]
    soon.set()
    await asyncio.wait_for(runtime.wait_for_others(*tasks), 10)
    assert tasks[1].done()
    assert not tasks[0].done()
    await end(*tasks)


async def test_a_real_process_wakes_when_its_work_is_done():
    runtime = ProcessRuntime(60)
    work = runtime.start(asyncio.sleep(0), "work")
    await asyncio.wait_for(runtime.wait([work]), 10)
    assert work.done()


async def test_a_real_process_computes_in_a_thread_and_reads_a_stopwatch():
    runtime = ProcessRuntime(0.001)
    begun = runtime.seconds()
    assert await runtime.compute(max, 3, 7) == 7
    assert runtime.seconds() >= begun


async def test_ended_tasks_are_over_and_what_they_raised_is_dropped():
    async def broken():
        raise OSError("disk full")

    tasks = [asyncio.create_task(broken()), asyncio.create_task(asyncio.Event().wait())]
    await settle()
    await end(*tasks)
    assert all(task.done() for task in tasks)
