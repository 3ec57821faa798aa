"""Turns: one task at a time, first come, first served; a cancelled task keeps no turn."""

import asyncio

import pytest
from support.audit_driver import settle

from troth_client.runtime.base import end
from troth_client.runtime.turn import Turn
from troth_simulation.stepped import SteppedRuntime


class Line:
    """A turn, tasks that take it in the order of their start, and who has had it.

    The test is a task of the stepped runtime, too: slots pass only while it waits for one.
    """

    def __init__(self):
        self.turn = Turn()
        self.slots = 0
        self.runtime = SteppedRuntime(self.advance)
        self.runtime.join()
        self.had = []
        self.release = asyncio.Event()

    def advance(self):
        self.slots += 1

    def take(self):
        return self.turn.take(self.runtime)

    async def hold(self, name):
        async with self.take():
            self.had.append(name)
            await self.release.wait()

    async def start(self, *names):
        tasks = [self.runtime.start(self.hold(name), name) for name in names]
        await settle()
        return tasks


@pytest.fixture
async def line():
    one = Line()
    yield one
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await end(*(task for task in others if task.get_name() in "abc"))


async def test_one_task_holds_the_turn_and_the_next_follows_in_order(line):
    tasks = await line.start("a", "b", "c")
    assert line.had == ["a"]
    line.release.set()
    await asyncio.gather(*tasks)
    assert line.had == ["a", "b", "c"]


async def test_a_turn_that_is_free_again_is_had_at_once(line):
    line.release.set()
    for name in "ab":
        await line.start(name)
    assert line.had == ["a", "b"]


async def test_waiting_for_the_turn_is_idle(line):
    """The holder waits for a slot; the slot must not wait for those in line."""

    async def hold_for_a_slot():
        async with line.take():
            await line.runtime.wait()

    holding = line.runtime.start(hold_for_a_slot(), "a")
    await settle()
    (waiting,) = await line.start("b")
    assert line.had == []
    async with asyncio.timeout(10):
        await line.runtime.wait()
        await holding
    await settle()
    assert line.slots == 1
    assert line.had == ["b"]
    assert not waiting.done()


async def test_the_holder_itself_is_not_idle(line):
    await line.start("a", "b")
    sleeping = asyncio.create_task(line.runtime.wait(), name="c")
    await settle()
    assert line.slots == 0
    line.release.set()
    await sleeping
    assert line.slots == 1


async def test_a_task_that_is_cancelled_in_line_is_passed_over(line):
    first, second, third = await line.start("a", "b", "c")
    await end(second)
    assert line.had == ["a"], "the holder keeps it"
    line.release.set()
    await asyncio.gather(first, third)
    assert line.had == ["a", "c"]


@pytest.mark.parametrize("num_steps", range(4))
async def test_a_task_that_is_cancelled_just_when_it_is_given_the_turn_passes_it_on(
    line, num_steps
):
    """Else nobody would ever judge again."""
    async with line.take():
        second, third = await line.start("b", "c")
    for _ in range(num_steps):
        await asyncio.sleep(0)
    await end(second)
    await settle()
    assert line.had[-1:] == ["c"]
    line.release.set()
    await third
    async with asyncio.timeout(10), line.take():
        assert second.cancelled()


async def test_a_turn_that_is_given_is_not_taken_by_a_newcomer(line):
    """Two at once would each take twice as long."""
    async with line.take():
        await line.start("b")
    newcomer = line.runtime.start(line.hold("c"), "c")
    await settle()
    assert line.had == ["b"]
    line.release.set()
    await newcomer
    assert line.had == ["b", "c"]


class Slow(SteppedRuntime):
    """Stepped time, in which a computation takes until the test lets it end."""

    def __init__(self, advance):
        super().__init__(advance)
        self.end = asyncio.get_running_loop().create_future()

    async def compute(self, function, *args):
        await self.wait_for_others(self.end)
        return await super().compute(function, *args)


async def test_slots_pass_while_the_computation_of_a_cancelled_holder_goes_on(line):
    """It counts as a task of its own: a stepped run that waited for it would never end."""
    runtime = line.runtime = Slow(line.advance)
    runtime.join()

    async def compute():
        async with line.take():
            await line.turn.compute(runtime, line.had.append, "a")

    holder = runtime.start(compute(), "a")
    await settle()
    await end(holder)
    (waiting,) = await line.start("b")
    async with asyncio.timeout(10):
        await runtime.wait()
    assert line.slots == 1
    assert line.had == []
    runtime.end.set_result(None)
    await settle()
    assert line.had == ["a", "b"]
    line.release.set()
    await waiting


async def test_a_computation_gives_what_the_runtime_gives_and_raises_what_it_raises(line):
    async with line.take():
        assert await line.turn.compute(line.runtime, max, 3, 7) == 7
        with pytest.raises(ZeroDivisionError):
            await line.turn.compute(line.runtime, divmod, 1, 0)
    await line.start("a")
    assert line.had == ["a"]


async def test_a_failure_inside_gives_the_turn_back(line):
    with pytest.raises(OSError, match="disk full"):
        async with line.take():
            raise OSError("disk full")
    await line.start("a")
    assert line.had == ["a"]
