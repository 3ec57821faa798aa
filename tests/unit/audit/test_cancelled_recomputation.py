"""A duty that ends while its gradient is computed: its thread goes on, and so does its turn."""

import asyncio
import threading
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from support import opened
from support.audit_driver import AUDIT, ROOT, AuditDriver, complaints, settle, view_at
from support.audit_views import audit_view

from troth_client.audit.evidence import recompute_gradient
from troth_client.audit.judgement import Evidence
from troth_client.network.named_tasks import NamedTasks
from troth_client.runtime.base import ProcessRuntime

WITNESS = 1
AUDITED = audit_view(canonical_root=ROOT)
SHOWN = Evidence(AUDITED.seed, AUDIT.header, b"payload", None, AUDITED.openings_root)


class Duties:
    """Duties that recompute in real threads, which wait until the test lets them go on."""

    def __init__(self, driver):
        runtime = ProcessRuntime(0.01)
        self.witness = replace(driver.witness, chain=replace(driver.chain, runtime=runtime))
        self.tasks = NamedTasks(self.witness.chain, "audit")
        self.go_on = threading.Event()
        self.num_begun = self.num_ended = 0
        self.failure = None
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        driver.judge.gradient = self._gradient

    def start(self, name):
        self.tasks.start(name, partial(self._recompute, name))

    async def keep(self, *names):
        """End all other duties, as a look does at which they are owed no more."""
        await self.tasks.keep(names)
        await settle()

    async def until_begun(self, number):
        while self.num_begun < number:
            await self._news.wait()
            self._news.clear()

    async def has_turn(self):
        """Return once the turn is free: how many threads had begun and ended by then."""
        async with self.witness.audits.turn.take(self.witness.chain.runtime):
            return {"begun": self.num_begun, "ended": self.num_ended}

    async def _recompute(self, _name):
        await recompute_gradient(self.witness, AUDITED, SHOWN)

    def _gradient(self, _weights: Any, _batch: Any):
        self.num_begun += 1
        self._loop.call_soon_threadsafe(self._news.set)
        self.go_on.wait()
        self.num_ended += 1
        if self.failure is not None:
            raise self.failure
        return np.zeros((opened.NUM_TILES, 64, 64), np.float32)


@pytest.fixture
async def duties(tmp_path):
    driver = AuditDriver(tmp_path, index=WITNESS)
    driver.save_weights()
    await driver.see(view_at())
    one = Duties(driver)
    async with asyncio.timeout(60):
        yield one
    one.go_on.set()
    await one.tasks.close()
    await one.has_turn()
    await driver.close()


async def assert_turn_ends_with_the_only_thread(duties):
    waiting = asyncio.create_task(duties.has_turn())
    await settle()
    assert not waiting.done()
    duties.go_on.set()
    found = await waiting
    assert found["begun"] == 1
    assert found["ended"] == 1


async def test_the_next_one_does_not_begin_beside_the_thread_of_a_duty_that_is_over(duties):
    """One gradient that missed its window slowed the next, which then missed its own, and so on."""
    duties.start("late")
    await duties.until_begun(1)
    await duties.keep()
    await assert_turn_ends_with_the_only_thread(duties)


async def test_the_next_duty_computes_once_that_thread_has_ended(duties):
    duties.start("late")
    await duties.until_begun(1)
    await duties.keep()
    duties.start("next")
    await settle()
    duties.go_on.set()
    await duties.until_begun(2)
    assert duties.num_ended >= 1


async def test_a_duty_that_ends_in_line_never_computes(duties):
    duties.start("late")
    await duties.until_begun(1)
    duties.start("in line")
    await settle()
    await duties.keep("in line")
    await duties.keep()
    await assert_turn_ends_with_the_only_thread(duties)


async def test_ending_a_duty_does_not_wait_for_its_thread(duties):
    """The other audits go on meanwhile, and a process that stops ends its tasks at once."""
    for name in ("computing", "in line"):
        duties.start(name)
    await duties.until_begun(1)
    await duties.tasks.close()
    assert duties.num_ended == 0
    names = [task.get_name() for task in asyncio.all_tasks()]
    assert "audit" not in names


async def test_what_such_a_thread_comes_to_concerns_nobody(duties):
    duties.failure = OSError("disk full")
    with complaints() as found:
        duties.start("late")
        await duties.until_begun(1)
        await duties.keep()
        duties.go_on.set()
        await duties.has_turn()
        await settle()
    assert found == []


def test_an_event_loop_ends_although_the_thread_has_not(tmp_path):
    """The last resort of a process cancels every task, the computation itself among them."""
    go_on = threading.Event()

    async def everything():
        driver = AuditDriver(tmp_path, index=WITNESS)
        driver.save_weights()
        await driver.see(view_at())
        duties = Duties(driver)
        duties.go_on = go_on
        for name in ("computing", "in line"):
            duties.start(name)
        await duties.until_begun(1)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=60)
        driver.store.close()
        return [task for task in left if not task.done()], duties

    with asyncio.Runner() as runner:
        try:
            left, duties = runner.run(everything())
            assert left == []
            assert duties.num_ended == 0
        finally:
            go_on.set()  # the interpreter itself waits for threads
