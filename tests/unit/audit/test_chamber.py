"""The chamber of a judge: one matter at a time, findings wait until they are asked for."""

import asyncio
import gc

import pytest

from troth_client.audit.chamber import MAX_UNASKED, Chamber


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


async def test_a_finding_is_there_once_the_work_is_done_and_is_given_out_once():
    chamber, matter = Chamber(), Matter()
    assert chamber.hear("a", matter.judge) is None
    await settle()
    assert chamber.hear("a", matter.judge) is None, "still under way: not begun a second time"
    matter.decided.set()
    await settle()
    assert chamber.hear("a", matter.judge) == "guilty"
    assert matter.num_begun == 1
    assert chamber.hear("a", matter.judge) is None, "asked anew: judged anew"
    await settle()
    assert matter.num_begun == 2
    await chamber.close()


async def test_one_matter_at_a_time_and_none_is_lost_when_another_is_asked_first():
    chamber, first, second = Chamber(), Matter(), Matter()
    chamber.hear("first", first.judge)
    chamber.hear("second", second.judge)
    first.decided.set()
    await settle()
    assert second.num_begun == 0
    assert chamber.hear("second", second.judge) is None
    await settle()
    assert second.num_begun == 1
    assert chamber.hear("first", first.judge) == "guilty"
    await chamber.close()


async def test_what_judging_raises_reaches_whoever_asks():
    async def broken():
        raise OSError("disk full")

    chamber = Chamber()
    chamber.hear("a", broken)
    await settle()
    with pytest.raises(OSError, match="disk full"):
        chamber.hear("a", broken)
    assert chamber.hear("a", broken) is None, "and may be tried again"
    await chamber.close()


async def test_findings_that_nobody_asks_for_do_not_pile_up_nor_complain():
    async def broken():
        raise OSError("disk full")

    complaints = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, told: complaints.append(told))
    chamber = Chamber()
    for number in range(3 * MAX_UNASKED):
        chamber.hear(number, broken)
        await settle()
    assert chamber.hear(0, broken) is None, "the oldest is forgotten"
    await settle()
    with pytest.raises(OSError, match="disk full"):
        chamber.hear(3 * MAX_UNASKED - 1, broken)
    await chamber.close()
    del chamber
    gc.collect()
    await settle()
    assert complaints == []


async def test_closing_ends_what_is_under_way():
    chamber, matter = Chamber(), Matter()
    chamber.hear("a", matter.judge)
    await settle()
    await chamber.close()
    assert {task for task in asyncio.all_tasks() if task is not asyncio.current_task()} == set()
    await chamber.close()


async def nothing():
    """Nobody serves what has to be judged."""


async def test_two_matters_that_come_to_nothing_do_not_keep_a_third_from_being_heard():
    """Two targets post a root and serve nobody: an honest seat was silent on a third audit."""
    chamber, third = Chamber(), Matter()
    third.decided.set()
    for _ in range(6):
        chamber.hear("first", nothing)
        chamber.hear("second", nothing)
        if chamber.hear("third", third.judge) == "guilty":
            break
        await settle()
    assert third.num_begun == 1
    await chamber.close()


async def test_a_matter_whose_window_has_closed_holds_up_nobody():
    chamber, busy, later = Chamber(), Matter(), Matter()
    chamber.hear("busy", busy.judge)
    chamber.hear("closed since", nothing)
    chamber.hear("later", later.judge)
    busy.decided.set()
    await settle()
    chamber.hear("later", later.judge)
    await settle()
    assert later.num_begun == 1
    assert chamber.hear("busy", busy.judge) == "guilty"
    await chamber.close()


async def test_who_has_just_come_waits_for_those_who_ask_already():
    chamber, busy, first, new = Chamber(), Matter(), Matter(), Matter()
    chamber.hear("busy", busy.judge)
    chamber.hear("first", first.judge)
    busy.decided.set()
    await settle()
    assert chamber.hear("new", new.judge) is None
    chamber.hear("first", first.judge)
    await settle()
    assert (first.num_begun, new.num_begun) == (1, 0)
    await chamber.close()
