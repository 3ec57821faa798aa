"""The clock of stepped runs: work beside the waiting holds the slot, however long it takes."""

import asyncio

import pytest
from troth_client.runtime.clock import PollingClock, SteppedClock


async def test_the_slot_waits_for_work_beside_the_waiting():
    """A judge that fetched for real seconds missed its window: the slots had gone on without it."""
    slots, done = [], asyncio.Event()
    clock = SteppedClock(lambda: slots.append(done.is_set()))
    clock.join()
    judging = asyncio.create_task(clock.beside(done.wait()))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(clock.wait())
    for _ in range(5):
        await asyncio.sleep(0)
    assert slots == []
    done.set()
    assert await judging is True
    await waiting
    assert slots == [True]


async def test_work_that_fails_or_is_cancelled_lets_time_go_on():
    async def broken():
        raise OSError("disk full")

    slots = []
    clock = SteppedClock(lambda: slots.append(1))
    clock.join()
    with pytest.raises(OSError, match="disk full"):
        await clock.beside(broken())
    judging = asyncio.create_task(clock.beside(asyncio.Event().wait()))
    await asyncio.sleep(0)
    judging.cancel()
    await asyncio.gather(judging, return_exceptions=True)
    await clock.wait()
    assert slots == [1]


async def test_real_processes_work_while_time_goes_on():
    async def found():
        return 7

    assert await PollingClock(0.001).beside(found()) == 7
