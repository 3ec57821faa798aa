"""The tracker takes what a look has brought along, and only where nothing newer is known."""

from dataclasses import replace

import pytest
from support.audit_driver import INDEX, AuditDriver, closed_round
from support.audit_node import ROUND, view_at
from support.audit_views import audit_view

from troth_coordinator.rules.audit_view import AuditStage
from troth_coordinator.rules.view import Beside

WORK = (ROUND, INDEX, 0)


@pytest.fixture
async def driver(tmp_path):
    one = AuditDriver(tmp_path)
    yield one
    await one.close()


@pytest.fixture
def tracker(driver):
    return driver.tracker


def looked(driver, view):
    """A look that brings along what the tracker wants, as the chain is now."""
    return replace(view, beside=driver.node.beside(driver.tracker.wanted()))


async def started(driver):
    """Let the tracker read an audit of ours, and forget that it asked."""
    driver.node.rounds = {number: closed_round(number) for number in range(ROUND + 2)}
    driver.node.audits = [audit_view()]
    await driver.tracker.refresh(view_at())
    driver.node.asked.clear()
    driver.node.num_reads = 0


async def test_what_a_look_brings_along_is_not_asked_for_again(driver, tracker):
    await started(driver)
    driver.node.audits = [audit_view(AuditStage.REVEAL)]
    await tracker.refresh(looked(driver, view_at(sequence=2)))
    assert driver.node.asked == []
    assert tracker.find(*WORK).stage is AuditStage.REVEAL
    driver.node.audits = []
    await tracker.refresh(looked(driver, view_at(sequence=3, num_audits=0)))
    assert driver.node.asked == []
    assert list(tracker.audits(view_at())) == []


async def test_an_audit_that_a_seed_asks_for_comes_with_the_look_after_it_was_opened(
    driver, tracker
):
    driver.node.rounds = {number: closed_round(number) for number in range(ROUND + 2)}
    driver.node.audits = [audit_view(target=1)]
    await tracker.refresh(view_at())
    assert driver.node.num_reads == 1
    assert WORK in tracker.to_open(view_at())
    driver.node.asked.clear()
    driver.node.audits.append(audit_view())
    await tracker.refresh(looked(driver, view_at(sequence=2, num_audits=2)))
    assert driver.node.asked == []
    assert driver.node.num_reads == 1, "nor are all audits listed"
    assert tracker.find(*WORK) is not None


@pytest.mark.parametrize("sequence", [1, 4], ids=["a fork", "a look of before"])
async def test_what_was_brought_along_replaces_nothing_newer(driver, tracker, sequence):
    """The tracker has read at sequence 5; a look shows an earlier one."""
    await started(driver)
    old = looked(driver, view_at(sequence=sequence, chain_hash=b"f" * 32))
    driver.node.view = view_at(sequence=5)
    driver.node.audits = [audit_view(AuditStage.REVEAL)]
    await tracker.refresh(view_at(sequence=5))
    driver.node.asked.clear()
    await tracker.refresh(old)
    assert len(driver.node.asked) == 1
    assert tracker.find(*WORK).stage is AuditStage.REVEAL


async def test_after_a_step_of_ours_the_chain_is_asked(driver, tracker):
    """A look may be of before the step, although its events are new."""
    await started(driver)
    look = looked(driver, view_at(sequence=2))
    tracker.landed(WORK, "commit", look.slot)
    await tracker.refresh(look)
    assert len(driver.node.asked) == 1


@pytest.mark.parametrize("missing", ["a round", "an audit"])
async def test_what_a_look_lacks_is_asked_for(driver, tracker, missing):
    await started(driver)
    wanted = tracker.wanted()
    short = (
        replace(wanted, rounds=wanted.rounds[1:])
        if missing == "a round"
        else replace(wanted, audits=[])
    )
    await tracker.refresh(replace(view_at(sequence=2), beside=driver.node.beside(short)))
    assert len(driver.node.asked) == 1


def test_nothing_is_wanted_before_the_first_refresh(tracker):
    assert tracker.wanted() == Beside()
