"""The chamber of a judge: all matters at once, one recomputation; findings wait for who asks."""

import asyncio
import gc

import pytest
from troth_client.audit.chamber import Chamber


class Matter:
    """Something to judge that takes until the test says so."""

    def __init__(self):
        self.decided = asyncio.Event()
        self.num_begun = 0

    async def judge(self):
        self.num_begun += 1
        await self.decided.wait()
        return "guilty"


async def settle():
    """Let every task run until it waits."""
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.fixture
async def chamber():
    one = Chamber()
    yield one
    await one.close()


async def test_a_finding_is_there_once_the_work_is_done_for_as_long_as_it_is_asked_for(chamber):
    matter = Matter()
    assert chamber.hear("a", matter.judge) is None
    await settle()
    assert chamber.hear("a", matter.judge) is None, "still under way: not begun a second time"
    matter.decided.set()
    await settle()
    chamber.tidy()
    assert chamber.hear("a", matter.judge) == "guilty"
    chamber.tidy()
    assert chamber.hear("a", matter.judge) == "guilty"
    assert matter.num_begun == 1
    chamber.tidy()
    chamber.tidy()
    assert chamber.hear("a", matter.judge) is None, "nobody had asked: begun anew"


async def test_work_that_is_ended_before_it_begins_was_never_made(chamber):
    """A coroutine that nobody awaits is reported on the terminal of whoever presses Ctrl-C."""
    made = []

    def work():
        made.append(Matter().judge())
        return made[-1]

    chamber.hear("a", work)
    await chamber.close()
    assert made == []


async def test_what_waits_for_others_keeps_nobody_from_being_heard(chamber):
    """Two targets post a root and serve nobody: an honest seat was silent on a third audit."""
    hidden, third = Matter(), Matter()
    third.decided.set()
    chamber.hear("first", hidden.judge)
    chamber.hear("second", hidden.judge)
    chamber.hear("third", third.judge)
    await settle()
    assert hidden.num_begun == 2
    assert chamber.hear("third", third.judge) == "guilty"


async def test_what_came_to_nothing_is_tried_again(chamber):
    tries = []

    async def nothing():
        tries.append(1)

    for num_tries in range(1, 4):
        assert chamber.hear("a", nothing) is None
        assert chamber.was_in_vain("a") == (num_tries > 1)
        await settle()
        assert len(tries) == num_tries
    for is_remembered in (True, False):
        chamber.tidy()
        assert chamber.was_in_vain("a") is is_remembered


async def test_who_recomputes_waits_for_its_turn(chamber):
    first, second = Matter(), Matter()

    def in_turn(matter):
        async def judge():
            async with chamber.turn:
                return await matter.judge()

        return judge

    chamber.hear("first", in_turn(first))
    chamber.hear("second", in_turn(second))
    await settle()
    assert (first.num_begun, second.num_begun) == (1, 0)
    first.decided.set()
    await settle()
    assert second.num_begun == 1
    assert chamber.hear("first", in_turn(first)) == "guilty"


async def test_what_judging_raises_reaches_whoever_asks(chamber):
    async def broken():
        raise OSError("disk full")

    chamber.hear("a", broken)
    await settle()
    with pytest.raises(OSError, match="disk full"):
        chamber.hear("a", broken)
    assert chamber.hear("a", broken) is None, "and may be tried again"


async def test_what_nobody_asks_for_any_more_is_ended_and_complains_to_nobody():
    async def broken():
        raise OSError("disk full")

    complaints = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, told: complaints.append(told))
    chamber, busy = Chamber(), Matter()
    chamber.hear("broken", broken)
    chamber.hear("busy", busy.judge)
    await settle()
    for _ in range(2):
        chamber.tidy()
    await settle()
    assert {task for task in asyncio.all_tasks() if task is not asyncio.current_task()} == set()
    del chamber
    gc.collect()
    await settle()
    assert complaints == []


async def test_closing_ends_what_is_under_way(chamber):
    chamber.hear("a", Matter().judge)
    await settle()
    await chamber.close()
    assert {task for task in asyncio.all_tasks() if task is not asyncio.current_task()} == set()
